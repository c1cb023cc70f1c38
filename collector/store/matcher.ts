/** Masks of the rows of a part that a filter wants. */

import {
  type AttributeLabel,
  FRAME_LABELS,
  isAttributeLabel,
  isLinkLabel,
  isSeriesLabel,
  type LinkLabel,
  type Matcher,
  type SeriesLabel,
  toPattern,
} from '../../common/profile/filters/filter.ts';
import { readAttributes } from '../../common/profile/model/attributes.ts';
import type { PartLinks } from './part-links.ts';
import type { Series, SeriesGroup } from './series.ts';
import type { SamplePart, Stacks } from './store.ts';

/** Masks of the rows of a part that a filter wants: see RowQuery. */
export interface RowMasks {
  series: Uint8Array | undefined;
  groups: Uint8Array | undefined;
  nodes: Uint8Array | undefined;
  cpus: Uint8Array | undefined;
  links: Uint8Array | undefined;
}

type NamedGroupLabel = Exclude<SeriesLabel, 'pid' | 'tid'>;
type GroupLabel = NamedGroupLabel | AttributeLabel;

const GROUP_KEYS: Record<NamedGroupLabel, (group: SeriesGroup) => string> = {
  process: ({ process }) => process,
  host: ({ host }) => host,
  service: ({ service }) => service,
  container: ({ containerId }) => containerId,
  thread: ({ thread }) => thread,
  path: ({ path }) => path,
  command: ({ command }) => command,
  cgroup: ({ cgroup }) => cgroup,
};

/** Linux allows at most 8,192 CPUs. */
export const MAX_CPUS = 8192;

/** True if all series of a group have one value of the label. */
export const isGroupLabel = (key: SeriesLabel | AttributeLabel): key is GroupLabel =>
  key !== 'pid' && key !== 'tid';

/** Value of a label that all samples of a group share. */
export function groupValue(group: SeriesGroup, key: GroupLabel): string {
  if (isAttributeLabel(key)) return readAttributes(group.attributes).get(key.slice(1)) ?? '';
  return GROUP_KEYS[key](group);
}

/** Value of a label that all samples of a series share. */
export function seriesValue(series: Series, key: SeriesLabel | AttributeLabel): string {
  return isGroupLabel(key) ? groupValue(series, key) : String(series[key]);
}

export const EVERYTHING: Readonly<RowMasks> = {
  series: undefined,
  groups: undefined,
  nodes: undefined,
  cpus: undefined,
  links: undefined,
};

export async function compileMasks(where: readonly Matcher[], part: SamplePart): Promise<RowMasks> {
  const masks = { ...EVERYTHING };
  for (const matcher of where) {
    const test = tester(matcher);
    if (matcher.key === 'cpu') {
      masks.cpus = both(
        masks.cpus,
        Uint8Array.from({ length: MAX_CPUS }, (_, cpu) => bit(test(String(cpu)))),
      );
    } else if (isLinkLabel(matcher.key)) {
      masks.links = both(masks.links, linkMask(matcher, matcher.key, await part.links()));
    } else if (FRAME_LABELS.includes(matcher.key)) {
      masks.nodes = both(masks.nodes, nodeMask(matcher, await part.stacks()));
    } else if (isSeriesLabel(matcher.key) || isAttributeLabel(matcher.key)) {
      const { key } = matcher;
      if (isGroupLabel(key)) {
        masks.groups = both(
          masks.groups,
          Uint8Array.from(part.groups, (group) => bit(test(groupValue(group, key)))),
        );
      } else {
        masks.series = both(masks.series, idMask((await part.series()).ids(key), test));
      }
    }
  }
  return masks;
}

/** Threads of a process have one PID: what was found out of one is not asked again of the next. */
function idMask(ids: Float64Array, test: (text: string) => boolean): Uint8Array {
  let last: number | undefined;
  let wanted = 0;
  return Uint8Array.from(ids, (id) => {
    if (id !== last) wanted = bit(test(String(id)));
    last = id;
    return wanted;
  });
}

function linkMask(matcher: Matcher, label: LinkLabel, links: PartLinks): Uint8Array {
  const { operator, values } = matcher;
  if (operator.endsWith('~')) {
    const test = tester(matcher);
    return Uint8Array.from({ length: links.length }, (_, id) => bit(test(links.value(id, label))));
  }
  const mask = links.having(label, values);
  return operator === '=' ? mask : mask.map((one) => 1 - one);
}

/** A stack matches if one of its frames does, and a negated term if none does. */
function nodeMask(matcher: Matcher, { frames, parents, nodeFrames }: Stacks): Uint8Array {
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

/** Returns a test of process names; undefined if more than the name decides. */
export function processTest(where: readonly Matcher[]): ((name: string) => boolean) | undefined {
  if (where.some(({ key }) => key !== 'process')) return undefined;
  const tests = where.map(tester);
  return (name) => tests.every((test) => test(name));
}

function tester({ operator, values }: Matcher): (text: string) => boolean {
  const negated = operator.startsWith('!');
  if (!operator.endsWith('~')) {
    const set = new Set(values);
    return (text) => set.has(text) !== negated;
  }
  const patterns = values.map(toPattern);
  return (text) => patterns.some((pattern) => pattern.test(text)) !== negated;
}

const bit = (wanted: boolean): number => (wanted ? 1 : 0);

function both(a: Uint8Array | undefined, b: Uint8Array): Uint8Array {
  return a === undefined ? b : b.map((one, i) => one & a[i]!);
}
