import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { parseFilter } from '../../../common/profile/filters/filter.ts';
import { profileFromText } from '../../../test/browser/synthetic-profile.ts';
import { testLinks } from '../../../test/support/store-links.ts';
import { testTypes } from '../../../test/support/store-types.ts';
import { buildFlameTree } from '../../query/flame/flame-tree.ts';
import { readWindow } from '../../query/window.ts';
import { EVERYTHING } from '../matcher.ts';
import type { SampleFilter } from '../store.ts';
import { MemoryStore } from './memory-store.ts';

const START_MS = Date.UTC(2026, 0, 1, 12);
const MINUTE = 60_000;
const MIB = 2 ** 20;
let nowMs = START_MS;
const now = (): number => nowMs;

beforeEach(() => {
  nowMs = START_MS;
});

const makeStore = (maxBytes = 64 * MIB): MemoryStore =>
  new MemoryStore({ maxBytes, maxAgeMs: 60 * MINUTE, now });
const everything = { fromMs: 0, toMs: START_MS + 100 * MINUTE, where: [] };

async function readLines(store: MemoryStore, filter: SampleFilter = everything) {
  const { parts } = await readWindow(store, filter, 1);
  const tree = buildFlameTree(parts, { minFraction: 0, maxNodes: 1e6 });
  const paths: string[] = [];
  const lines: string[] = [];
  for (const [node, parent] of tree.parents.entries()) {
    const name = tree.frames[tree.nodeFrames[node]!]!.name;
    paths[node] = node === 0 ? '' : `${paths[parent]!}${paths[parent] === '' ? '' : ';'}${name}`;
    if (tree.selfCounts[node]! > 0) lines.push(`${paths[node]} ${tree.selfCounts[node]}`);
  }
  return lines.sort();
}

