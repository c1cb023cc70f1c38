/** Answers of the query API as text within a number of lines; for people, scripts and language models alike. */

import { mayBeChance } from '../../common/profile/model/chance.ts';
import { valueFormatter } from '../../common/profile/model/value-format.ts';

/** What the figures of an answer are values of. */
export interface ShownType {
  name: string;
  type: string;
  unit: string;
  kind: 'rate' | 'level';
}

/** What every counted answer stands on. */
export interface Basis {
  /** Collectors of earlier versions have CPU samples only. */
  type?: ShownType;
  fromMs: number;
  toMs: number;
  samples: number;
  allSamples: number;
  cpuNanos: number;
}

export interface TreeColumns {
  strings: string[];
  frames: { name: number[] };
  nodes: { parent: number[]; frame: number[]; self: number[] };
}

interface FunctionRow {
  name: string;
  mapping: string;
  self: number;
  total: number;
}

const percent = (part: number, of: number): string =>
  `${(of === 0 ? 0 : (100 * part) / of).toFixed(1)}%`.padStart(6);

/** `6148 samples`, `7.05 s of waiting`. */
const amount = (value: number, type: ShownType | undefined): string =>
  isCpu(type) ? `${value} samples` : valueFormatter(type).of(value);

export const isCpu = (type: ShownType | undefined): type is undefined =>
  type === undefined || type.name === 'cpu';

/** A filter that is wrong is another matter than samples that never came. */
const nothingHint = (allSamples: number): string =>
  allSamples === 0
    ? ': no samples, look at everyframe query health'
    : ': nothing matches the filter; everyframe query labels and query values LABEL list what there is';

/** `12034 of 40112 samples, 120.3 s of CPU, 2026-01-31T12:00:00Z to 12:15:00Z`. */
export function describeBasis({ fromMs, toMs, samples, allSamples, cpuNanos, type }: Basis): string {
  const iso = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;
  const seconds = (cpuNanos / 1e9).toFixed(1);
  const hint = samples === 0 ? nothingHint(allSamples) : '';
  const time = `${iso(fromMs)} to ${iso(toMs)}${hint}`;
  if (isCpu(type)) return `${samples} of ${allSamples} samples, ${seconds} s of CPU, ${time}`;
  const what = type.kind === 'level' ? ', the last value of each process' : '';
  return `${valueFormatter(type).amount(samples)} of ${amount(allSamples, type)}${what}, ${time}`;
}

const shorten = (name: string): string => (name.length > 100 ? `${name.slice(0, 99)}…` : name);
const fileOf = (path: string): string => (path === '' ? '' : `  ${path.slice(path.lastIndexOf('/') + 1)}`);
export const leftOut = (count: number, what: string): string[] =>
  count > 0 ? [`… ${count} more ${what}: raise --limit to see them`] : [];

export function topText(answer: Basis & { functionCount: number; functions: FunctionRow[] }): string[] {
  const rows = answer.functions.map(
    ({ name, mapping, self, total }) =>
      `${percent(self, answer.samples)} ${percent(total, answer.samples)}  ${shorten(name)}${fileOf(mapping)}`,
  );
  const more = leftOut(answer.functionCount - rows.length, 'functions');
  const isNoneLeft = rows.length === 0 && answer.samples > 0;
  const none = isNoneLeft ? ['no function is left: --transform takes all of them out'] : [];
  return [describeBasis(answer), '  self  total  function', ...rows, ...more, ...none];
}

/** All stacks; transforms such as `idle=hide` may have left some out. */
export function treeText(answer: Basis & TreeColumns, limit: number): string[] {
  return [describeBasis(answer), ...describeShown(answer), ...branchesText(answer, limit)];
}

/** What the shares of a tree are of, where that is not what was found. */
function describeShown(answer: Basis & TreeColumns): string[] {
  const shown = answer.nodes.self.reduce((sum, own) => sum + own, 0);
  const share = percent(shown, answer.samples).trim();
  return answer.samples === 0 || share === '100.0%'
    ? []
    : [`shown: ${amount(shown, answer.type)}, ${share} of those above; shares below are of what is shown`];
}

