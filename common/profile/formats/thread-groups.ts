/** What the JSON formats that show threads apart have in common: their set-up, and who a thread belongs to. */

import { processName } from '../model/frame-name.ts';
import { isObject, type Json, natural, object, ownHeader, text } from '../model/json.ts';
import type { Profile, Sample } from '../model/profile.ts';
import type { Owner } from '../model/profile-builder.ts';
import { FrameList } from './frame-list.ts';

export interface ThreadGroup extends Owner {
  samples: Sample[];
  /** The owner as this product's own readers want it: other programs shorten or merge names and IDs. */
  mark: Json;
}

interface ThreadFile {
  frames: FrameList;
  /** The busiest process's threads first. */
  threads: ThreadGroup[];
  header: Json;
}

/** What a writer starts from. */
export const splitThreads = (profile: Profile, hasAddresses = false): ThreadFile => ({
  frames: new FrameList(profile, hasAddresses),
  threads: groupThreads(profile),
  header: ownHeader(profile),
});

/** Whom `ThreadGroup.mark` names; undefined for what is none. */
export function readMark(mark: unknown): Owner | undefined {
  if (!isObject(mark)) return undefined;
  const { process, pid, tid, thread } = object(mark);
  return { process: text(process), pid: natural(pid), tid: natural(tid), thread: text(thread) };
}

function groupThreads(profile: Profile): ThreadGroup[] {
  const groups = new Map<string, { owner: Owner; samples: Sample[]; value: number }>();
  const perProcess = new Map<number, number>();
  for (const sample of profile.samples) {
    const { process, tid, threadName: thread, value } = sample;
    const key = `${process}/${tid}/${thread}`;
    let group = groups.get(key);
    if (!group) {
      const { pid } = profile.processes[process]!;
      group = { owner: { process: processName(profile, process), pid, tid, thread }, samples: [], value: 0 };
      groups.set(key, group);
    }
    group.samples.push(sample);
    group.value += value;
    perProcess.set(process, (perProcess.get(process) ?? 0) + value);
  }
  const ofProcess = (samples: Sample[]): number => perProcess.get(samples[0]!.process)!;
  return [...groups.values()]
    .sort(
      (a, b) => ofProcess(b.samples) - ofProcess(a.samples) || a.owner.pid - b.owner.pid || b.value - a.value,
    )
    .map(({ owner, samples }) => ({ ...owner, samples, mark: { ...owner } }));
}
