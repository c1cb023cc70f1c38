import type { Leaves } from '../../../common/flame/tree-answer.ts';
import type { Profile } from '../../../common/profile/model/profile.ts';
import type { ProfileType } from '../../../common/profile/model/profile-type.ts';
import type { TimeRange, Window } from '../../store/store.ts';
import { periodNanos } from '../../store/stored-type.ts';
import { FrameTable } from '../../store/trees/frame-table.ts';
import { locationFrames, processName } from '../../store/trees/frames.ts';
import { StackTree } from '../../store/trees/stack-tree.ts';
import { buildFlameTree, DEFAULT_LIMITS, type FlameTree } from './flame-tree.ts';
import { LeafSums } from './leaf-sums.ts';

const TIMELINE_STEPS = 120;

export interface FlameGraph extends Omit<Window, 'parts'> {
  type: ProfileType;
  range: TimeRange;
  tree: FlameTree;
  leaves: Leaves;
}

/** The flame graph of one whole profile, such as a file's, without a store. */
export function profileGraph(profile: Profile, limits = DEFAULT_LIMITS): FlameGraph {
  const table = new FrameTable();
  const tree = new StackTree();
  const frameIds = profile.locations.map((location) =>
    locationFrames(profile.mappings[location.mapping], location, (func) => profile.functions[func]).map(
      (frame) => table.intern(frame),
    ),
  );
  const counts: number[] = [0];
  const nodes = new Map<string, number>();
  for (const { process, stack, value } of profile.samples) {
    const key = `${process}/${stack}`;
    let node = nodes.get(key);
    if (node === undefined) {
      const name = processName(profile.processes[process]!);
      node = tree.child(0, table.intern({ name, file: '', mapping: '', kind: 'process' }));
      const locations = profile.stacks[stack]!;
      for (let i = locations.length - 1; i >= 0; i--)
        for (const frame of frameIds[locations[i]!]!) node = tree.child(node, frame);
      nodes.set(key, node);
    }
    counts[node] = (counts[node] ?? 0) + value;
  }
  const part = {
    frames: table.frames,
    parents: tree.parents.subarray(0, tree.size),
    nodeFrames: tree.frames.subarray(0, tree.size),
    selfCounts: Float64Array.from({ length: tree.size }, (_, node) => counts[node] ?? 0),
  };
  const sums = new LeafSums();
  sums.add(part);
  const samples = profile.samples.reduce((sum, { value }) => sum + value, 0);
  return {
    type: profile.type,
    tree: buildFlameTree([part], limits),
    leaves: sums.leaves,
    samples,
    allSamples: samples,
    cpuNanos: samples * periodNanos(profile.type),
    cpus: new Set(profile.samples.map(({ cpu }) => cpu).filter((cpu) => cpu >= 0)).size,
    ...timeline(profile),
  };
}

function timeline(profile: Profile): Pick<FlameGraph, 'range' | 'timeline'> {
  const fromMs = Number(profile.timeUnixNano / 1_000_000n);
  const toMs = fromMs + Math.max(1, Number(profile.durationNano / 1_000_000n));
  const steps = new Float64Array(TIMELINE_STEPS);
  for (const { timestamps } of profile.samples)
    for (const time of timestamps) {
      const step = Math.floor(((Number(time / 1_000_000n) - fromMs) / (toMs - fromMs)) * TIMELINE_STEPS);
      steps[Math.min(TIMELINE_STEPS - 1, Math.max(0, step))]! += 1;
    }
  return { range: { fromMs, toMs }, timeline: steps };
}
