/** A bound on the depth of stacks out of files: a text report repeats a stack's callers once for each of its frames. */
import { mergeProfiles } from './merge.ts';
import type { Profile } from './profile.ts';

/** Four times what the agent and Linux's perf record. */
const MAX_FRAMES = 4096;
const MARKER = `[cut: deeper than ${MAX_FRAMES} frames]`;

/** Where a stack is deeper its innermost frames are left, and a marker in place of its root. */
export function cutDeepStacks(profile: Profile): Profile {
  const { functions, locations, stacks } = profile;
  if (stacks.every(({ length }) => length <= MAX_FRAMES)) return profile;
  const func = { name: MARKER, systemName: '', filename: '', startLine: 0 };
  const lines = [{ func: functions.length, line: 0, column: 0 }];
  const cut = {
    ...profile,
    functions: [...functions, func],
    locations: [...locations, { mapping: 0, address: 0n, frameType: 'abort-marker' as const, lines }],
    stacks: stacks.map((stack) =>
      stack.length <= MAX_FRAMES ? stack : Uint32Array.of(...stack.subarray(0, MAX_FRAMES), locations.length),
    ),
  };
  return mergeProfiles([cut]);
}
