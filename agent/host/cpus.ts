/** CPU lists as sysfs writes them: `0-3,7`. */
import { readFileSync } from 'node:fs';

const MAX_CPUS = 8192;

/** Throws on anything that is no such list. */
export function parseCpuList(text: string): number[] {
  const cpus = new Set<number>();
  for (const part of text.trim().split(',')) {
    if (part === '') continue;
    const match = /^(\d+)(?:-(\d+))?$/.exec(part);
    const first = Number(match?.[1]);
    const last = Number(match?.[2] ?? match?.[1]);
    if (!match || last < first || last >= MAX_CPUS) throw new Error(`"${text.trim()}" is not a list of CPUs`);
    for (let cpu = first; cpu <= last; cpu++) cpus.add(cpu);
  }
  return [...cpus].sort((a, b) => a - b);
}

export const onlineCpus = (): number[] =>
  parseCpuList(readFileSync('/sys/devices/system/cpu/online', 'utf8'));
