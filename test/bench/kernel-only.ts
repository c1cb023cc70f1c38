import { readFileSync } from 'node:fs';
import type { Profile } from '../../common/profile/model/profile.ts';
import { decodeOtlpJson } from '../../common/profile/otlp/otlp-json.ts';

/** Nanoseconds since 1970; `to` is not part of it. */
interface Span {
  from: bigint;
  to: bigint;
}

/** Samples in a span: all of them, and those of threads that had nothing but the kernel's frames to show. */
export interface KernelOnly {
  samples: number;
  kernelOnly: number;
}

/**
 * Counts samples of threads whose memory is gone or not there yet, as inside exec and exit: their stacks are whole, but
 * end where the kernel was entered. Kernel threads are none of them.
 */
export function countKernelOnly({ samples, stacks, locations, functions }: Profile, span: Span): KernelOnly {
  const counts = { samples: 0, kernelOnly: 0 };
  for (const { stack, timestamps } of samples) {
    const n = timestamps.filter((time) => time >= span.from && time < span.to).length;
    counts.samples += n;
    const outermost = locations[stacks[stack]!.at(-1) ?? 0]!;
    const name = functions[outermost.lines.at(-1)?.func ?? 0]!.name;
    if (outermost.frameType === 'kernel' && !name.startsWith('ret_from_fork')) counts.kernelOnly += n;
  }
  return counts;
}

/** The share, 0 to 1, in what a Collector's file exporter wrote: a request a line. Of `seconds` that ended `endedBefore` its last sample. */
export function kernelOnlyShare(path: string, seconds: number, endedBefore: number): number {
  const profiles = readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .flatMap((line) => decodeOtlpJson(line).profiles);
  let last = 0n;
  for (const { samples } of profiles)
    for (const { timestamps } of samples) for (const time of timestamps) if (time > last) last = time;
  const to = last - BigInt(endedBefore * 1e9);
  const span = { from: to - BigInt(seconds * 1e9), to };
  const counts = profiles.map((profile) => countKernelOnly(profile, span));
  const total = (key: keyof KernelOnly): number => counts.reduce((sum, each) => sum + each[key], 0);
  return total('kernelOnly') / Math.max(1, total('samples'));
}
