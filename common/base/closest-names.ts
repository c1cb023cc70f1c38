/** What a name that was not found may have been meant to be. */

const MAX_SUGGESTIONS = 5;
/** Names are compared up to here: the time is the square of it. */
const MAX_COMPARED = 64;

/**
 * Those that hold the name or end with its last part first, then those that differ in few letters; of equals the earlier.
 */
export function closestNames(wanted: string, names: readonly string[]): string[] {
  const small = wanted.toLowerCase();
  const scored = names.map((name) => ({ name, score: scoreOf(small, name.toLowerCase()) }));
  const near = scored.filter(({ score }) => score <= 0.5);
  return near
    .sort((a, b) => a.score - b.score)
    .slice(0, MAX_SUGGESTIONS)
    .map(({ name }) => name);
}

/** 0 for the same, 1 for nothing in common. */
function scoreOf(wanted: string, name: string): number {
  if (name === wanted) return 0;
  if (wanted.length >= 3 && name.includes(wanted)) return 0.1 + 0.1 * (1 - wanted.length / name.length);
  const [a, b] = [wanted.slice(0, MAX_COMPARED), lastPart(name).slice(0, MAX_COMPARED)];
  return 0.2 + distance(a, b) / Math.max(a.length, b.length, 1);
}

/** `countWords` of `Main.countWords` and of `std::countWords(int)`. */
const lastPart = (name: string): string => /([^.:/]+?)(\(.*\))?$/s.exec(name)?.[1] ?? name;

/** Letters to insert, delete or replace, and neighbours to swap. */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = isSwapped ? before[j - 2]! + 1 : Number.POSITIVE_INFINITY;
      next.push(Math.min(replaced, swapped, row[j]! + 1, next[j - 1]! + 1));
    }
    [before, row] = [row, next];
  }
  return row[b.length]!;
}
