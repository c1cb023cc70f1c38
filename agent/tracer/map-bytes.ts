import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { readSmallFile } from '../processes/proc-files.ts';

/** Kernel memory of the BPF maps that this process has open, bytes: `memlock` of their fdinfo, proc(5). */
export function openMapBytes(self = '/proc/self'): number {
  let bytes = 0;
  for (const fd of readdirSync(join(self, 'fd'))) {
    if (!isMap(join(self, 'fd', fd))) continue;
    const text = readSmallFile(join(self, 'fdinfo', fd)) ?? '';
    bytes += Number(/^memlock:\s*(\d{1,15})$/m.exec(text)?.[1] ?? 0);
  }
  return bytes;
}

function isMap(path: string): boolean {
  try {
    return readlinkSync(path) === 'anon_inode:bpf-map';
  } catch {
    // closed meanwhile, as the descriptor that the folder was read through
    return false;
  }
}
