import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { readSmallFile } from '../processes/proc-files.ts';

/**
 * Kernel memory of the BPF maps that this process has open, bytes: `memlock` of their fdinfo, proc(5). A map that several
 * BPF objects share has a descriptor in each of them, and counts once.
 */
export function openMapBytes(self = '/proc/self'): number {
  const bytes = new Map<string, number>();
  for (const fd of readdirSync(join(self, 'fd'))) {
    if (!isMap(join(self, 'fd', fd))) continue;
    const text = readSmallFile(join(self, 'fdinfo', fd)) ?? '';
    const id = /^map_id:\s*(\d{1,10})$/m.exec(text)?.[1] ?? `descriptor ${fd}`;
    bytes.set(id, Number(/^memlock:\s*(\d{1,15})$/m.exec(text)?.[1] ?? 0));
  }
  return [...bytes.values()].reduce((sum, each) => sum + each, 0);
}

function isMap(path: string): boolean {
  try {
    return readlinkSync(path) === 'anon_inode:bpf-map';
  } catch {
    // closed meanwhile, as the descriptor that the folder was read through
    return false;
  }
}
