/**
 * CPU time of one thread of this process, as any other of its threads can read it. Wall time says how busy the machine
 * is; CPU time says what the work costs.
 */
import { readFileSync, readlinkSync } from 'node:fs';

/** sysconf(_SC_CLK_TCK): the USER_HZ of the kernel's interface, 100 on every architecture that this runs on. */
const TICK_MS = 10;

/** Of the calling thread, for {@link readThreadCpuMs}; '' where /proc doesn't show it. */
export function threadName(): string {
  try {
    return readlinkSync('/proc/thread-self');
  } catch {
    return '';
  }
}

/** Milliseconds in user and kernel mode, in steps of 10; undefined where the thread is gone or /proc doesn't show it. */
export function readThreadCpuMs(thread: string): number | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${thread}/stat`, 'latin1');
  } catch {
    return undefined;
  }
  // its name may hold spaces and brackets; utime and stime are fields 14 and 15 (proc(5))
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const ticks = Number(fields[11]) + Number(fields[12]);
  return Number.isFinite(ticks) ? ticks * TICK_MS : undefined;
}
