/** A bound on the depth of stacks out of files: what writes or draws them has a row for each of their frames. */
import { mergeProfiles } from './merge.ts';
import type { Profile } from './profile.ts';

/** 50 times what the agent and Linux's perf record. */
const MAX_FRAMES = 65_536;
const OUTERMOST = MAX_FRAMES >> 1;
const INNERMOST = MAX_FRAMES - OUTERMOST - 1;
const MARKER = `[cut: frames in the middle of a stack deeper than ${MAX_FRAMES}]`;

/**
 * Where a stack is deeper, its root's end and its leaf's are left, and a marker between them: both keep their totals.
 *
 * @param profiles of one file: they share their tables
 */
export function cutDeepStacks(profiles: readonly Profile[]): readonly Profile[] {
  const { functions, locations, stacks } = profiles[0]!;
  if (stacks.every(({ length }) => length <= MAX_FRAMES)) return profiles;
  const func = { name: MARKER, systemName: '', filename: '', startLine: 0 };
  const lines = [{ func: functions.length, line: 0, column: 0 }];
  const cut = {
    functions: [...functions, func],
    locations: [...locations, { mapping: 0, address: 0n, frameType: 'abort-marker' as const, lines }],
    stacks: stacks.map((stack) => (stack.length <= MAX_FRAMES ? stack : cutStack(stack, locations.length))),
  };
  return mergeProfiles(profiles.map((profile) => ({ ...profile, ...cut })));
}

function cutStack(stack: Uint32Array, marker: number): Uint32Array {
  const cut = new Uint32Array(MAX_FRAMES);
  cut.set(stack.subarray(0, INNERMOST));
  cut[INNERMOST] = marker;
  cut.set(stack.subarray(stack.length - OUTERMOST), INNERMOST + 1);
  return cut;
}
