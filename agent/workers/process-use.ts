/** What a process takes, as the kernel counts it. */
import { readSmallFile } from '../processes/proc-files.ts';

/**
 * Resident memory that no file backs, bytes; undefined where there is no such process. Not of statm, whose pages are larger
 * than 4 KiB on some arm64 machines.
 */
export function readPrivateBytes(pid: number, proc = '/proc'): number | undefined {
  const kib = /^RssAnon:\s+(\d+) kB$/m.exec(readSmallFile(`${proc}/${pid}/status`) ?? '')?.[1];
  return kib === undefined ? undefined : Number(kib) * 1024;
}

/** True if the first thread runs, or would if it had a CPU. */
export function isRunnable(pid: number): boolean {
  const text = readSmallFile(`/proc/${pid}/stat`) ?? '';
  return text.startsWith('R', text.lastIndexOf(')') + 2);
}
