/** CPU time and memory of a process, as the kernel counts them. */
import { readSmallFile } from '../processes/proc-files.ts';

export interface ProcessUse {
  /** Resident memory that no file backs, bytes. */
  privateBytes: number;
  /** All that is resident, with what it shares with others. */
  residentBytes: number;
}

/** Undefined where there is no such process. Not of statm, whose pages are larger than 4 KiB on some arm64 machines. */
export function readUse(pid: number, proc = '/proc'): ProcessUse | undefined {
  const text = readSmallFile(`${proc}/${pid}/status`) ?? '';
  const bytesOf = (name: string): number | undefined => {
    const kib = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1];
    return kib === undefined ? undefined : Number(kib) * 1024;
  };
  const [privateBytes, residentBytes] = [bytesOf('RssAnon'), bytesOf('VmRSS')];
  if (privateBytes === undefined || residentBytes === undefined) return undefined;
  return { privateBytes, residentBytes };
}

/** True if the first thread runs, or would if it had a CPU. */
export function isRunnable(pid: number): boolean {
  const text = readSmallFile(`/proc/${pid}/stat`) ?? '';
  return text.startsWith('R', text.lastIndexOf(')') + 2);
}
