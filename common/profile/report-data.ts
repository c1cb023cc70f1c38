/** What `report --json` and `diff --json` print: short, with totals that add up, and a word on what was left out. */
import { printable } from '../base/printable.ts';
import { stackNames } from './frame-name.ts';
import { ALL_RUNTIMES, isMine } from './my-code.ts';
import type { Pattern } from './pattern.ts';
import type { Location, Profile } from './profile.ts';
import { type By, countSamples, formatShare, type Residency, residencies } from './residency.ts';
import { withShortNames } from './short-names.ts';

export interface Selection {
  /** Only samples with such a frame; without those with such a frame. */
  focus?: Pattern;
  ignore?: Pattern;
  /** Frames of the kernel, libraries and runtimes are hidden. */
  myCode?: boolean;
  /** C++ functions without parameters and template arguments; patterns see them so, too. */
  shortNames?: boolean;
}

/** What the selection leaves of a profile; its samples are fewer, its stacks shorter. */
export function select(file: Profile, { focus, ignore, myCode, shortNames }: Selection): Profile {
  const profile = shortNames ? withShortNames(file) : file;
  const { stacks } = profile;
  const [isFocus, isIgnored] = [focus && testOnce(focus), ignore && testOnce(ignore)];
  const isKept = stacks.map((_, stack) => {
    const names = focus || ignore ? stackNames(profile, stack) : [];
    return (!isFocus || names.some(isFocus)) && !(isIgnored && names.some(isIgnored));
  });
  return {
    ...profile,
    ...(myCode && hideLibraries(profile)),
    samples: profile.samples.filter(({ stack }) => isKept[stack]),
  };
}

/** Most names are in many stacks. */
function testOnce(pattern: Pattern): (name: string) => boolean {
  const known = new Map<string, boolean>();
  return (name) => {
    const answer = known.get(name) ?? pattern.test(name);
    known.set(name, answer);
    return answer;
  };
}

/** Stacks without the frames that are nobody's own; of inlined functions those that are stay. */
function hideLibraries({
  locations,
  functions,
  mappings,
  stacks,
}: Profile): Pick<Profile, 'locations' | 'stacks'> {
  const own = locations.map((location): Location | undefined => {
    const mapping = mappings[location.mapping]!.filename;
    const isOwn = (name: string, file: string): boolean =>
      isMine({ name, file, mapping, kind: location.frameType }, ALL_RUNTIMES);
    const lines = location.lines.filter(({ func }) =>
      isOwn(functions[func]!.name, functions[func]!.filename),
    );
    const isKept = location.lines.length === 0 ? isOwn('', '') : lines.length > 0;
    return isKept ? { ...location, lines } : undefined;
  });
  return {
    locations: own.map((location, i) => location ?? locations[i]!),
    stacks: stacks.map((stack) => stack.filter((location) => own[location] !== undefined)),
  };
}

export interface ReportJson {
  schema: 'everyframe.report/1';
  by: By;
  unit: string;
  /** Samples in the file, and in what was selected: the shares are of the latter. */
  samples: { file: number; selected: number };
  rows: { name: string; total: number; self: number; share: number }[];
  /** Rows that are not listed; their self counts and those listed add up to the selected samples by function. */
  truncated: { rows: number; self: number };
}

export function reportJson(file: Profile, selected: Profile, by: By, top: number): ReportJson {
  const rows = residencies(selected, by);
  const total = countSamples(selected);
  const rest = rows.slice(top);
  return {
    schema: 'everyframe.report/1',
    by,
    unit: `${file.sampleType.type}/${file.sampleType.unit}`,
    samples: { file: countSamples(file), selected: total },
    rows: rows.slice(0, top).map((row) => ({ ...row, share: round(row.total / total) })),
    truncated: { rows: rest.length, self: rest.reduce((sum, { self }) => sum + self, 0) },
  };
}

export interface DiffRow {
  name: string;
  /** Shares of all samples of each profile, 0 to 1. */
  before: number;
  after: number;
  change: number;
  /** Shares of samples in which it was the innermost. */
  selfBefore: number;
  selfAfter: number;
}

export interface DiffJson {
  schema: 'everyframe.diff/1';
  by: By;
  samples: { before: number; after: number };
  /** Smallest change that is listed, and what counts as a regression; shares. */
  threshold: number;
  failOn: number | null;
  regressions: number;
  rows: DiffRow[];
  truncated: { rows: number };
}

export interface DiffOptions {
  by: By;
  threshold: number;
  /** A share that grows by this much or more is a regression. */
  failOn: number | undefined;
  top: number;
}

/** Counts as shares of their profile: two recordings of different length or rate can be compared. */
export function diffProfiles(before: Profile, after: Profile, options: DiffOptions): DiffJson {
  const { by, threshold, failOn, top } = options;
  const [totalBefore, totalAfter] = [countSamples(before), countSamples(after)];
  const none: Residency = { name: '', total: 0, self: 0 };
  const [old, now] = [byName(residencies(before, by)), byName(residencies(after, by))];
  const share = (count: number, total: number): number => (total === 0 ? 0 : count / total);
  const rows = [...new Set([...old.keys(), ...now.keys()])].map((name) => {
    const [a, b] = [old.get(name) ?? none, now.get(name) ?? none];
    const [shareBefore, shareAfter] = [share(a.total, totalBefore), share(b.total, totalAfter)];
    const self = {
      selfBefore: round(share(a.self, totalBefore)),
      selfAfter: round(share(b.self, totalAfter)),
    };
    const change = round(shareAfter - shareBefore);
    return { name, before: round(shareBefore), after: round(shareAfter), change, ...self };
  });
  const changed = rows
    .filter(({ change }) => change !== 0 && Math.abs(change) >= threshold)
    .sort((a, b) => Math.abs(b.change) - Math.abs(a.change) || (a.name < b.name ? -1 : 1));
  return {
    schema: 'everyframe.diff/1',
    by,
    samples: { before: totalBefore, after: totalAfter },
    threshold,
    failOn: failOn ?? null,
    regressions:
      failOn === undefined ? 0 : rows.filter(({ change }) => change > 0 && change >= failOn).length,
    rows: changed.slice(0, top),
    truncated: { rows: Math.max(0, changed.length - top) },
  };
}

const byName = (rows: Residency[]): Map<string, Residency> => new Map(rows.map((row) => [row.name, row]));

const round = (share: number): number => (Number.isFinite(share) ? Math.round(share * 1e6) / 1e6 : 0);

/** A head line, then `+12.5%  3% → 15.5%  name`, the largest change first. */
export function formatDiff({
  by,
  samples,
  rows,
  truncated,
  threshold,
  failOn,
  regressions,
}: DiffJson): string {
  const lines = rows.map(({ name, before, after, change }) => {
    const sign = change > 0 ? '+' : '-';
    const shares = `${formatShare(before)} → ${formatShare(after)}`;
    return `${`${sign}${formatShare(Math.abs(change))}`.padStart(8)}  ${shares.padEnd(16)}  ${printable(name)}\n`;
  });
  const head = `${samples.before} samples before, ${samples.after} after; changes by ${by} of ${formatShare(threshold)} or more of all samples\n`;
  if (rows.length === 0) lines.push('no change\n');
  if (truncated.rows > 0) lines.push(`… and ${truncated.rows} more\n`);
  if (failOn !== null) lines.push(`${regressions} grew by ${formatShare(failOn)} or more\n`);
  return head + lines.join('');
}
