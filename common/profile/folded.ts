/**
 * Folded stacks, as the FlameGraph tools read them: `process;root;…;leaf count`, a line a stack. Kernel frames
 * end in `_[k]`. The format holds no addresses, threads or times.
 */
import { processName, stackNames } from './frame-name.ts';
import type { Profile } from './profile.ts';
import { frameOfName, markKernel, ProfileBuilder } from './profile-builder.ts';

const MAX_LINES = 10_000_000;

/** The format has no escapes; a byte order mark would be lost at a file's start. */
const clean = (name: string): string =>
  name
    .replaceAll(';', ':')
    .replaceAll('\ufeff', '')
    .replace(/[\r\n]+/g, ' ');

export function writeFolded(profile: Profile): Uint8Array {
  const counts = new Map<string, number>();
  const stacks = new Map<number, string>();
  for (const { stack, process, count } of profile.samples) {
    let frames = stacks.get(stack);
    if (frames === undefined) {
      const names = stackNames(profile, stack, (name, location) =>
        markKernel(name, profile.locations[location]!.frameType),
      );
      frames = names.map((name) => `;${clean(name)}`).join('');
      stacks.set(stack, frames);
    }
    const line = clean(processName(profile, process)) + frames;
    counts.set(line, (counts.get(line) ?? 0) + count);
  }
  const lines = [...counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([line, count]) => `${line} ${count}\n`);
  return new TextEncoder().encode(lines.join(''));
}

/** @throws Error for a line that is no folded stack */
export function readFolded(bytes: Uint8Array): Profile {
  const builder = new ProfileBuilder();
  const lines = new TextDecoder().decode(bytes).split('\n');
  if (lines.length > MAX_LINES) throw new Error(`more than ${MAX_LINES} lines`);
  for (const [i, line] of lines.entries()) {
    if (line.trim() === '') continue;
    const match = /^(.*) (\d+)$/s.exec(line.trimEnd());
    const count = Number(match?.[2]);
    if (!match || !Number.isSafeInteger(count))
      throw new Error(`line ${i + 1} is no folded stack: it needs to end in a count`);
    const [process = '', ...frames] = match[1]!.split(';');
    const stack = builder.stack(frames.reverse().map((frame) => builder.location(frameOfName(frame))));
    if (count > 0) builder.add(stack, { process, pid: 0, tid: 0, thread: '' }, count);
  }
  return builder.profile;
}
