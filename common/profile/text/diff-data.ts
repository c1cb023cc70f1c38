/** Two profiles compared: what `diff` prints, as text and as JSON. */
import { printable } from '../../base/printable.ts';
import { mayBeChance, samplesIn } from '../model/chance.ts';
import type { Profile } from '../model/profile.ts';
import { type ProfileType, parseValueType, typeName } from '../model/profile-type.ts';
import { valueFormatter } from '../model/value-format.ts';
import { CallTree } from './call-tree.ts';
import { type By, type InclusiveShare, inclusiveShares, type Sort, totalOf } from './inclusive-shares.ts';
import { asCall, formatShare, groupDigits, roundShare } from './report-text.ts';

export interface DiffRow {
  name: string;
  /** Shares of all values of each profile, 0 to 1. */
  before: number;
  after: number;
  change: number;
  /** Whether the change may be no more than chance; null where the type does not say how many samples there were. */
  mayBeChance: boolean | null;
  /** Shares of values of samples in which it was the innermost. */
  selfBefore: number;
  selfAfter: number;
  selfChange: number;
  selfMayBeChance: boolean | null;
}

export interface DiffJson {
  schema: 'everyframe.diff/1';
  by: By;
  /** Of all values, as `type/unit`. */
  unit: string;
  /** What the samples add up to. */
  values: { before: number; after: number };
  /** The same; as this was called when all values were counts of samples. */
  samples: { before: number; after: number };
  /** Smallest change that is listed, and what counts as a regression; shares. */
  threshold: number;
  failOn: number | null;
  regressions: number;
  /** How many of them may be chance. */
  regressionsByChance: number;
  rows: DiffRow[];
  truncated: { rows: number };
}

export interface DiffOptions {
  by: By;
  threshold: number;
  /** A share that grows by this much or more is a regression. */
  failOn: number | undefined;
  top: number;
  /** By default what its own share changed most; what only called it follows. */
  sort?: Sort | undefined;
}

/** Of one row in both profiles. */
interface Pair {
  readonly name: string;
  before: { self: number; total: number };
  after: { self: number; total: number };
}

const ORDERS: Record<Sort, (a: DiffRow, b: DiffRow) => number> = {
  self: (a, b) => Math.abs(b.selfChange) - Math.abs(a.selfChange) || Math.abs(b.change) - Math.abs(a.change),
  total: (a, b) => Math.abs(b.change) - Math.abs(a.change) || Math.abs(b.selfChange) - Math.abs(a.selfChange),
  name: () => 0,
};

/** Values as shares of their profile: two recordings of different length or rate can be compared. */
export function diffProfiles(before: Profile, after: Profile, options: DiffOptions): DiffJson {
  const { by, threshold, failOn, top, sort = 'self' } = options;
  const values = { before: totalOf(before), after: totalOf(after) };
  const pairs = by === 'stack' ? stackPairs(before, after) : namedPairs(before, after, by);
  const samples = samplesOfBoth(values, before.type, after.type);
  const rows = pairs.map((pair) => toRow(pair, values, samples));
  const grown = rows.filter(({ change }) => failOn !== undefined && change > 0 && change >= failOn);
  const changed = rows
    .filter(({ change, selfChange }) => {
      const largest = Math.max(Math.abs(change), Math.abs(selfChange));
      return largest > 0 && largest >= threshold;
    })
    .sort(ORDERS[sort]);
  if (sort === 'name') changed.sort((a, b) => (a.name < b.name ? -1 : 1));
  return {
    schema: 'everyframe.diff/1',
    by,
    unit: typeName(after.type),
    values,
    samples: values,
    threshold,
    failOn: failOn ?? null,
    regressions: grown.length,
    regressionsByChance: grown.filter((row) => row.mayBeChance).length,
    rows: changed.slice(0, top).map((row) => ({ ...row })),
    truncated: { rows: Math.max(0, changed.length - top) },
  };
}

type Both = DiffJson['values'];

/** How many samples the values of both are; undefined where that is not known. */
function samplesOfBoth(values: Both, before: ProfileType, after: ProfileType): Both | undefined {
  const [old, now] = [samplesIn(values.before, before), samplesIn(values.after, after)];
  return old === undefined || now === undefined ? undefined : { before: old, after: now };
}

/** Names are made for the rows that are printed: a stack's is as long as the stack is deep. */
function toRow(pair: Pair, all: Both, samples: Both | undefined): DiffRow {
  const part = (value: number, of: number): number => (of === 0 ? 0 : value / of);
  const [before, after] = [part(pair.before.total, all.before), part(pair.after.total, all.after)];
  const [selfBefore, selfAfter] = [part(pair.before.self, all.before), part(pair.after.self, all.after)];
  const isChance = (from: number, to: number): boolean | null =>
    samples
      ? mayBeChance(
          { part: from * samples.before, all: samples.before },
          { part: to * samples.after, all: samples.after },
        )
      : null;
  return {
    get name() {
      return pair.name;
    },
    before: roundShare(before),
    after: roundShare(after),
    change: roundShare(after - before),
    mayBeChance: isChance(before, after),
    selfBefore: roundShare(selfBefore),
    selfAfter: roundShare(selfAfter),
    selfChange: roundShare(selfAfter - selfBefore),
    selfMayBeChance: isChance(selfBefore, selfAfter),
  };
}

