/**
 * CPU time of one thread of this process, as any other of its threads can read it. Wall time says how busy the machine
 * is; CPU time says what the work costs.
 */
import { readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import { loadNative } from '../tracer/native.ts';

/** Of the calling thread, for {@link readThreadCpuMs}; 0 where /proc doesn't show it. */
export function threadId(): number {
  try {
    return Number(basename(readlinkSync('/proc/thread-self')));
  } catch {
    return 0;
  }
}

/** Whole milliseconds in user and kernel mode; undefined where this process has no such thread. */
export function readThreadCpuMs(thread: number): number | undefined {
  const micros = thread > 0 ? loadNative().threadCpuMicros(thread) : undefined;
  return micros === undefined ? undefined : Math.round(micros / 1000);
}
