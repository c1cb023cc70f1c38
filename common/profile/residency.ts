/** A profile as text: in which share of the samples each stack, function or process was there. */
import { printable } from '../base/printable.ts';
import { processName, stackNames } from './frame-name.ts';
import type { Profile } from './profile.ts';

export type By = 'stack' | 'function' | 'process';

export interface Residency {
  name: string;
  /** Samples in which it was on the stack, and in which it was the innermost. */
  total: number;
  self: number;
}

export const countSamples = (profile: Profile): number =>
  profile.samples.reduce((sum, { count }) => sum + count, 0);

/** The largest first. Stacks are counted with whatever they called. */
export function residencies(profile: Profile, by: By): Residency[] {
  const rows = new Map<string, Residency>();
  const row = (name: string): Residency => {
    let known = rows.get(name);
    if (known) return known;
    known = { name, total: 0, self: 0 };
    rows.set(name, known);
    return known;
  };
  const stacks = new Map<number, Places>();
  const placesIn = (stack: number): Places => {
    const known = stacks.get(stack) ?? placesOf(pathsOf(profile, stack, by).map(row));
    stacks.set(stack, known);
    return known;
  };
  for (const { stack, process, count } of profile.samples) {
    const places = by === 'process' ? placesOf([row(processName(profile, process))]) : placesIn(stack);
    for (const one of places.all) one.total += count;
    if (places.leaf) places.leaf.self += count;
  }
  return [...rows.values()].sort(
    (a, b) => b.total - a.total || b.self - a.self || (a.name < b.name ? -1 : 1),
  );
}

interface Places {
  all: Residency[];
  leaf: Residency | undefined;
}

const placesOf = (rows: Residency[]): Places => ({ all: [...new Set(rows)], leaf: rows.at(-1) });

function pathsOf(profile: Profile, stack: number, by: By): string[] {
  const names = stackNames(profile, stack, asCall);
  if (by === 'function') return names;
  let path = '';
  return names.map((name) => {
    path = path === '' ? name : `${path};${name}`;
    return path;
  });
}

/** Functions read as calls; addresses and markers stay as they are. */
export const asCall = (name: string): string => (/[()[\]+]/.test(name) ? name : `${name}()`);

/** A first line with the total, then `80% main();foo();bar()`, the largest share first. */
export function formatReport(profile: Profile, by: By, top = Number.POSITIVE_INFINITY): string {
  const total = countSamples(profile);
  const rows = residencies(profile, by);
  const lines = rows
    .slice(0, top)
    .map(({ name, total: count }) => `${formatShare(count / total)} ${printable(name)}\n`);
  const rest = rows.length - lines.length;
  if (rest > 0) lines.push(`… and ${rest} more\n`);
  return `${total} samples, ${rows.length} ${by === 'process' ? 'processes' : `${by}s`}\n${lines.join('')}`;
}

/** Two digits that matter: `80%`, `12.5%`, `0.04%`. */
export function formatShare(share: number): string {
  const percent = share * 100;
  if (percent >= 99.95 || percent === 0) return `${Math.round(percent)}%`;
  const digits = percent >= 1 ? 1 : Math.min(4, 1 - Math.floor(Math.log10(percent)));
  return `${Number(percent.toFixed(digits))}%`;
}
