/** A profile as text: which share of its values each function, thread, library, … has. */
import { printable } from '../../base/printable.ts';
import { readAttributes } from '../model/attributes.ts';
import { frameNames, processName } from '../model/frame-name.ts';
import { libraryName } from '../model/library.ts';
import type { Profile, Sample } from '../model/profile.ts';
import { PROGRAM_LABEL } from '../model/sample-attributes.ts';
import { CallTree } from './call-tree.ts';
import {
  asCall,
  columns,
  counted,
  DEFAULT_MIN_SHARE,
  groupDigits,
  headLine,
  type ReportCut,
  share,
} from './report-text.ts';
import { formatTree } from './report-tree.ts';

/** What a line of a report can be, with its plural. */
export const BY = {
  function: 'functions',
  stack: 'stacks',
  process: 'processes',
  thread: 'threads',
  labels: 'sets of labels',
  library: 'libraries',
  line: 'lines',
} as const;
export type By = keyof typeof BY;
export const BYS = Object.keys(BY) as By[];

export const SORTS = ['self', 'total', 'name'] as const;
export type Sort = (typeof SORTS)[number];

export interface InclusiveShare {
  name: string;
  /** Values of samples in which it was on the stack, and in which it was the innermost. */
  total: number;
  self: number;
}

/** What all samples add up to, in the unit of the profile's type. */
export const totalOf = ({ samples }: Pick<Profile, 'samples'>): number =>
  samples.reduce((sum, { value }) => sum + value, 0);

const compareNames = (a: InclusiveShare, b: InclusiveShare): number =>
  a.name < b.name ? -1 : a.name > b.name ? 1 : 0;

const ORDERS: Record<Sort, (a: InclusiveShare, b: InclusiveShare) => number> = {
  self: (a, b) => b.self - a.self || b.total - a.total || compareNames(a, b),
  total: (a, b) => b.total - a.total || b.self - a.self || compareNames(a, b),
  name: compareNames,
};

export const sortRows = (rows: readonly InclusiveShare[], sort: Sort): InclusiveShare[] =>
  rows.toSorted(ORDERS[sort]);

/** The largest first. Stacks are counted with whatever they called. */
export function inclusiveShares(profile: Profile, by: By): InclusiveShare[] {
  if (by === 'stack') return stackRows(profile);
  const rows = new Map<string, InclusiveShare>();
  const row = (name: string): InclusiveShare => {
    let known = rows.get(name);
    if (known) return known;
    known = { name, total: 0, self: 0 };
    rows.set(name, known);
    return known;
  };
  if (by === 'process' || by === 'thread' || by === 'labels') {
    const nameOf = NAME_OF[by];
    for (const sample of profile.samples) {
      const one = row(nameOf(profile, sample));
      one.total += sample.value;
      one.self += sample.value;
    }
  } else countFrames(profile, NAMES_AT[by], row);
  return sortRows([...rows.values()], 'total');
}

/** `route=/users service=web`: what the program itself says of the sample, and of pprof files all that was noted with it. */
function labelsOf({ processes }: Profile, { process }: Sample): string {
  const attributes = [...readAttributes(processes[process]!.attributes ?? '')];
  const texts = attributes.map(([key, value]) => {
    const name = key.startsWith(PROGRAM_LABEL) ? key.slice(PROGRAM_LABEL.length) : key;
    return `${name}=${value}`;
  });
  return texts.length === 0 ? '[no labels]' : texts.join(' ');
}

const processOf = (profile: Profile, { process }: Sample): string => processName(profile, process);

/** `nginx / worker (1234)`. */
function threadOf(profile: Profile, sample: Sample): string {
  const { tid, threadName } = sample;
  const process = processOf(profile, sample);
  const name = threadName === '' || threadName === process ? process : `${process} / ${threadName}`;
  return tid > 0 ? `${name} (${tid})` : name;
}

const NAME_OF = { process: processOf, thread: threadOf, labels: labelsOf };

/** Rows of a location, the innermost first. */
type NamesAt = (profile: Profile, location: number) => string[];

const NAMES_AT: Record<'function' | 'library' | 'line', NamesAt> = {
  function: (profile, location) => frameNames(profile, location).map(asCall),
  library: librariesAt,
  line: linesAt,
};

function librariesAt(profile: Profile, location: number): string[] {
  const { mapping, frameType, lines } = profile.locations[location]!;
  const place = { mapping: profile.mappings[mapping]!.filename, kind: frameType || 'unknown' };
  // what is not code, as the marker of a cut stack, is of no library
  const libraryOf = (name: string, file: string): string => libraryName({ ...place, name, file }) || name;
  if (lines.length === 0) return frameNames(profile, location).map((name) => libraryOf(name, ''));
  return lines.map(({ func }) => libraryOf(profile.functions[func]!.name, profile.functions[func]!.filename));
}

