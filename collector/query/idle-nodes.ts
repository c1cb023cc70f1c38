/** Which stacks of a tree are those of threads that wait for work: see common/profile/filters/idle-pools.ts. */
import { idleFrameName, idlePool, MAX_BELOW_WAIT, mayWait } from '../../common/profile/filters/idle-pools.ts';
import type { Frame, Stacks } from '../store/store.ts';

/** For each node the frame that stands for its pool; a node below one of a pool is of it as well. */
export function findIdleNodes({ frames, parents, nodeFrames }: Stacks): (Frame | undefined)[] {
  const pools: (Frame | undefined)[] = new Array(parents.length);
  const waits = frames.map(({ name, kind }) => kind !== 'kernel' && mayWait(name));
  const known = new Map<string, Frame>();
  /** Nodes since the nearest wait above. */
  const sinceWait = new Uint8Array(parents.length).fill(MAX_BELOW_WAIT);
  for (let node = 1; node < parents.length; node++) {
    const parent = parents[node]!;
    if (parent === 0) continue;
    pools[node] = pools[parent];
    sinceWait[node] = waits[nodeFrames[node]!] ? 0 : Math.min(sinceWait[parent]! + 1, MAX_BELOW_WAIT);
    if (pools[node] !== undefined || sinceWait[node] === MAX_BELOW_WAIT) continue;
    const pool = idlePool(pathTo(node, { frames, parents, nodeFrames }));
    if (pool !== undefined) pools[node] = frameOf(pool, known);
  }
  return pools;
}

/** The frames of the program, the outermost first. */
function pathTo(node: number, { frames, parents, nodeFrames }: Stacks): Frame[] {
  const path: Frame[] = [];
  for (let at = node; parents[at] !== 0; at = parents[at]!) {
    const frame = frames[nodeFrames[at]!]!;
    if (frame.kind !== 'kernel') path.push(frame);
  }
  return path.reverse();
}

function frameOf(pool: string, known: Map<string, Frame>): Frame {
  const frame = known.get(pool) ?? { name: idleFrameName(pool), file: '', mapping: '', kind: 'native' };
  known.set(pool, frame);
  return frame;
}
