/**
 * Filters: `process=node,python3 host!=db1 thread~"^worker" cpu=0 kind=kernel`. All terms must hold; the values of
 * one term are alternatives. `~` is an unanchored regular expression.
 */
import type { SamplePart, Series, StackCounts } from './store.ts';

export type Operator = '=' | '!=' | '~' | '!~';

export interface Matcher {
  key: string;
  operator: Operator;
  values: readonly string[];
}

/** Which rows of a part a filter wants: see RowQuery. */
export interface RowMasks {
  series: Uint8Array | undefined;
  nodes: Uint8Array | undefined;
  cpus: Uint8Array | undefined;
}

/** A filter that can't be read; the message says where. */
export class FilterError extends Error {
  override name = 'FilterError';
}

const SERIES_KEYS: Record<string, (series: Series) => string> = {
  process: ({ process }) => process,
  host: ({ host }) => host,
  service: ({ service }) => service,
  container: ({ containerId }) => containerId,
  thread: ({ thread }) => thread,
  pid: ({ pid }) => String(pid),
  tid: ({ tid }) => String(tid),
  path: ({ path }) => path,
  command: ({ command }) => command,
  cgroup: ({ cgroup }) => cgroup,
};

/** OpenTelemetry's names of the same things. */
const ALIASES: Record<string, string> = {
  'process.executable.name': 'process',
  'process.executable.path': 'path',
  'process.command': 'command',
  'process.pid': 'pid',
  'process.linux.cgroup': 'cgroup',
  'host.name': 'host',
  'service.name': 'service',
  'container.id': 'container',
  'thread.name': 'thread',
  'thread.id': 'tid',
  'cpu.logical_number': 'cpu',
  'profile.frame.type': 'kind',
};

/** Linux allows at most 8,192 CPUs. */
export const MAX_CPUS = 8192;
const NODE_KEYS = ['kind', 'frame'];
export const SERIES_LABELS: readonly string[] = Object.keys(SERIES_KEYS);
export const LABELS: readonly string[] = [...SERIES_LABELS, 'cpu', ...NODE_KEYS];

const MAX_TERMS = 64;
const MAX_LENGTH = 4096;

const TERM =
  /\s*([A-Za-z_][\w.]*)\s*(!=|!~|=|~)\s*((?:"(?:[^"\\]|\\.)*"|[^\s",]+)(?:,(?:"(?:[^"\\]|\\.)*"|[^\s",]+))*)\s*/y;
const VALUE = /"((?:[^"\\]|\\.)*)"|[^\s",]+/g;

/** @throws FilterError */
export function parseFilter(text: string): Matcher[] {
  if (text.length > MAX_LENGTH) throw new FilterError(`the filter is longer than ${MAX_LENGTH} characters`);
  const matchers: Matcher[] = [];
  TERM.lastIndex = 0;
  for (let at = 0; at < text.trimEnd().length; at = TERM.lastIndex) {
    TERM.lastIndex = at;
    const match = TERM.exec(text);
    if (match === null) {
      throw new FilterError(
        `"${text.slice(at)}" is no filter: write KEY=VALUE, such as process=node cpu=0,1`,
      );
    }
    matchers.push(readTerm(match[1]!, match[2] as Operator, match[3]!));
    if (matchers.length > MAX_TERMS) throw new FilterError(`the filter has more than ${MAX_TERMS} terms`);
  }
  return matchers;
}

function readTerm(name: string, operator: Operator, text: string): Matcher {
  const key = labelOf(name);
  const values = [...text.matchAll(VALUE)].map(([plain, quoted]) =>
    quoted === undefined ? plain : quoted.replace(/\\(.)/g, '$1'),
  );
  if (operator.endsWith('~')) for (const value of values) toRegExp(value);
  return { key, operator, values };
}

/** @throws FilterError naming the known keys */
export function labelOf(name: string): string {
  const key = Object.hasOwn(ALIASES, name) ? ALIASES[name]! : name;
  if (!LABELS.includes(key)) throw new FilterError(`"${name}" is no key: use one of ${LABELS.join(', ')}`);
  return key;
}

function toRegExp(source: string): RegExp {
  try {
    return new RegExp(source, 'u');
  } catch (error) {
    throw new FilterError(`"${source}" is no regular expression: ${(error as Error).message}`);
  }
}

/** Value of a label that all samples of a series share. */
export function seriesValue(series: Series, key: string): string {
  return SERIES_KEYS[key]!(series);
}

export async function compileMasks(where: readonly Matcher[], part: SamplePart): Promise<RowMasks> {
  const masks: RowMasks = { series: undefined, nodes: undefined, cpus: undefined };
  for (const matcher of where) {
    const test = tester(matcher);
    if (matcher.key === 'cpu') {
      masks.cpus = both(
        masks.cpus,
        Uint8Array.from({ length: MAX_CPUS }, (_, cpu) => bit(test(String(cpu)))),
      );
    } else if (NODE_KEYS.includes(matcher.key)) {
      masks.nodes = both(masks.nodes, nodeMask(matcher, await part.stacks()));
    } else {
      const read = SERIES_KEYS[matcher.key]!;
      masks.series = both(
        masks.series,
        Uint8Array.from(part.series, (series) => bit(test(read(series)))),
      );
    }
  }
  return masks;
}

/** A stack matches if one of its frames does, and a negated term if none does. */
function nodeMask(
  matcher: Matcher,
  { frames, parents, nodeFrames }: Omit<StackCounts, 'selfCounts'>,
): Uint8Array {
  const negated = matcher.operator.startsWith('!');
  const test = tester({ ...matcher, operator: matcher.operator.endsWith('~') ? '~' : '=' });
  const hits = frames.map(
    (frame) => frame.kind !== 'process' && test(matcher.key === 'kind' ? frame.kind : frame.name),
  );
  const mask = new Uint8Array(parents.length);
  for (let node = 1; node < parents.length; node++) {
    mask[node] = hits[nodeFrames[node]!] ? 1 : mask[parents[node]!]!;
  }
  return negated ? mask.map((one) => 1 - one) : mask;
}

function tester({ operator, values }: Matcher): (text: string) => boolean {
  const negated = operator.startsWith('!');
  if (!operator.endsWith('~')) {
    const set = new Set(values);
    return (text) => set.has(text) !== negated;
  }
  const patterns = values.map(toRegExp);
  return (text) => patterns.some((pattern) => pattern.test(text)) !== negated;
}

const bit = (wanted: boolean): number => (wanted ? 1 : 0);

function both(a: Uint8Array | undefined, b: Uint8Array): Uint8Array {
  return a === undefined ? b : b.map((one, i) => one & a[i]!);
}
