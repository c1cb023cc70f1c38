/**
 * Folded stacks, as the FlameGraph tools read them: `process;root;…;leaf count`, a line a stack. Kernel frames
 * end in `_[k]`. The format holds no addresses, threads or times.
 */
import { processName, stackNames } from './frame-name.ts';
import { mergeProfiles } from './merge.ts';
import { emptyProcess, emptyProfile, type Profile } from './profile.ts';

const KERNEL_SUFFIX = '_[k]';
const MAX_LINES = 10_000_000;

/** The format has no escapes; a byte order mark would be lost at a file's start. */
const clean = (name: string): string =>
  name
    .replaceAll(';', ':')
    .replaceAll('\ufeff', '')
    .replace(/[\r\n]+/g, ' ');

export function writeFolded(profile: Profile): Uint8Array {
  const counts = new Map<string, number>();
  const isKernel = (location: number): boolean => profile.locations[location]!.frameType === 'kernel';
  for (const sample of profile.samples) {
    const names = stackNames(profile, sample.stack, (name, location) =>
      isKernel(location) ? name + KERNEL_SUFFIX : name,
    );
    const line = [processName(profile, sample.process), ...names].map(clean).join(';');
    counts.set(line, (counts.get(line) ?? 0) + sample.count);
  }
  const lines = [...counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([line, count]) => `${line} ${count}\n`);
  return new TextEncoder().encode(lines.join(''));
}

/** @throws Error for a line that is no folded stack */
export function readFolded(bytes: Uint8Array): Profile {
  const profile = emptyProfile();
  const builder = new FoldedReader(profile);
  const lines = new TextDecoder().decode(bytes).split('\n');
  if (lines.length > MAX_LINES) throw new Error(`more than ${MAX_LINES} lines`);
  for (const [i, line] of lines.entries()) {
    if (line.trim() === '') continue;
    const match = /^(.*) (\d+)$/s.exec(line.trimEnd());
    const count = Number(match?.[2]);
    if (!match || !Number.isSafeInteger(count))
      throw new Error(`line ${i + 1} is no folded stack: it needs to end in a count`);
    if (count > 0) builder.add(match[1]!, count);
  }
  return mergeProfiles([profile]);
}

class FoldedReader {
  readonly #profile: Profile;
  readonly #locations = new Map<string, number>();
  readonly #processes = new Map<string, number>();

  constructor(profile: Profile) {
    this.#profile = profile;
  }

  add(stack: string, count: number): void {
    const [process = '', ...frames] = stack.split(';');
    const locations = Uint32Array.from(frames.reverse(), (frame) => this.#location(frame));
    const stackIndex = this.#profile.stacks.push(locations) - 1;
    this.#profile.samples.push({
      stack: locations.length === 0 ? 0 : stackIndex,
      process: this.#process(process),
      tid: 0,
      threadName: '',
      cpu: -1,
      count,
      timestamps: [],
    });
  }

  #location(frame: string): number {
    let index = this.#locations.get(frame);
    if (index === undefined) {
      const isKernel = frame.endsWith(KERNEL_SUFFIX);
      const name = isKernel ? frame.slice(0, -KERNEL_SUFFIX.length) : frame;
      const func = this.#profile.functions.push({ name, systemName: '', filename: '', startLine: 0 }) - 1;
      index =
        this.#profile.locations.push({
          mapping: 0,
          address: 0n,
          frameType: isKernel ? 'kernel' : 'native',
          lines: [{ func, line: 0, column: 0 }],
        }) - 1;
      this.#locations.set(frame, index);
    }
    return index;
  }

  #process(name: string): number {
    let index = this.#processes.get(name);
    if (index === undefined) {
      index = this.#profile.processes.push({ ...emptyProcess(), executableName: name }) - 1;
      this.#processes.set(name, index);
    }
    return index;
  }
}
