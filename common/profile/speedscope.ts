/**
 * speedscope's own JSON: https://www.speedscope.app/file-format-schema.json. A thread is one `sampled` profile,
 * weighted in nanoseconds of CPU time.
 */
import { at, isObject, type Json, list, natural, object, readOwnHeader, text, toBytes } from './json.ts';
import type { Profile } from './profile.ts';
import { frameOfName, markKernel, type Owner, ProfileBuilder } from './profile-builder.ts';
import type { ReadBudget } from './read-limits.ts';
import { ROOT } from './stack-tree.ts';
import { readMark, splitThreads } from './thread-groups.ts';

const SCHEMA = 'https://www.speedscope.app/file-format-schema.json';

export function writeSpeedscope(profile: Profile): Uint8Array {
  const { frames, threads, header } = splitThreads(profile);
  const period = Number(profile.period) || 1;
  const profiles = threads.map(({ samples, mark, ...owner }) => {
    const weights = samples.map(({ count }) => count * period);
    return {
      type: 'sampled',
      name: ownerName(owner),
      unit: profile.period > 0n ? 'nanoseconds' : 'none',
      startValue: 0,
      endValue: weights.reduce((sum, weight) => sum + weight, 0),
      samples: samples.map(({ stack }) => frames.ofStack(stack)),
      weights,
      everyframe: mark,
    };
  });
  return toBytes({
    $schema: SCHEMA,
    exporter: 'everyframe',
    name: 'everyframe',
    activeProfileIndex: 0,
    shared: {
      frames: frames.frames.map(({ name, file, line, column, frameType }) => ({
        name: markKernel(name, frameType),
        ...(file !== '' && { file }),
        ...(line > 0 && { line }),
        ...(column > 0 && { col: column }),
      })),
    },
    profiles,
    everyframe: header,
  });
}

const ownerName = ({ process, pid, tid, thread }: Owner): string =>
  `${process} (${pid})${thread === '' || thread === process ? '' : ` ${thread}`}${tid === pid ? '' : ` [${tid}]`}`;

export const isSpeedscope = (value: unknown): boolean =>
  isObject(value) && isObject(value['shared']) && Array.isArray(value['profiles']);

/** @throws Error where the file contradicts its format */
export function readSpeedscope(value: unknown, budget?: ReadBudget): Profile {
  if (!isSpeedscope(value)) throw new Error('it has no "shared" frames and "profiles"');
  const file = value as Json;
  const builder = new ProfileBuilder(budget);
  const isOwn = readOwnHeader(builder.profile, file['everyframe']);
  const locations = list(object(file['shared'])['frames']).map((entry) => {
    const frame = object(entry);
    const { name, frameType } = frameOfName(text(frame['name']));
    const place = { line: natural(frame['line']), column: natural(frame['col']) };
    return builder.location({ name, frameType, file: text(frame['file']), ...place });
  });
  for (const entry of list(file['profiles'])) {
    const one = object(entry);
    const other = { process: text(one['name']), pid: 0, tid: 0, thread: '' };
    const owner = (isOwn && readMark(one['everyframe'])) || other;
    const scale = isOwn ? Number(builder.profile.period) : 1 / unitNanos(builder.profile, text(one['unit']));
    const paths: Paths = {
      enter: (caller, frame) => builder.enter(caller, at(locations, frame, 'frame')),
      add(node, weight) {
        const count = Math.round(weight / scale);
        if (count > 0) builder.add(builder.stackAt(node), owner, count);
      },
    };
    if (one['type'] === 'evented') readEvents(one, paths);
    else readSamples(one, paths);
  }
  return builder.profile;
}

const NANOS: Record<string, number> = { nanoseconds: 1, microseconds: 1e3, milliseconds: 1e6, seconds: 1e9 };

/** Times of other programs are counted in nanoseconds; what is no time in its own unit. */
function unitNanos(profile: Profile, unit: string): number {
  const nanos = NANOS[unit];
  profile.period = 1n;
  if (nanos === undefined) return 1;
  profile.sampleType = { type: 'cpu', unit: 'nanoseconds' };
  return nanos;
}

/** Stacks as nodes of a tree: 0 is its root. */
interface Paths {
  enter(caller: number, frame: unknown): number;
  add(node: number, weight: number): void;
}

function readSamples(profile: Json, paths: Paths): void {
  const weights = list(profile['weights']);
  for (const [i, sample] of list(profile['samples']).entries()) {
    let node = ROOT;
    for (const frame of list(sample)) node = paths.enter(node, frame);
    paths.add(node, Number(weights[i] ?? 1));
  }
}

/** Opening and closing events: the time between two of them belongs to what is open. */
function readEvents(profile: Json, paths: Paths): void {
  const open: { frame: unknown; node: number }[] = [];
  let since = Number(profile['startValue'] ?? 0);
  for (const entry of list(profile['events'])) {
    const { type, at: time, frame } = object(entry);
    const node = open.at(-1)?.node ?? ROOT;
    if (open.length > 0) paths.add(node, Number(time) - since);
    since = Number(time);
    if (type === 'O') open.push({ frame, node: paths.enter(node, frame) });
    else if (open.pop()?.frame !== frame) throw new Error(`frame ${frame} is closed out of order`);
  }
}
