/** Names of the perf subsystem's events, as perf(1) has them, by their numbers in include/uapi/linux/perf_event.h. */

const TYPE_HARDWARE = 0;
const TYPE_SOFTWARE = 1;
const TYPE_CACHE = 3;
const TYPE_RAW = 4;

const SOFTWARE: Readonly<Record<string, number>> = {
  'page-faults': 2,
  'context-switches': 3,
  'cpu-migrations': 4,
  'minor-faults': 5,
  'major-faults': 6,
  'alignment-faults': 7,
  'emulation-faults': 8,
};

const HARDWARE: Readonly<Record<string, number>> = {
  cycles: 0,
  instructions: 1,
  'cache-references': 2,
  'cache-misses': 3,
  branches: 4,
  'branch-misses': 5,
  'bus-cycles': 6,
  'stalled-cycles-frontend': 7,
  'stalled-cycles-backend': 8,
  'ref-cycles': 9,
};

const CACHES = ['L1-dcache', 'L1-icache', 'LLC', 'dTLB', 'iTLB', 'branch', 'node'];
const OPERATIONS = ['load', 'store', 'prefetch'];
const CACHE_EVENT = new RegExp(
  `^(${CACHES.join('|')})-(?:(${OPERATIONS.join('|')})(?:(?<=h)es|(?<!h)s|-(misses)))$`,
);
/** Of instructions and branches nothing is stored; prefetching is the first level's. */
const IMPOSSIBLE = /^(?:L1-icache-store|(?:iTLB|branch)-(?:store|prefetch))/;

/** What the processor's manual says, hexadecimal: such a number still fits a number here. */
const RAW = /^r([0-9a-f]{1,13})$/i;

/** Names that perf(1) has as well. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  faults: 'page-faults',
  cs: 'context-switches',
  migrations: 'cpu-migrations',
  'cpu-cycles': 'cycles',
  'branch-instructions': 'branches',
};

export const PERF_FORMS = [
  ...Object.keys(SOFTWARE),
  ...Object.keys(HARDWARE),
  'LLC-load-misses and others of L1-dcache, L1-icache, LLC, dTLB, iTLB, branch and node',
  'rNNN',
];

/** As perf_event_open(2) takes them. */
export interface PerfEventNumbers {
  /** One of those that perf(1) has for it. */
  name: string;
  type: number;
  config: number;
  /** It is counted by the processor, and sampled by its number; else each one is an event. */
  isHardware: boolean;
}

/** Undefined: there is none of that name. */
export function findPerfEvent(text: string): PerfEventNumbers | undefined {
  const name = OTHER_NAMES[text] ?? text;
  if (Object.hasOwn(SOFTWARE, name))
    return { name, type: TYPE_SOFTWARE, config: SOFTWARE[name]!, isHardware: false };
  if (Object.hasOwn(HARDWARE, name)) return hardware(name, TYPE_HARDWARE, HARDWARE[name]!);
  const raw = RAW.exec(name)?.[1];
  if (raw !== undefined) return hardware(name, TYPE_RAW, Number.parseInt(raw, 16));
  const [, cache, operation, misses] = CACHE_EVENT.exec(name) ?? [];
  if (cache === undefined || IMPOSSIBLE.test(name)) return undefined;
  const config = CACHES.indexOf(cache) | (OPERATIONS.indexOf(operation!) << 8) | (misses ? 1 << 16 : 0);
  return hardware(name, TYPE_CACHE, config);
}

const hardware = (name: string, type: number, config: number): PerfEventNumbers => ({
  ...{ name, type, config, isHardware: true },
});
