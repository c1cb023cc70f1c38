import type { ProcessCount } from '../store/store.ts';

/** All processes of one name, as the flame graph's second level shows them. */
export interface ProcessGroup {
  name: string;
  samples: number;
  /** Executions of processes, and the threads seen in them. */
  processes: number;
  threads: number;
  /** The busiest executions, at most `MAX_LISTED`. */
  busiest: { pid: number; path: string; containerId: string; samples: number }[];
}

const MAX_LISTED = 20;
/** A machine that starts thousands of programs has no more names than this; the smallest are left out. */
const MAX_GROUPS = 1000;

/** The busiest group first. */
export function groupProcesses(processes: readonly ProcessCount[]): ProcessGroup[] {
  const groups = new Map<string, ProcessGroup>();
  const bySamples = [...processes].sort((a, b) => b.samples - a.samples || a.pid - b.pid);
  for (const { name, pid, path, containerId, samples, threads } of bySamples) {
    let group = groups.get(name);
    if (group === undefined) {
      group = { name, samples: 0, processes: 0, threads: 0, busiest: [] };
      groups.set(name, group);
    }
    group.samples += samples;
    group.processes++;
    group.threads += threads;
    if (group.busiest.length < MAX_LISTED) group.busiest.push({ pid, path, containerId, samples });
  }
  return [...groups.values()]
    .sort((a, b) => b.samples - a.samples || (a.name < b.name ? -1 : 1))
    .slice(0, MAX_GROUPS);
}