const NONE: InclusiveShare = { name: '', total: 0, self: 0 };

function namedPairs(before: Profile, after: Profile, by: Exclude<By, 'stack'>): Pair[] {
  const [old, now] = [before, after].map(
    (profile) => new Map(inclusiveShares(profile, by).map((row) => [row.name, row])),
  ) as [Map<string, InclusiveShare>, Map<string, InclusiveShare>];
  const names = [...new Set([...old.keys(), ...now.keys()])].sort();
  return names.map((name) => ({ name, before: old.get(name) ?? NONE, after: now.get(name) ?? NONE }));
}

function stackPairs(before: Profile, after: Profile): Pair[] {
  const tree = new CallTree(asCall);
  const [old, now] = [tree.add(before), tree.add(after)];
  return Array.from({ length: tree.nodeCount - 1 }, (_, i) => ({
    get name() {
      return tree.pathOf(i + 1);
    },
    before: { self: old.self[i + 1] ?? 0, total: old.total[i + 1] ?? 0 },
    after: { self: now.self[i + 1] ?? 0, total: now.total[i + 1] ?? 0 },
  }));
}

const WIDTH = { points: 7, percent: 8, shares: 17 };
/** In a narrower terminal lines have no shares, and names are cut to what is left. */
const WIDE = 120;
const MIN_NAME = 20;

/**
 * A head line, then for each row its own share and that with what it calls: the change in points of all samples, the
 * change in percent of what it was, and both shares. `~` stands before what may be chance.
 *
 * @param width columns of the terminal that it is for
 */
export function formatDiff(diff: DiffJson, width = Number.POSITIVE_INFINITY): string {
  const { by, unit, values, rows, truncated, threshold, failOn, regressions, regressionsByChance } = diff;
  const format = valueFormatter(parseValueType(unit));
  const totals = `${format.of(values.before)} before, ${format.cell(values.after)} after`;
  const all = unit.endsWith('/count') ? format.column : unit;
  const head = `${totals}; changes by ${by} of ${pointsOrMore(threshold)} (100 points are all ${all})\n`;
  const tail: string[] = [];
  if (rows.length === 0) tail.push('no change\n');
  if (truncated.rows > 0) tail.push(`… and ${groupDigits(truncated.rows)} more\n`);
  if (
    rows.some((row) => isMarked(row.selfChange, row.selfMayBeChance) || isMarked(row.change, row.mayBeChance))
  )
    tail.push('~ so few samples differ by as much without any change, in one of twenty cases\n');
  if (failOn !== null) {
    const chance = regressionsByChance > 0 ? ` (${regressionsByChance} perhaps by chance: ~)` : '';
    tail.push(`${regressions} grew by ${pointsOrMore(failOn)}, counted with all that they call${chance}\n`);
  }
  const titles = rows.length === 0 ? [] : [titleLine(by, width)];
  return [head, ...titles, ...rows.map((row) => rowLine(row, width)), ...tail].join('');
}

function titleLine(by: By, width: number): string {
  const half = (what: string): string => halfLine(`${what} points`, 'percent', 'before → after', width);
  return lineOf(half('self'), half('total'), by, width);
}

function halfLine(change: string, percents: string, shares: string, width: number): string {
  const changes = `${change.padStart(WIDTH.points + 5)}${percents.padStart(WIDTH.percent + 1)}  `;
  return width < WIDE ? changes : `${changes}${shares.padEnd(WIDTH.shares)}`;
}

function lineOf(self: string, total: string, name: string, width: number): string {
  if (width >= WIDE) return `${self}${total}${name}\n`;
  const start = self + total;
  const room = Math.max(MIN_NAME, width - start.length);
  return `${start}${name.length > room ? `${name.slice(0, room - 1)}…` : name}\n`;
}

const isMarked = (change: number, isChance: boolean | null): boolean => change !== 0 && isChance === true;

function rowLine(row: DiffRow, width: number): string {
  const half = (from: number, to: number, by: number, isChance: boolean | null): string => {
    const shares = `${formatShare(from)} → ${formatShare(to)}`;
    const change = `${isMarked(by, isChance) ? '~' : ''}${points(by)}`;
    return halfLine(change, percent(from, to), shares, width);
  };
  const self = half(row.selfBefore, row.selfAfter, row.selfChange, row.selfMayBeChance);
  const total = half(row.before, row.after, row.change, row.mayBeChance);
  return lineOf(self, total, printable(row.name), width);
}

/** `+3.1`: hundredths of all values. */
const points = (by: number): string => {
  const size = formatShare(Math.abs(by)).slice(0, -1);
  return size === '0' ? ' 0' : `${by < 0 ? '-' : '+'}${size}`;
};

const pointsOrMore = (by: number): string => {
  const size = points(by).slice(1);
  return `${size} ${size === '1' ? 'point' : 'points'} or more`;
};

/** `+12 %` of what it was. */
function percent(from: number, to: number): string {
  if (from === to) return '';
  if (from === 0) return 'new';
  if (to === 0) return 'gone';
  const change = (100 * (to - from)) / from;
  const digits = Math.abs(change) < 10 ? 1 : 0;
  return `${change > 0 ? '+' : ''}${change.toFixed(digits)} %`;
}
