/**
 * The text of `perf script`, with its default fields or with any that add a CPU, a period or other events. An
 * event has a line of its own, then a line a frame, the innermost first, then an empty line.
 */

import type { FrameType, Profile } from './profile.ts';
import { type Owner, ProfileBuilder } from './profile-builder.ts';

/** `comm  pid/tid [cpu] seconds.micros: period event:`; a single ID is the thread's. */
const EVENT =
  /^(?<comm>\S.*?)\s+(?<pid>-?\d+)(?:\/(?<tid>-?\d+))?\s+(?:\[(?<cpu>\d+)\]\s+)?(?:\S{4,5}\s+)?(?<seconds>\d+)\.(?<fraction>\d{1,9}):\s/;
/** `  address name+0xoffset (file)`: name and offset may be missing, the file may be `inlined`. */
const FRAME =
  /^\s+(?<address>[0-9a-f]+)\s+(?<name>.*?)(?:\+0x[0-9a-f]+)?\s+\((?<file>[^()]*(?:\(deleted\))?)\)\s*$/;
const KERNEL_FILE =
  /^\[(kernel\.kallsyms|guest\.kernel\.kallsyms|[\w-]+)\](_text|_stext)?$|\.ko(\.[gx]z|\.zst)?$/;
const USER_AREA = /^\[(vdso|vsyscall|heap|stack|anon.*|unknown|uprobes)\]$/;

const DECODER = new TextDecoder();
const START_BYTES = 64 * 1024;

export function isPerfScript(bytes: Uint8Array): boolean {
  const lines = DECODER.decode(bytes.subarray(0, START_BYTES)).split('\n');
  const first = lines.findIndex((line) => line.trim() !== '' && !line.startsWith('#'));
  return (
    first >= 0 &&
    EVENT.test(lines[first]!) &&
    (lines[first + 1] === undefined || !/^\S/.test(lines[first + 1]!))
  );
}

/** @throws Error for text that is none of perf's */
export function readPerfScript(bytes: Uint8Array): Profile {
  if (!isPerfScript(bytes)) throw new Error('its first line is no event of perf script');
  const reader = new PerfScriptReader();
  let start = 0;
  // line by line: such files are larger than the longest string
  while (start < bytes.length) {
    let end = bytes.indexOf(0x0a, start);
    if (end === -1) end = bytes.length;
    reader.line(DECODER.decode(bytes.subarray(start, end)));
    start = end + 1;
  }
  return reader.finish();
}

class PerfScriptReader {
  readonly #builder = new ProfileBuilder();
  readonly #locations = new Map<string, number>();
  #event: { owner: Owner; time: bigint } | undefined;
  #stack: number[] = [];
  #first: bigint | undefined;
  #last = 0n;

  line(line: string): void {
    if (line.trim() === '') this.#endEvent();
    else if (/^\s/.test(line) && this.#event) this.#frame(line);
    else if (!line.startsWith('#')) this.#begin(line);
  }

  finish(): Profile {
    this.#endEvent();
    const { profile } = this.#builder;
    // perf's clock counts from boot: a length can be told, a date can't
    profile.timeUnixNano = this.#first ?? 0n;
    profile.durationNano = this.#last - (this.#first ?? 0n);
    return profile;
  }

  #begin(line: string): void {
    this.#endEvent();
    const groups = EVENT.exec(line.trimStart())?.groups;
    if (!groups) return;
    const { comm, pid, tid = pid, cpu, seconds, fraction } = groups;
    const time = BigInt(seconds!) * 1_000_000_000n + BigInt(fraction!.padEnd(9, '0'));
    // without a PID the threads of a process can't be told to be one: each is known by its name
    const isWhole = groups['tid'] !== undefined;
    const ids = { pid: isWhole ? Math.max(0, Number(pid)) : 0, tid: Math.max(0, Number(tid)) };
    const owner = { process: comm!, thread: comm!, ...ids, cpu: cpu === undefined ? -1 : Number(cpu) };
    this.#event = { owner, time };
  }

  #frame(line: string): void {
    let location = this.#locations.get(line);
    if (location === undefined) {
      location = this.#location(line);
      this.#locations.set(line, location);
    }
    this.#stack.push(location);
  }

  #location(line: string): number {
    const groups = FRAME.exec(line)?.groups;
    if (!groups) return this.#builder.location({ name: line.trim() });
    const { address, name, file } = groups;
    const isNamed = name !== '' && name !== '[unknown]';
    const mapping = file === 'inlined' || file === '[unknown]' ? '' : file!;
    const frameType: FrameType = KERNEL_FILE.test(mapping) && !USER_AREA.test(mapping) ? 'kernel' : 'native';
    // addresses are the process's own: they name a place only where nothing else does
    const place = isNamed ? {} : { address: BigInt(`0x${address!.slice(0, 16)}`) };
    const kernelFile = mapping.replace(/^\[(.*)\](_s?text)?$/, '$1').replace(/^kernel\.kallsyms$/, 'vmlinux');
    return this.#builder.location({
      name: isNamed ? name! : '',
      mapping: frameType === 'kernel' ? kernelFile : mapping,
      frameType,
      ...place,
    });
  }

  #endEvent(): void {
    const event = this.#event;
    if (!event) return;
    this.#first = this.#first === undefined || event.time < this.#first ? event.time : this.#first;
    if (event.time > this.#last) this.#last = event.time;
    this.#builder.add(this.#builder.stack(this.#stack), event.owner, 1, [event.time]);
    this.#event = undefined;
    this.#stack = [];
  }
}
