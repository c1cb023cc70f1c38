/** A bound on the depth of stacks out of files: what writes or draws them has a row for each of their frames. */
import { mergeProfiles } from './merge.ts';
import type { Line, Location, Profile } from './profile.ts';
import type { ReadBudget } from './read-limits.ts';

/** 50 times what the agent and Linux's perf record. */
const MAX_FRAMES = 65_536;
const OUTERMOST = MAX_FRAMES >> 1;
const INNERMOST = MAX_FRAMES - OUTERMOST - 1;
const MARKER = `[cut: frames in the middle of a stack deeper than ${MAX_FRAMES}]`;
/** Calls at one place that were compiled into each other; of real programs a hundred. */
const MAX_LINES = 1024;
/** Of a frame that was compiled into another one, for who draws it. */
const INLINED_BYTES = 16;

/**
 * Where a stack is deeper, its root's end and its leaf's are left, and a marker between them: both keep their totals. So it
 * is with calls that were compiled into each other at one place.
 *
 * @param profiles of one file: they share their tables
 * @throws ReadLimitError: a stack has a number for each place, and a frame for each line of it
 */
export function cutDeepStacks(profiles: readonly Profile[], budget: ReadBudget): readonly Profile[] {
  const { functions, locations, stacks } = profiles[0]!;
  const depths = Uint32Array.from(locations, ({ lines }) => Math.min(Math.max(1, lines.length), MAX_LINES));
  let isDeep = locations.some(({ lines }) => lines.length > MAX_LINES);
  for (const stack of stacks) {
    const depth = depthOf(stack, depths);
    isDeep ||= depth > MAX_FRAMES;
    const inlined = Math.min(depth, MAX_FRAMES) - Math.min(stack.length, MAX_FRAMES);
    if (inlined > 0) budget.spend('frames of stacks', INLINED_BYTES * inlined, inlined);
  }
  if (!isDeep) return profiles;
  const marker: Line = { func: functions.length, line: 0, column: 0 };
  const cut = {
    functions: [...functions, { name: MARKER, systemName: '', filename: '', startLine: 0 }],
    locations: [...locations.map((one) => cutLines(one, marker)), markerPlace(marker)],
    stacks: stacks.map((stack) =>
      depthOf(stack, depths) <= MAX_FRAMES ? stack : cutStack(stack, depths, locations.length),
    ),
  };
  return mergeProfiles(profiles.map((profile) => ({ ...profile, ...cut })));
}

const markerPlace = (marker: Line): Location => ({
  ...{ mapping: 0, address: 0n, frameType: 'abort-marker', lines: [marker] },
});

function depthOf(stack: Uint32Array, depths: Uint32Array): number {
  let depth = 0;
  for (let i = 0; i < stack.length; i++) depth += depths[stack[i]!]!;
  return depth;
}

function cutLines(location: Location, marker: Line): Location {
  const { lines } = location;
  if (lines.length <= MAX_LINES) return location;
  const half = MAX_LINES >> 1;
  return { ...location, lines: [...lines.slice(0, half - 1), marker, ...lines.slice(-half)] };
}

function cutStack(stack: Uint32Array, depths: Uint32Array, marker: number): Uint32Array {
  const inner = placesWithin(stack, depths, INNERMOST);
  const outer = placesWithin(stack.toReversed(), depths, OUTERMOST);
  return Uint32Array.of(...stack.subarray(0, inner), marker, ...stack.subarray(stack.length - outer));
}

/** How many of the first places have no more frames than that together. */
function placesWithin(stack: Uint32Array, depths: Uint32Array, frames: number): number {
  let count = 0;
  let left = frames - depths[stack[0]!]!;
  while (left >= 0) left -= depths[stack[++count]!]!;
  return count;
}