/** The largest branches, whole in depth first order; `limit` lines. */
function branchesText(tree: TreeColumns, limit: number): string[] {
  const { parent, frame, self } = tree.nodes;
  const totals = self.slice();
  for (let node = totals.length - 1; node > 0; node--) totals[parent[node]!]! += totals[node]!;
  const largest = totals
    .map((_, node) => node)
    .slice(1)
    .sort((a, b) => totals[b]! - totals[a]! || a - b)
    .slice(0, limit);
  const children = new Map<number, number[]>();
  for (const node of largest) {
    const siblings = children.get(parent[node]!) ?? [];
    siblings.push(node);
    children.set(parent[node]!, siblings);
  }
  const lines: string[] = [];
  const waiting = (children.get(0) ?? []).toReversed().map((node) => ({ node, depth: 0 }));
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { node, depth } = next;
    const indent = depth > 40 ? `${' '.repeat(40)}(${depth}) ` : ' '.repeat(depth);
    const name = shorten(tree.strings[tree.frames.name[frame[node]!]!]!);
    lines.push(`${percent(totals[node]!, totals[0]!)} ${percent(self[node]!, totals[0]!)}  ${indent}${name}`);
    for (const child of (children.get(node) ?? []).toReversed())
      waiting.push({ node: child, depth: depth + 1 });
  }
  return ['  total  self', ...lines, ...leftOut(totals.length - 1 - lines.length, 'boxes, smaller ones')];
}

export function callersText(
  answer: Basis & { function: string; functionSamples: number; callers: TreeColumns; callees: TreeColumns },
  limit: number,
): string[] {
  const share = percent(answer.functionSamples, answer.samples).trim();
  const half = Math.max(1, Math.floor(limit / 2));
  return [
    describeBasis(answer),
    `${answer.function}: ${amount(answer.functionSamples, answer.type)}, ${share} of those above; shares below are of the function's`,
    'callers, away from it:',
    ...branchesText(answer.callers, half),
    'what it calls:',
    ...branchesText(answer.callees, half),
  ];
}

interface DiffRow extends FunctionRow {
  baseSelf: number;
  baseTotal: number;
  selfShareChange: number;
}

export function diffText(answer: {
  base: Basis;
  now: Basis;
  functionCount: number;
  functions: DiffRow[];
}): string[] {
  const { base, now, functions } = answer;
  const points = (share: number): string => `${share >= 0 ? '+' : ''}${(100 * share).toFixed(1)}`.padStart(6);
  const isMarked = ({ self, baseSelf }: DiffRow): boolean =>
    isCpu(now.type) &&
    self !== baseSelf &&
    mayBeChance({ part: baseSelf, all: base.samples }, { part: self, all: now.samples });
  const rows = functions.map((row) => {
    const { name, mapping, self, baseSelf, selfShareChange } = row;
    return `${points(selfShareChange)}${isMarked(row) ? '~' : ' '}${percent(baseSelf, base.samples)} ${percent(self, now.samples)}  ${shorten(name)}${fileOf(mapping)}`;
  });
  return [
    `base: ${describeBasis(base)}`,
    `now:  ${describeBasis(now)}`,
    `points   base    now  function, by its own share of the ${isCpu(now.type) ? 'samples' : valueFormatter(now.type).column}`,
    ...rows,
    ...leftOut(answer.functionCount - rows.length, 'functions'),
    ...(functions.some(isMarked)
      ? ['~ so few samples differ by as much without any change, in one of twenty cases']
      : []),
  ];
}

export interface TimelineAnswer {
  type?: ShownType;
  fromMs: number;
  toMs: number;
  steps: number;
  samples: number;
  groupCount: number;
  groups: { value: string; samples: number; counts: number[] }[];
}

const BARS = '▁▂▃▄▅▆▇█';

/** One line a group: its events and how they spread over time. */
export function timelineText(answer: TimelineAnswer, limit: number): string[] {
  const { fromMs, toMs, steps, samples, groups, groupCount, type } = answer;
  const cell = isCpu(type) ? String : valueFormatter(type).cell;
  const highest = Math.max(1, ...groups.flatMap(({ counts }) => counts));
  const bar = (count: number): string =>
    count === 0 ? ' ' : BARS[Math.min(BARS.length - 1, Math.floor((count / highest) * BARS.length))]!;
  const rows = groups
    .slice(0, limit)
    .map(
      ({ value, samples: own, counts }) =>
        `${cell(own).padStart(9)}  |${counts.map(bar).join('')}|  ${shorten(value)}`,
    );
  const stepSeconds = ((toMs - fromMs) / steps / 1000).toFixed(1);
  return [
    `${amount(samples, type)}, ${new Date(fromMs).toISOString()} to ${new Date(toMs).toISOString()}, ${stepSeconds} s a step, highest step ${cell(highest)}`,
    ...rows,
    ...leftOut(groupCount - rows.length, 'groups'),
  ];
}

