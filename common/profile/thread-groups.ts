/** Samples by process and thread, for formats that show threads apart. */
import { processName } from './frame-name.ts';
import type { Profile, Sample } from './profile.ts';
import type { Owner } from './profile-builder.ts';

export interface ThreadGroup extends Owner {
  samples: Sample[];
}

/** The busiest process's threads first. */
export function groupThreads(profile: Profile): ThreadGroup[] {
  const groups = new Map<string, ThreadGroup & { count: number }>();
  const perProcess = new Map<number, number>();
  for (const sample of profile.samples) {
    const { process, tid, threadName: thread, count } = sample;
    const key = `${process}/${tid}/${thread}`;
    let group = groups.get(key);
    if (!group) {
      const { pid } = profile.processes[process]!;
      group = { process: processName(profile, process), pid, tid, thread, samples: [], count: 0 };
      groups.set(key, group);
    }
    group.samples.push(sample);
    group.count += count;
    perProcess.set(process, (perProcess.get(process) ?? 0) + count);
  }
  const weight = ({ samples }: ThreadGroup): number => perProcess.get(samples[0]!.process)!;
  return [...groups.values()]
    .sort((a, b) => weight(b) - weight(a) || a.pid - b.pid || b.count - a.count)
    .map(({ count: _count, ...group }) => group);
}