describe('MemoryStore', () => {
  testTypes(now, () => ({ open: async () => makeStore() }), false);
  testLinks(now, () => {
    const store = new MemoryStore({ maxBytes: 64 * MIB, maxAgeMs: 240 * MINUTE, now });
    return { open: async () => store };
  });

  it('gives back stacks root first, under the name of their process', async () => {
    const store = makeStore();
    const text = 'sh:10;main@n;fork@n;do_syscall_64@k 3\nsh:11;main@n 2\nnode:12;main@n;render@j 4';
    expect(store.append(profileFromText(text, { endMs: nowMs, spanMs: 1000 }))).toEqual({
      stored: 9,
      rejected: new Map(),
    });
    expect(await readLines(store)).toEqual([
      'node;main;render 4',
      'sh;main 2',
      'sh;main;fork;do_syscall_64 3',
    ]);
    expect(await readLines(store, { ...everything, where: parseFilter('process=sh') })).toEqual([
      'sh;main 2',
      'sh;main;fork;do_syscall_64 3',
    ]);
  });

  it('takes a number that no CPU of Linux has for none, not for another CPU', async () => {
    const store = makeStore();
    const profile = profileFromText('a;x@n 1\nb;x@n 1\nc;x@n 1\nd;x@n 1', { endMs: nowMs, spanMs: 1 });
    for (const [i, cpu] of [8191, 65_536, 40_000, -7].entries()) profile.samples[i]!.cpu = cpu;
    store.append(profile);
    const [part] = await store.parts(everything);
    const { cpus } = await part!.rows({
      ...everything,
      ...EVERYTHING,
      by: ['cpu'],
      stepMs: 1,
      resolutionMs: 1,
    });
    expect(Array.from(cpus!).slice(0, 4)).toEqual([8191, -1, -1, -1]);
  });

  it('shows inlined calls as frames of their own, outermost first', async () => {
    const store = makeStore();
    const profile = profileFromText('sh;outer@n 1', { endMs: nowMs, spanMs: 1 });
    const func =
      profile.functions.push({ name: 'inlined', systemName: '', filename: 'a.c', startLine: 1 }) - 1;
    profile.locations[1]!.lines.unshift({ func, line: 3, column: 0 });
    store.append(profile);
    expect(await readLines(store)).toEqual(['sh;outer;inlined 1']);
  });

  it('names what has no function by file and address', async () => {
    const store = makeStore();
    const profile = profileFromText('sh;a@n;b@k;c 1', { endMs: nowMs, spanMs: 1 });
    for (const location of profile.locations) location.lines = [];
    store.append(profile);
    expect(await readLines(store)).toEqual(['sh;libc.so.6+0x1010;vmlinux+0x1020;[unknown]+0x1030 1']);
  });

  it('filters by time to the millisecond and says what it found', async () => {
    const store = makeStore();
    store.append(profileFromText('a:1;x@n 100\nb:2;x@n 50', { endMs: nowMs, spanMs: 10_000 }));
    const window = await readWindow(
      store,
      { fromMs: nowMs - 5000, toMs: nowMs, where: parseFilter('process=a') },
      5,
    );
    expect(window.samples).toBe(50);
    expect(window.allSamples).toBe(75);
    expect(window.cpuNanos).toBe(50 * 50_000_000);
    expect(window.cpus).toBe(2);
    expect([...window.timeline]).toEqual([10, 10, 10, 10, 10]);
  });

  it('counts events without timestamps at the end of their profile', async () => {
    const store = makeStore();
    const profile = profileFromText('a:1;x@n 7', { endMs: nowMs, spanMs: 1000 });
    profile.samples[0]!.timestamps = [];
    profile.durationNano = 999n * 1_000_000n;
    expect(store.append(profile).stored).toBe(7);
    const window = await readWindow(store, { fromMs: nowMs - 1, toMs: nowMs, where: [] }, 1);
    expect(window.samples).toBe(7);
    expect(store.stats().samples).toBe(7);
  });

  it('rejects, with the reason, events outside of the time that is kept', () => {
    const store = makeStore();
    const old = profileFromText('a:1;x@n 3', { endMs: nowMs - 61 * MINUTE, spanMs: 1 });
    expect([...store.append(old).rejected]).toEqual([
      [expect.stringContaining('more than 60 minutes ago'), 3],
    ]);
    const future = profileFromText('a:1;x@n 4', { endMs: nowMs + 2 * MINUTE, spanMs: 1 });
    expect([...store.append(future).rejected]).toEqual([[expect.stringContaining('in the future'), 4]]);
    expect(store.stats().samples).toBe(0);
  });

  it('forgets samples and their dictionaries once they are too old', async () => {
    const store = makeStore();
    for (let minute = 0; minute < 60; minute++) {
      nowMs = START_MS + minute * MINUTE;
      store.append(profileFromText(`p${minute}:1;f${minute}@n 10`, { endMs: nowMs, spanMs: 1 }));
    }
    const full = store.stats();
    expect(full.samples).toBe(600);
    nowMs = START_MS + 90 * MINUTE;
    const later = store.stats();
    expect(later.samples + later.droppedForAge).toBe(600);
    expect(later.bytes).toBeLessThan(full.bytes * 0.6);
    expect(later.droppedForMemory).toBe(0);
    nowMs = START_MS + 200 * MINUTE;
    expect(store.stats()).toMatchObject({ samples: 0, bytes: 0, droppedForAge: 600, oldestMs: undefined });
  });

  it('stays within its bytes: the oldest samples go, and are counted', async () => {
    const store = makeStore(16 * MIB);
    let sent = 0;
    for (let second = 0; second < 300; second++) {
      nowMs = START_MS + second * 1000;
      // New names each second: the dictionaries grow as much as the columns.
      const lines = Array.from({ length: 40 }, (_, i) => `p:1;main@n;f${second}x${i}@n;leaf@k 100`);
      sent += store.append(profileFromText(lines.join('\n'), { endMs: nowMs, spanMs: 1000 })).stored;
      expect(store.stats().bytes).toBeLessThanOrEqual(16 * MIB);
    }
    const { samples, droppedForMemory, oldestMs } = store.stats();
    expect(sent).toBe(300 * 4000);
    expect(droppedForMemory).toBeGreaterThan(0);
    expect(samples + droppedForMemory).toBe(sent);
    expect(samples).toBeGreaterThan(400_000);
    expect(oldestMs).toBeGreaterThanOrEqual(START_MS);
    const window = await readWindow(store, everything, 1);
    expect(window.samples).toBe(samples);
  });

  it('loses no count of events that arrive late while it is full', () => {
    const store = makeStore(16 * MIB);
    let sent = 0;
    for (let i = 0; i < 120; i++) {
      const lines = Array.from({ length: 100 }, (_, j) => `p:1;main@n;f${i}x${j}@n;leaf@k 120`);
      const profile = profileFromText(lines.join('\n'), { endMs: nowMs, spanMs: 1000 });
      // The last of them are for an older minute, which is the first to be dropped again.
      for (const sample of profile.samples.slice(90)) {
        sample.timestamps = sample.timestamps.map((time) => time - BigInt((i % 25) * MINUTE) * 1_000_000n);
      }
      sent += store.append(profile).stored;
      const { samples, droppedForMemory, bytes } = store.stats();
      expect(samples + droppedForMemory).toBe(sent);
      expect(bytes).toBeLessThanOrEqual(16 * MIB);
    }
    expect(store.stats().droppedForMemory).toBeGreaterThan(0);
  });

  it('bounds what a small profile of long stacks can cost', async () => {
    const store = makeStore();
    const frames = Array.from({ length: 9000 }, (_, i) => `f${i}@n`).join(';');
    expect(store.append(profileFromText(`p:1;${frames} 1`, { endMs: nowMs, spanMs: 1 })).stored).toBe(1);
    const [line] = await readLines(store);
    expect(line!.split(';').length).toBe(1 + 1 + 4096);
    expect(line).toMatch(/^p;\[stack cut: more than 4096 frames\];f4904;/);

    const bomb = profileFromText('p:1;a@n 1', { endMs: nowMs, spanMs: 1 });
    const line0 = bomb.locations[1]!.lines[0]!;
    bomb.locations[1]!.lines = Array.from({ length: 4096 }, () => line0);
    for (let i = 0; i < 3000; i++) {
      bomb.stacks.push(Uint32Array.of(1, 1, i));
      bomb.samples.push({ ...bomb.samples[0]!, stack: bomb.stacks.length - 1 });
    }
    bomb.locations.push(...Array.from({ length: 3000 }, () => bomb.locations[1]!));
    const result = store.append(bomb);
    expect(result.stored).toBeGreaterThan(1000);
    expect([...result.rejected]).toEqual([[expect.stringContaining('8000000 frames'), 3001 - result.stored]]);
  });

  it('bounds what large tables cost whose samples lie in many minutes', () => {
    const store = new MemoryStore({ maxBytes: 64 * MIB, maxAgeMs: 600 * MINUTE, now });
    const bomb = profileFromText('p:1;a@n 300', { endMs: nowMs, spanMs: 1 });
    const first = BigInt(nowMs) * 1_000_000n;
    bomb.samples[0]!.timestamps = Array.from(
      { length: 300 },
      (_, i) => first - BigInt(i * MINUTE) * 1_000_000n,
    );
    for (let i = 0; i < 200_000; i++) bomb.locations.push(bomb.locations[1]!);
    const { stored, rejected } = store.append(bomb);
    expect(stored).toBe(Math.floor(32_000_000 / 200_010));
    expect([...rejected]).toEqual([[expect.stringContaining('32000000 entries'), 300 - stored]]);
  });

  it('keeps addresses apart that nothing names', async () => {
    const store = makeStore();
    const profile = profileFromText('p:1;a@n;b@n;c@n;d@n 1', { endMs: nowMs, spanMs: 1 });
    const addresses = [0x10n, 0xffff_ffffn, 0x1_0000_0010n, 0n];
    for (const [i, address] of addresses.entries())
      Object.assign(profile.locations[i + 1]!, {
        lines: [],
        address,
        frameType: i === 1 ? 'kernel' : 'native',
      });
    store.append(profile);
    const [line] = await readLines(store);
    const { filename } = profile.mappings[profile.locations[1]!.mapping]!;
    const file = filename === '' ? '[unknown]' : filename.slice(filename.lastIndexOf('/') + 1);
    expect(line!.split(/[; ]/).slice(1, 5).sort()).toEqual(
      [
        `${file}+0x10`,
        `${file}+0x100000010`,
        `${file}+0xffffffff`,
        file === '[unknown]' ? file : `[${file}]`,
      ].sort(),
    );
  });
});

