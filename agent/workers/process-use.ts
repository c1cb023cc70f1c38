/** CPU time and memory of a process, as the kernel counts them. */
import { readSmallFile } from '../processes/proc-files.ts';

const PAGE_BYTES = 4096;

export interface ProcessUse {
  /** Resident memory that no file backs, bytes. */
  privateBytes: number;
  /** All that is resident, with what it shares with others. */
  residentBytes: number;
}

/** Undefined where there is no such process. */
export function readUse(pid: number): ProcessUse | undefined {
  const text = readSmallFile(`/proc/${pid}/statm`);
  const [, resident, shared] = (text ?? '').split(' ').map(Number);
  if (resident === undefined || shared === undefined) return undefined;
  return { privateBytes: (resident - shared) * PAGE_BYTES, residentBytes: resident * PAGE_BYTES };
}

/** True if the first thread runs, or would if it had a CPU. */
export function isRunnable(pid: number): boolean {
  const text = readSmallFile(`/proc/${pid}/stat`) ?? '';
  return text.startsWith('R', text.lastIndexOf(')') + 2);
}
