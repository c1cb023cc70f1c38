/**
 * Folded stacks, as the FlameGraph tools read them: `process;root;…;leaf value`, a line a stack. Kernel frames
 * end in `_[k]`. The format holds no addresses, threads, times or units.
 */
import { processName, stackNames } from '../model/frame-name.ts';
import type { Profile } from '../model/profile.ts';
import { frameOfName, markKernel, ProfileBuilder } from '../model/profile-builder.ts';
import { MAX_VALUE } from '../model/profile-type.ts';
import type { ReadBudget } from '../model/read-limits.ts';
import { ROOT } from '../model/stack-tree.ts';

/** The format has no escapes; a byte order mark would be lost at a file's start. Lines are looked at in terminals. */
const clean = (name: string): string =>
  name
    .replaceAll(';', ':')
    .replaceAll('\ufeff', '')
    .replace(/[\r\n]+/g, ' ')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: those are meant
    .replace(/[\x00-\x1f\x7f-\x9f]/g, '?');

/** All of them together may be longer than a string can be. */
export function* foldedLines(profile: Profile): Generator<string> {
  const values = new Map<string, number>();
  const stacks = new Map<number, string>();
  for (const { stack, process, value } of profile.samples) {
    let frames = stacks.get(stack);
    if (frames === undefined) {
      const names = stackNames(profile, stack, (name, location) =>
        markKernel(name, profile.locations[location]!.frameType),
      );
      frames = names.map((name) => `;${clean(name)}`).join('');
      stacks.set(stack, frames);
    }
    const line = clean(processName(profile, process)) + frames;
    values.set(line, (values.get(line) ?? 0) + value);
  }
  for (const [line, value] of [...values].sort(([a], [b]) => (a < b ? -1 : 1)))
    yield `${line} ${BigInt(Math.round(value))}\n`;
}

/** Splits off the value; undefined where there is none. */
function splitLine(line: string): { text: string; value: number } | undefined {
  const trimmed = line.trimEnd();
  const end = trimmed.lastIndexOf(' ');
  const digits = trimmed.slice(end + 1);
  // some tools write fractions
  const value = /^\d{1,19}(\.\d{1,20})?$/.test(digits) ? Math.round(Number(digits)) : Number.NaN;
  return end >= 0 && value <= MAX_VALUE ? { text: trimmed.slice(0, end), value } : undefined;
}

export const isFoldedLine = (line: string): boolean => splitLine(line) !== undefined;

export class FoldedReader {
  readonly #builder: ProfileBuilder;
  readonly #locations = new Map<string, number>();

  constructor(budget?: ReadBudget) {
    this.#builder = new ProfileBuilder(budget);
  }

  /** @throws Error for a line that is not a folded stack */
  line(line: string, number: number): void {
    if (line.trim() === '') return;
    const split = splitLine(line);
    if (!split) throw new Error(`line ${number} is not a folded stack: it needs to end in a count`);
    const { text, value } = split;
    if (value === 0) return;
    const ownerEnd = text.indexOf(';');
    const process = ownerEnd < 0 ? text : text.slice(0, ownerEnd);
    const stack = ownerEnd < 0 ? 0 : this.#stack(text, ownerEnd + 1);
    this.#builder.add(stack, { process, pid: 0, tid: 0, thread: '' }, value);
  }

  finish(): Profile {
    return this.#builder.profile;
  }

  #stack(text: string, start: number): number {
    let node = ROOT;
    for (let at = start; at <= text.length; ) {
      const next = text.indexOf(';', at);
      const end = next < 0 ? text.length : next;
      node = this.#builder.enter(node, this.#location(text.slice(at, end)));
      at = end + 1;
    }
    return this.#builder.stackAt(node);
  }

  #location(frame: string): number {
    let location = this.#locations.get(frame);
    if (location === undefined) {
      location = this.#builder.location(frameOfName(frame));
      this.#locations.set(Buffer.from(frame).toString(), location);
    }
    return location;
  }
}

/** All of a text at once. @throws Error for a line that is not a folded stack */
export function readFolded(text: string): Profile {
  const reader = new FoldedReader();
  for (const [i, line] of text.split('\n').entries()) reader.line(line, i + 1);
  return reader.finish();
}
