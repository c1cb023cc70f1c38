/**
 * speedscope's own JSON: https://www.speedscope.app/file-format-schema.json. A thread is one `sampled` profile, weighted in
 * nanoseconds where values are times, in bytes where they are sizes.
 */
import {
  at,
  isObject,
  type Json,
  list,
  natural,
  object,
  readOwnHeader,
  text,
  toBytes,
} from '../model/json.ts';
import { emptyProfile, type Profile } from '../model/profile.ts';
import { frameOfName, markKernel, type Owner, ProfileBuilder } from '../model/profile-builder.ts';
import {
  cpuType,
  isCpuType,
  MAX_VALUE,
  measureOf,
  NO_PERIOD,
  type ProfileType,
  typeKey,
  typeName,
} from '../model/profile-type.ts';
import { ReadBudget } from '../model/read-limits.ts';
import { ROOT } from '../model/stack-tree.ts';
import { readMark, splitThreads } from './thread-groups.ts';

/** Those that the format has. */
const UNITS: ReadonlySet<string> = new Set([
  'bytes',
  'nanoseconds',
  'microseconds',
  'milliseconds',
  'seconds',
]);
const SCHEMA = 'https://www.speedscope.app/file-format-schema.json';

export function writeSpeedscope(profile: Profile): Uint8Array {
  const { frames, threads, header } = splitThreads(profile);
  const { unit, scale } = measureOf(profile.type);
  const profiles = threads.map(({ samples, mark, ...owner }) => {
    const weights = samples.map(({ value }) => value * scale);
    return {
      type: 'sampled',
      name: ownerName(owner),
      unit: UNITS.has(unit) ? unit : 'none',
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
    name: isCpuType(profile.type) ? 'everyframe' : `everyframe ${typeName(profile.type)}`,
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

/** A profile for each kind of unit in the file. @throws Error where the file contradicts its format */
export function readSpeedscope(value: unknown, budget = new ReadBudget()): Profile[] {
  if (!isSpeedscope(value)) throw new Error('it has no "shared" frames and "profiles"');
  const file = value as Json;
  const header = emptyProfile();
  const own = readOwnHeader(header, file['everyframe']) ? header : undefined;
  const builders = new Map<string, UnitReader>();
  for (const entry of list(file['profiles'])) {
    const unit = text(object(entry)['unit']);
    const { type, scale } = own ? { type: own.type, scale: measureOf(own.type).scale } : typeOfUnit(unit);
    let reader = builders.get(typeKey(type));
    if (!reader) {
      reader = new UnitReader(file, { ...header, type }, own !== undefined, budget);
      builders.set(typeKey(type), reader);
    }
    reader.read(object(entry), scale);
  }
  return builders.size === 0 ? [header] : [...builders.values()].map(({ profile }) => profile);
}

/** Reads what is of one type. */
class UnitReader {
  readonly #builder: ProfileBuilder;
  readonly #locations: number[];
  readonly #isOwn: boolean;

  constructor(file: Json, header: Profile, isOwn: boolean, budget: ReadBudget) {
    this.#builder = new ProfileBuilder(budget);
    this.#isOwn = isOwn;
    const { timeUnixNano, durationNano, type, host } = header;
    Object.assign(this.#builder.profile, { timeUnixNano, durationNano, type, host });
    this.#locations = list(object(file['shared'])['frames']).map((entry) => {
      const frame = object(entry);
      const { name, frameType } = frameOfName(text(frame['name']));
      const place = { line: natural(frame['line']), column: natural(frame['col']) };
      return this.#builder.location({ name, frameType, file: text(frame['file']), ...place });
    });
  }

  get profile(): Profile {
    return this.#builder.profile;
  }

  read(one: Json, scale: number): void {
    const builder = this.#builder;
    const other = { process: text(one['name']), pid: 0, tid: 0, thread: '' };
    const owner = (this.#isOwn && readMark(one['everyframe'])) || other;
    const paths: Paths = {
      enter: (caller, frame) => builder.enter(caller, at(this.#locations, frame, 'frame')),
      add(node, weight) {
        const value = Math.round(weight / scale);
        if (value > 0 && value <= MAX_VALUE) builder.add(builder.stackAt(node), owner, value);
      },
    };
    if (one['type'] === 'evented') readEvents(one, paths);
    else readSamples(one, paths);
  }
}

const NANOS: ReadonlyMap<string, number> = new Map([
  ['nanoseconds', 1],
  ['microseconds', 1e3],
  ['milliseconds', 1e6],
  ['seconds', 1e9],
]);

/** Times of other programs are counted in nanoseconds, sizes in bytes, and what has no unit as samples; the weight of 1 of them. */
function typeOfUnit(unit: string): { type: ProfileType; scale: number } {
  const nanos = NANOS.get(unit);
  if (nanos !== undefined)
    return { type: { ...cpuType(1n), sampleType: { type: 'cpu', unit: 'nanoseconds' } }, scale: 1 / nanos };
  if (unit === 'bytes') return { type: { ...NO_PERIOD, sampleType: { type: 'memory', unit } }, scale: 1 };
  return { type: cpuType(0n), scale: 1 };
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