it('conserves every event: the flame graph adds up to what was stored, stack by stack', async () => {
  const name = fc.constantFrom('a@n', 'b@n', 'c@k', 'd@j', 'e');
  const stack = fc.record({
    process: fc.constantFrom('p:1', 'p:2', 'q:3'),
    frames: fc.array(name, { minLength: 1, maxLength: 6 }),
    count: fc.integer({ min: 1, max: 50 }),
  });
  const batch = fc.record({
    stacks: fc.array(stack, { minLength: 1, maxLength: 12 }),
    laterMs: fc.nat(90_000),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(batch, { maxLength: 8 }), async (batches) => {
      nowMs = START_MS;
      const store = makeStore();
      const expected = new Map<string, number>();
      for (const { stacks, laterMs } of batches) {
        nowMs += laterMs;
        const text = stacks.map(({ process, frames, count }) => `${process};${frames.join(';')} ${count}`);
        store.append(profileFromText(text.join('\n'), { endMs: nowMs, spanMs: 5000 }));
        for (const { process, frames, count } of stacks) {
          const key = [process.split(':')[0], ...frames.map((frame) => frame.split('@')[0])].join(';');
          expected.set(key, (expected.get(key) ?? 0) + count);
        }
      }
      const lines = [...expected].map(([key, count]) => `${key} ${count}`);
      expect(await readLines(store)).toEqual(lines.sort());
    }),
    { numRuns: 60 },
  );
});
