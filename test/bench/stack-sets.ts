/**
 * Stacks of different profilers, made comparable: a frame is the file and the address in it, not a name, since tools
 * name the same function differently or leave naming to somebody else.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { bufferSource } from '../../common/base/byte-source.ts';
import { type ElfFile, parseElf } from '../../common/elf/elf.ts';
import type { Profile } from '../../common/profile/model/profile.ts';

/** Stack as text, leaf first and with ';' between frames, and the samples that had it. */
export type Stacks = Map<string, number>;

/** Ends a stack that perf's copy did not hold whole. */
const NOT_COPIED = '[not copied]';

/** The files whose code a running process has mapped: their layout, and what their functions are called. */
export class Places {
  readonly #functions = new Map<string, { start: bigint; end: bigint; name: string }[]>();
  readonly #leaves = new Map<string, string>();
  readonly #files = new Map<string, ElfFile>();

  constructor(pid: number) {
    const maps = readFileSync(`/proc/${pid}/maps`, 'utf8');
    for (const [, path] of maps.matchAll(/^\S+ ..x. \S+ \S+ \d+ +(\/.*)$/gm)) {
      if (this.#files.has(path!)) continue;
      this.#files.set(path!, parseElf(bufferSource(readFileSync(path!))));
      this.#functions.set(basename(path!), readFunctions(path!));
    }
  }

  /** The file's own address of what lies at an offset in it. */
  addressOf(path: string, offset: number): bigint {
    return BigInt(this.#files.get(path)?.fileOffsetToAddress(offset) ?? offset);
  }

  /** The function that ran: at the leaf any of its instructions is as good as another. */
  leaf(file: string, address: bigint): string {
    const place = frame(file, address);
    const known = this.#leaves.get(place);
    if (known !== undefined) return known;
    const found = this.#functions.get(file)?.find(({ start, end }) => start <= address && address < end);
    const leaf = `${file}:${found?.name ?? '?'}`;
    this.#leaves.set(place, leaf);
    return leaf;
  }
}

function readFunctions(path: string): { start: bigint; end: bigint; name: string }[] {
  const nm = (flags: string[]): string =>
    execFileSync('nm', ['--defined-only', '-S', ...flags, path], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      maxBuffer: 1 << 28,
    });
  const found = `${nm([])}\n${nm(['-D'])}`.matchAll(/^([0-9a-f]+) ([0-9a-f]+) [tTwWiu] ([^\s@]+)/gm);
  return [...found].map(([, start, size, name]) => ({
    start: BigInt(`0x${start}`),
    end: BigInt(`0x${start}`) + BigInt(`0x${size}`),
    name: name!,
  }));
}

/** A stack at a moment, in nanoseconds since 1970. */
export interface Moment {
  time: bigint;
  stack: string;
}

/** How often each stack was seen from one moment to another. */
export function countStacks(seen: readonly Moment[], from: bigint, to: bigint): Stacks {
  const stacks: Stacks = new Map();
  for (const { time, stack } of seen)
    if (time >= from && time < to) stacks.set(stack, (stacks.get(stack) ?? 0) + 1);
  return stacks;
}

const frame = (file: string, address: bigint): string => `${file}+0x${address.toString(16)}`;

/** What a profile says of a process: its native frames. */
export function momentsOf(profile: Profile, pid: number, places: Places): Moment[] {
  const moments: Moment[] = [];
  for (const { process, stack, timestamps } of profile.samples) {
    if (profile.processes[process]!.pid !== pid) continue;
    const frames = userFrames(profile, profile.stacks[stack]!, places);
    if (frames.length === 0) continue;
    const text = frames.join(';');
    moments.push(...timestamps.map((time) => ({ time, stack: text })));
  }
  return moments;
}

function userFrames(profile: Profile, stack: Uint32Array, places: Places): string[] {
  const frames: string[] = [];
  for (const at of stack) {
    const { frameType, mapping, address, lines } = profile.locations[at]!;
    if (frameType === 'abort-marker')
      frames.push(`[${lines.map(({ func }) => profile.functions[func]!.name).join()}]`);
    if (frameType !== 'native' && frameType !== 'go') continue;
    // the reference calls the vDSO by the name that it has inside
    const file = basename(profile.mappings[mapping]!.filename).replace(
      /^linux-vdso\.so\.1$|^linux-vdso\.1\.so$/,
      '[vdso]',
    );
    frames.push(frames.length === 0 ? places.leaf(file, address) : frame(file, address));
  }
  return frames;
}

/**
 * perf's stacks of one process, out of `perf script -F pid,ip,sym,dso`, where addresses are offsets in their files.
 */
export function readPerfScript(text: string, pid: number, places: Places): Stacks {
  const stacks: Stacks = new Map();
  for (const sample of text.split('\n\n')) {
    const [head = '', ...lines] = sample.split('\n').filter((line) => line.trim() !== '');
    if (Number.parseInt(head, 10) !== pid) continue;
    const frames: string[] = [];
    for (const line of lines) {
      const [, offset = '0', path = ''] = /^\s+([0-9a-f]+) .*\((\S+)\)$/.exec(line) ?? [];
      if (path.startsWith('[kernel') || path.startsWith('[guest')) continue;
      if (path === '[unknown]') {
        frames.push(NOT_COPIED);
        break;
      }
      const address = places.addressOf(path, Number.parseInt(offset, 16));
      const file = basename(path);
      frames.push(frames.length === 0 ? places.leaf(file, address) : frame(file, address));
    }
    if (frames.length === 0) continue;
    const stack = frames.join(';');
    stacks.set(stack, (stacks.get(stack) ?? 0) + 1);
  }
  return stacks;
}

export const sum = (stacks: Stacks): number => [...stacks.values()].reduce((a, b) => a + b, 0);

/** What sets two profilers apart; shares of all their samples, 0 to 1, each tool counting half. */
export interface Difference {
  /** Of the same stack, frame by frame: both tools saw it. */
  identical: number;
  /** The tool's stack is a longer one of ours without its root. */
  endsEarly: number;
  /** The same the other way round. */
  weEndEarly: number;
  /** Neither: what only one of the two saw. */
  only: number;
  weOnly: number;
  /** Stacks that only one of the two saw, most samples first, for who wants to know why. */
  examples: { by: 'us' | 'them'; stack: string; count: number; kind: 'early' | 'only' }[];
}

/** Without the marker that says why a stack ends. */
const unmarked = (stack: string): string => stack.replace(/;\[[^;]*\]$/, '');

export function compare(ours: Stacks, theirs: Stacks): Difference {
  const difference: Difference = {
    identical: 0,
    endsEarly: 0,
    weEndEarly: 0,
    only: 0,
    weOnly: 0,
    examples: [],
  };
  const sides = [
    { by: 'us', own: ours, other: theirs, early: 'weEndEarly', only: 'weOnly' },
    { by: 'them', own: theirs, other: ours, early: 'endsEarly', only: 'only' },
  ] as const;
  for (const { by, own, other, early, only } of sides) {
    const all = sum(own);
    const longer = [...other.keys()];
    for (const [stack, count] of own) {
      const share = count / all / 2;
      if (other.has(stack)) difference.identical += share;
      else {
        const isEarly = longer.some((one) => one.startsWith(`${unmarked(stack)};`));
        difference[isEarly ? early : only] += share;
        difference.examples.push({ by, stack, count, kind: isEarly ? 'early' : 'only' });
      }
    }
  }
  difference.examples.sort((a, b) => b.count - a.count);
  return difference;
}