function linesAt(profile: Profile, location: number): string[] {
  const { lines } = profile.locations[location]!;
  const named = lines.filter(({ func }) => profile.functions[func]!.name !== '');
  if (named.length === 0) return frameNames(profile, location);
  return named.map(({ func, line }) => {
    const { name, filename } = profile.functions[func]!;
    return filename === '' ? asCall(name) : `${filename}${line > 0 ? `:${line}` : ''}  ${asCall(name)}`;
  });
}

function countFrames(profile: Profile, namesAt: NamesAt, row: (name: string) => InclusiveShare): void {
  const locations: (readonly InclusiveShare[] | undefined)[] = [];
  const rowsAt = (location: number): readonly InclusiveShare[] => {
    locations[location] ??= namesAt(profile, location).map(row);
    return locations[location];
  };
  const values = new Float64Array(profile.stacks.length);
  for (const { stack, value } of profile.samples) values[stack]! += value;
  for (const [stack, value] of values.entries()) {
    const own = profile.stacks[stack]!;
    if (value === 0 || own.length === 0) continue;
    const all = new Set<InclusiveShare>();
    for (const location of own) for (const one of rowsAt(location)) all.add(one);
    for (const one of all) one.total += value;
    rowsAt(own[0]!)[0]!.self += value;
  }
}

function stackRows(profile: Profile): InclusiveShare[] {
  const tree = new CallTree(asCall);
  const { self, total } = tree.add(profile);
  const nodes = Array.from({ length: tree.nodeCount - 1 }, (_, i) => i + 1).filter(
    (node) => total[node]! > 0,
  );
  nodes.sort((a, b) => total[b]! - total[a]! || self[b]! - self[a]! || a - b);
  return nodes.map((node) => ({
    total: total[node]!,
    self: self[node]!,
    // most are never looked at, and all of them take the square of the depth
    get name() {
      return tree.pathOf(node);
    },
  }));
}

export interface ReportOptions extends ReportCut {
  by: By;
  /** One table in that order; without it, one by self and one by total. */
  sort?: Sort | undefined;
}

/** A first line with the totals, then lines with shares of all values, what the code itself took first. */
export function* formatReport(profile: Profile, options: ReportOptions): Generator<string> {
  const { by, sort, ...cut } = options;
  if (by === 'stack') return yield* formatTree(profile, cut);
  const total = totalOf(profile);
  const rows = inclusiveShares(profile, by);
  yield headLine(profile.type, total, countRows(profile, by, rows.length), cut.fileTotal);
  const isOnce = Object.hasOwn(NAME_OF, by);
  if (sort !== undefined || isOnce) {
    yield* isOnce ? plainRows(rows, sort ?? 'total', total, cut) : tableRows(rows, sort!, total, by, cut);
    return;
  }
  yield* tableRows(rows, 'self', total, by, cut);
  yield '\ntotal: it and all that it calls\n';
  yield* plainRows(rows, 'total', total, cut);
}

/** Processes of one name are one line. */
function countRows(profile: Profile, by: By, rows: number): string {
  const pids = by === 'process' ? countPids(profile) : 0;
  if (pids > rows) return `${counted(rows, 'name')} of ${counted(pids, 'process', BY.process)}`;
  return counted(rows, by === 'labels' ? 'set of labels' : by, BY[by]);
}

function countPids({ samples, processes }: Profile): number {
  const pids = new Set(samples.map(({ process }) => processes[process]!.pid));
  return pids.size - (pids.has(0) ? 1 : 0);
}

function* tableRows(
  rows: readonly InclusiveShare[],
  sort: Sort,
  all: number,
  by: By,
  cut: ReportCut,
): Generator<string> {
  yield columns('self', 'total', by);
  const { shown, rest } = cutRows(rows, sort, all, cut, sort === 'self' ? 'self' : 'total');
  for (const { name, self, total } of shown)
    yield columns(share(self, all), share(total, all), printable(name));
  if (rest.length === 0) return;
  const left = rest.reduce((sum, { self }) => sum + self, 0);
  yield columns(share(left, all), '', `… ${groupDigits(rest.length)} more`);
}

/** `80% main()`. */
function* plainRows(
  rows: readonly InclusiveShare[],
  sort: Sort,
  all: number,
  cut: ReportCut,
): Generator<string> {
  const { shown, rest } = cutRows(rows, sort, all, cut, 'total');
  for (const { name, total } of shown) yield `${share(total, all)} ${printable(name)}\n`;
  if (rest.length > 0) yield `… ${groupDigits(rest.length)} more\n`;
}

function cutRows(
  rows: readonly InclusiveShare[],
  sort: Sort,
  all: number,
  { top = Number.POSITIVE_INFINITY, minShare = DEFAULT_MIN_SHARE }: ReportCut,
  by: 'self' | 'total',
): { shown: InclusiveShare[]; rest: InclusiveShare[] } {
  const sorted = sortRows(rows, sort);
  const isShown = (row: InclusiveShare, i: number): boolean =>
    i < top && row[by] >= minShare * all && (row[by] > 0 || sort === 'name');
  return { shown: sorted.filter(isShown), rest: sorted.filter((row, i) => !isShown(row, i)) };
}
