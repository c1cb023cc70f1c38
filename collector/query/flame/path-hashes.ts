import { type Hashes, hashFrame, hashPaths, type PathHash } from '../../../common/flame/path-key.ts';
import type { Frame, Stacks } from '../../store/store.ts';

/** Frames outlive the answers that name them. */
const OF_FRAMES = new WeakMap<Frame, PathHash>();
const OF_STACKS = new WeakMap<Stacks, Hashes>();

export function frameHash(frame: Frame): PathHash {
  let hash = OF_FRAMES.get(frame);
  if (hash === undefined) {
    hash = hashFrame(frame);
    OF_FRAMES.set(frame, hash);
  }
  return hash;
}

/** Of each node. */
export function pathHashes(stacks: Stacks): Hashes {
  let hashes = OF_STACKS.get(stacks);
  if (hashes === undefined) {
    const { frames, nodeFrames, parents } = stacks;
    const ofFrames: PathHash[] = [];
    hashes = hashPaths(parents, (node) => {
      const frame = nodeFrames[node]!;
      ofFrames[frame] ??= frameHash(frames[frame]!);
      return ofFrames[frame];
    });
    OF_STACKS.set(stacks, hashes);
  }
  return hashes;
}
