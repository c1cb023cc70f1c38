/** What `report` selects of a profile, and what `--json` prints: short, with totals that add up, and a word on what was left out. */

import { ALL_RUNTIMES, isMine } from '../filters/my-code.ts';
import type { Pattern } from '../filters/pattern.ts';
import { stackNames } from '../model/frame-name.ts';
import type { Location, Profile } from '../model/profile.ts';
import { typeName } from '../model/profile-type.ts';
import { type By, inclusiveShares, type Sort, sortRows, totalOf } from './inclusive-shares.ts';
import { roundShare } from './report-text.ts';
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
  /** Of all values, as `type/unit`. */
  unit: string;
  /** What the samples in the file add up to, and those that were selected: the shares are of the latter. */
  values: { file: number; selected: number };
  /** The same; as this was called when all values were counts of samples. */
  samples: { file: number; selected: number };
  rows: { name: string; total: number; self: number; share: number }[];
  /** Rows that are not listed; their self counts and those listed add up to the selected values by function. */
  truncated: { rows: number; self: number };
}

export function reportJson(
  file: Profile,
  selected: Profile,
  { by, top, sort = 'total' }: { by: By; top: number; sort?: Sort | undefined },
): ReportJson {
  const rows =
    sort === 'total' ? inclusiveShares(selected, by) : sortRows(inclusiveShares(selected, by), sort);
  const values = { file: totalOf(file), selected: totalOf(selected) };
  const rest = rows.slice(top);
  return {
    schema: 'everyframe.report/1',
    by,
    unit: typeName(file.type),
    values,
    samples: values,
    rows: rows.slice(0, top).map((row) => ({ ...row, share: roundShare(row.total / values.selected) })),
    truncated: { rows: rest.length, self: rest.reduce((sum, { self }) => sum + self, 0) },
  };
}
