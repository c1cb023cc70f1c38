/**
 * Whether there is a tracepoint. The kernel's type information has the names; their categories are in tracefs alone, where that is
 * mounted.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Tracepoint {
  category: string;
  name: string;
}

const MAX_SIMILAR = 5;
const MAX_DISTANCE = 3;

/** Why it can't be sampled under that category; undefined: nothing speaks against it. */
export function whyNotThere({ category, name }: Tracepoint, tracefs = findTracefs()): string | undefined {
  if (category === 'syscalls')
    return 'single system calls are tracepoint:raw_syscalls:sys_enter,if=id==NUMBER, or sys_exit';
  const known = readTracepoints(tracefs);
  const elsewhere = known.filter((one) => one.endsWith(`:${name}`));
  if (elsewhere.length === 0 || known.includes(`${category}:${name}`)) return undefined;
  return `it is tracepoint:${elsewhere.join(', tracepoint:')}`;
}

/** Of one that the kernel does not have. `names` are those that it has, in its type information. */
export function whatThereIs(
  { category, name }: Tracepoint,
  names: readonly string[],
  tracefs = findTracefs(),
): string {
  const known = readTracepoints(tracefs);
  const similar = known.length > 0 ? similarTo(`${category}:${name}`, known) : similarTo(name, names);
  return similar.length > 0 ? `there are ${similar.join(', ')}` : 'nor one of a similar name';
}

function findTracefs(): string | undefined {
  const [, path] = /^\S+ (\S+) tracefs /m.exec(readFileSync('/proc/self/mounts', 'utf8')) ?? [];
  return path !== undefined && existsSync(join(path, 'events')) ? path : undefined;
}

/** `sched:sched_switch` */
function readTracepoints(tracefs: string | undefined): string[] {
  if (tracefs === undefined) return [];
  const events = join(tracefs, 'events');
  return foldersOf(events).flatMap((category) =>
    foldersOf(join(events, category)).map((name) => `${category}:${name}`),
  );
}

function foldersOf(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  } catch {
    return [];
  }
}

/** The nearest first: those that have it in them count as nearer. */
function similarTo(wanted: string, names: readonly string[]): string[] {
  const near = names
    .map((name) => ({
      name,
      distance: distanceOf(wanted, name) - (name.includes(wanted) ? MAX_DISTANCE : 0),
    }))
    .filter(({ distance }) => distance <= Math.min(MAX_DISTANCE, wanted.length / 3))
    .sort((a, b) => a.distance - b.distance);
  return near.slice(0, MAX_SIMILAR).map(({ name }) => name);
}

/** Letters to change, add and leave out (Levenshtein), or more than {@link MAX_DISTANCE}. */
function distanceOf(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > MAX_DISTANCE) return MAX_DISTANCE + 1;
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++)
      next.push(Math.min(next[j - 1]! + 1, row[j]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)));
    row = next;
  }
  return row[b.length]!;
}
