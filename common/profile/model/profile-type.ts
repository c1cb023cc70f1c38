/**
 * What the values of a profile count: the sample type and unit of pprof and OTLP, with the period type that says how the
 * samples were taken. A type has a name for people and for addresses (`off_cpu/nanoseconds`), and a key for tables.
 */

/** pprof's and OTLP's ValueType: `samples` in `count`, `alloc_space` in `bytes`, `off_cpu` in `nanoseconds`. */
export interface ValueType {
  type: string;
  unit: string;
}

export interface ProfileType {
  /** What a value is, and its unit. */
  sampleType: ValueType;
  /** What passes between two samples; both texts are empty where the sender does not say. */
  periodType: ValueType;
  /** How much of it, in the unit of `periodType`: nanoseconds of CPU time, bytes allocated; 0 for unknown. */
  period: bigint;
}

/**
 * How values of different times go together: a `rate` adds up (CPU samples, bytes allocated, time waited); a `level` is the
 * state at one time (bytes in use, goroutines), so that its last value or its mean says something and a sum does not.
 */
export type ValueKind = 'rate' | 'level';

/** Stands for CPU samples wherever a type is named. */
export const CPU_ALIAS = 'cpu';

/** Values have 64 bits with a sign in pprof and OTLP; 1 more, which is the double nearest to the largest. */
export const MAX_VALUE = 2 ** 63;

/** Of a type that does not say what passes between two samples. */
export const NO_PERIOD = { periodType: { type: '', unit: '' }, period: 0n } as const;

/** Whether the type says no more than that each value stands for itself, as Go's `goroutine/count`. */
export const isOwnPeriod = (type: ProfileType): boolean => type.period === 1n && isPeriodOfItself(type);

const isPeriodOfItself = ({ sampleType, periodType }: ProfileType): boolean =>
  sampleType.type === periodType.type && sampleType.unit === periodType.unit;

/** Whether it says what passes between two samples, other than what they count. */
const hasPeriodType = (type: ProfileType): boolean =>
  (type.periodType.type !== '' || type.periodType.unit !== '') && !isPeriodOfItself(type);

/** CPU samples, `period` nanoseconds of CPU time apart. */
export const cpuType = (period: bigint): ProfileType => ({
  sampleType: { type: 'samples', unit: 'count' },
  periodType: { type: 'cpu', unit: 'nanoseconds' },
  period,
});

/**
 * Sample types that are a state: Go's heap, goroutine and threadcreate profiles; `objects` and `space` of Node's heap
 * profiles and of gperftools; Datadog's live heap.
 */
const LEVELS: ReadonlySet<string> = new Set([
  'inuse_objects',
  'inuse_space',
  'goroutine',
  'goroutines',
  'threadcreate',
  'objects',
  'space',
  'heap-space',
  'heap-live-samples',
  'heap-live-size',
]);

export const valueKind = ({ sampleType }: ProfileType): ValueKind =>
  LEVELS.has(sampleType.type) ? 'level' : 'rate';

/** Whether they count samples of CPU time, which are shown unless another type is asked for. */
export const isCpuType = ({ sampleType, periodType }: ProfileType): boolean =>
  valueTypeName(sampleType) === 'samples/count' && valueTypeName(periodType) === 'cpu/nanoseconds';

/**
 * Whether values count samples of whatever passes between two of them: they can be added up where their periods are equal.
 * Node's profilers write `sample`.
 */
export const countsSamples = ({ sampleType: { type, unit } }: ProfileType): boolean =>
  unit === 'count' && (type === 'samples' || type === 'sample');

/** How much of which unit a value of 1 stands for: samples for their period of time, everything else for itself. */
export function measureOf(type: ProfileType): { unit: string; scale: number } {
  const { sampleType, periodType, period } = type;
  const isTime = countsSamples(type) && periodType.unit === 'nanoseconds' && period > 0n;
  return isTime ? { unit: 'nanoseconds', scale: Number(period) } : { unit: sampleType.unit, scale: 1 };
}

export const valueTypeName = ({ type, unit }: ValueType): string => `${type}/${unit}`;

/** What {@link valueTypeName} made the text of. */
export function parseValueType(name: string): ValueType {
  const slash = name.lastIndexOf('/');
  return slash < 0 ? { type: name, unit: '' } : { type: name.slice(0, slash), unit: name.slice(slash + 1) };
}

/** `off_cpu/nanoseconds`. Two types of one list may share it: see {@link typeNames}. */
export const typeName = ({ sampleType }: ProfileType): string => valueTypeName(sampleType);

/**
 * Types with equal keys are one, whatever their periods: `samples/count:cpu/nanoseconds`, `off_cpu/nanoseconds`. What divides
 * the parts of a key is escaped inside of them: a sender may write anything into a name.
 */
export function typeKey(type: ProfileType): string {
  const { sampleType, periodType } = type;
  const key = `${escaped(sampleType.type, /[%/]/g)}/${escaped(sampleType.unit)}`;
  return hasPeriodType(type) ? `${key}:${escaped(periodType.type)}/${escaped(periodType.unit)}` : key;
}

/** A colon in the first part of a key, as in `sched:sched_switch`, divides nothing. */
const escaped = (text: string, dividers = /[%/:]/g): string => text.replace(dividers, encodeURIComponent);

/** The names by which the types of one list are told apart: the key where another type has the same name. */
export function typeNames(types: readonly ProfileType[]): string[] {
  const keysByName = new Map<string, Set<string>>();
  for (const type of types) {
    const keys = keysByName.get(typeName(type)) ?? new Set();
    keysByName.set(typeName(type), keys.add(typeKey(type)));
  }
  return types.map((type) => (keysByName.get(typeName(type))!.size > 1 ? typeKey(type) : typeName(type)));
}

/** A type that is not there, or that could be several; the message lists those that are. */
export class UnknownTypeError extends Error {
  override readonly name = 'UnknownTypeError';
}

/**
 * The index of the type that a person means by `name`: `cpu`, a name or key, or the sample type without its unit where
 * that is clear (`alloc_space`).
 *
 * @throws UnknownTypeError
 */
export function findType(types: readonly ProfileType[], name: string): number {
  if (name === CPU_ALIAS) {
    const cpu = types.findIndex(isCpuType);
    if (cpu >= 0) return cpu;
  }
  const tests: ((type: ProfileType) => boolean)[] = [
    (type) => typeKey(type) === name,
    (type) => typeName(type) === name,
    ({ sampleType }) => sampleType.type === name,
  ];
  for (const test of tests) {
    const found = types.findIndex(test);
    if (found < 0) continue;
    const keys = new Set(types.filter(test).map(typeKey));
    if (keys.size === 1) return found;
    throw new UnknownTypeError(`several types are named "${name}": write one of ${listOf(keys)}`);
  }
  const known = types.length === 0 ? 'there is none' : `there are ${listOf(typeNames(types))}`;
  throw new UnknownTypeError(`no samples of the type "${name}": ${known}`);
}

const listOf = (names: Iterable<string>): string => [...new Set(names)].join(', ');