export interface TypesAnswer {
  types: (ShownType & { samples: number; total: number })[];
}

/** What there is to be asked for with --type, one a line. */
export function typesText({ types }: TypesAnswer, where = ''): string[] {
  if (types.length === 0)
    return [where === '' ? 'no samples in this time' : `no samples of this time match ${where}`];
  const width = Math.max(4, ...types.map(({ name }) => name.length));
  const rows = types.map(({ samples, total, ...type }) => {
    const what = type.kind === 'level' ? ', the last value of each process' : ' in all';
    const sum = isCpu(type) ? '' : `, ${valueFormatter(type).of(total)}${what}`;
    return `${type.name.padEnd(width)}  ${samples} ${samples === 1 ? 'sample' : 'samples'}${sum}`;
  });
  return [`${'type'.padEnd(width)}  what there is of it`, ...rows];
}

/** Why nothing is shown where nobody asked for a type, and there are other samples than those of CPUs. */
export function otherTypesText({ types }: TypesAnswer): string[] {
  const others = types.filter(({ name }) => name !== 'cpu').map(({ name }) => name);
  return others.length === 0
    ? []
    : [`there are no CPU samples of it, but others: ask for type ${others.join(', or ')}`];
}

interface Reason {
  reason: string;
  count: number;
}

export interface HealthAnswer extends Basis {
  quality: {
    samples: number;
    unwound: number;
    named: number;
    attributed: number;
    cuts: { marker: string; samples: number }[];
    worst: { process: string; samples: number; cut: number; unnamed: number }[];
  };
  status: {
    nowMs: number;
    requests: { accepted: number; refused: number };
    refusals: Reason[];
    rejections: Reason[];
    samples: { received: number; stored: number; rejected: number };
    agents: { peer: string; host: string; lastMs: number; samples: number }[];
    store: {
      samples: number;
      bytes: number;
      droppedForMemory: number;
      droppedForAge: number;
      problem?: string;
    };
    forward?: {
      to: string;
      samples: { received: number; sent: number; waiting: number; lost: number };
      losses: { reason: string; count: number }[];
    };
  };
}

function forwardLines(forward: HealthAnswer['status']['forward']): string[] {
  if (forward === undefined) return [];
  const { to, samples, losses } = forward;
  return [
    `passed on to ${to}: ${samples.sent} of ${samples.received} samples, ${samples.waiting} wait, ${samples.lost} lost`,
    ...losses.map(({ reason, count }) => `${count} samples not passed on: ${reason}`),
  ];
}

export function healthText(answer: HealthAnswer, limit: number): string[] {
  const { quality, status } = answer;
  const share = (count: number): string => percent(count, quality.samples).trim();
  const { received, stored, rejected } = status.samples;
  const { store } = status;
  const lines = [
    describeBasis(answer),
    `stacks: ${share(quality.unwound)} whole, ${share(quality.named)} wholly named, ${share(quality.attributed)} of a known process`,
    `since the collector's start: ${received} samples received, ${stored} stored, ${rejected} rejected; ` +
      `${status.requests.accepted} requests taken, ${status.requests.refused} refused`,
    `store: ${store.samples} samples in ${(store.bytes / 2 ** 20).toFixed(1)} MiB; dropped ${store.droppedForAge} for age, ` +
      `${store.droppedForMemory} for room`,
    ...(store.problem === undefined ? [] : [`the store has a problem: ${store.problem}`]),
    ...forwardLines(status.forward),
    ...status.agents.map(
      ({ peer, host, samples, lastMs }) =>
        `sender ${host || peer}: ${samples} samples, last heard ${Math.round((status.nowMs - lastMs) / 1000)} s ago`,
    ),
    ...status.rejections.map(({ reason, count }) => `${count} samples rejected: ${reason}`),
    ...status.refusals.map(({ reason, count }) => `${count} requests refused: ${reason}`),
    ...quality.cuts.map(({ marker, samples }) => `${share(samples)} of the stacks: ${shorten(marker)}`),
    ...quality.worst.map(
      ({ process, samples, cut, unnamed }) =>
        `${shorten(process)}: ${cut} of ${samples} stacks cut, ${unnamed} with frames without names`,
    ),
  ];
  if (status.agents.length === 0)
    lines.push('nothing has been received: start an agent with everyframe agent');
  return lines.length <= limit
    ? lines
    : [...lines.slice(0, limit), ...leftOut(lines.length - limit, 'lines')];
}
