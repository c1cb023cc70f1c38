import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Pid, toFileKey, toPid } from '../../common/base/brand.ts';
import { bufferSource } from '../../common/base/byte-source.ts';
import { parseElf } from '../../common/elf/elf.ts';
import { v8 } from '../interpreters/v8/plugin.ts';
import { ForeignReader } from '../processes/foreign-reader.ts';
import { FrameKind } from '../records/records.gen.ts';
import { type NamedRuntimeFrame, RuntimeFrames, type UnnamedFrame } from './runtime-frames.ts';

const frameOf = (pid: Pid, operand = 4096): UnnamedFrame => ({
  pid,
  key: toFileKey('1'.repeat(16)),
  kind: FrameKind.PYTHON,
  words: { operand, low: 1, high: 0 },
});

const FREE = { cpuMicros: () => 0, wallMs: () => 0 };

test('what is known of a process goes with it', () => {
  const runtime = { runtime: 'cpython', version: '3.13.1', facts: {}, entry: new Uint8Array(0) };
  const frames = new RuntimeFrames(() => runtime, {
    reader: new ForeignReader({ proc: '/nonexistent' }),
    clock: FREE,
  });
  const pid = toPid(4711);
  frames.name(frameOf(pid));
  frames.name(frameOf(toPid(4712)));
  expect(frames.stats).toMatchObject({ unreadable: 2 });
  expect(frames.processes).toBe(2);
  frames.forget(pid);
  expect(frames.processes).toBe(1);
});

test('a process that costs too much is left unnamed, and the others are not', () => {
  const runtime = { runtime: 'cpython', version: '3.13.1', facts: {}, entry: new Uint8Array(0) };
  const clock = { cpu: 0, cpuMicros: () => (clock.cpu += 500_000), wallMs: () => 0 };
  const frames = new RuntimeFrames(() => runtime, {
    reader: new ForeignReader({ proc: '/nonexistent' }),
    clock,
  });
  const name = (pid: number) => frames.name(frameOf(toPid(pid))).lines[0]!.name;
  // each takes half a second
  const names = Array.from({ length: 6 }, () => name(4711));
  expect(names.slice(4)).toEqual(Array(2).fill('[cpython: reading the names of its process takes too long]'));
  expect(frames.stats).toMatchObject({ unreadable: 4, costly: 2 });
  name(4712);
  expect(frames.stats).toMatchObject({ unreadable: 5, costly: 2 });
});

test('a process that cost too much is named once it may cost something again', () => {
  const runtime = { runtime: 'cpython', version: '3.13.1', facts: {}, entry: new Uint8Array(0) };
  let [cpu, wall] = [0, 0];
  const clock = { cpuMicros: () => (cpu += 500_000), wallMs: () => wall };
  const reader = new ForeignReader({ proc: '/nonexistent' });
  const frames = new RuntimeFrames(() => runtime, { reader, clock });
  const isForNow = (operand: number) => frames.name(frameOf(toPid(4711), operand)).isForNow;
  const first = Array.from({ length: 6 }, (_, i) => isForNow(i));
  expect(first).toEqual([...Array(4).fill(undefined), true, true]);
  wall += 1000;
  expect([isForNow(4), isForNow(5)]).toEqual([undefined, true]);
  // what was read last is owed: 450 ms, at 5 % of a CPU
  wall += 10_000;
  expect(isForNow(5)).toBeUndefined();
  expect(frames.stats).toMatchObject({ unreadable: 6, costly: 3 });
});

test('a plug-in that throws costs the frame and is told of once', () => {
  const warnings: string[] = [];
  const runtime = { runtime: 'cpython', version: '3.13.1', facts: null, entry: new Uint8Array(0) };
  const warn = (message: string): unknown => warnings.push(message);
  const options = { reader: new ForeignReader({ proc: '/nonexistent' }), clock: FREE, warn };
  const frames = new RuntimeFrames(() => runtime, options);
  const names = [1, 2].map(() => frames.name(frameOf(toPid(4711))).lines[0]!.name);
  expect(names).toEqual(Array(2).fill("[cpython: the agent's code for it failed]"));
  expect(frames.stats).toMatchObject({ failed: 2, named: 0 });
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toMatch(/cpython.*TypeError/);
});

test('a process that does not answer is asked again', () => {
  const runtime = { runtime: 'cpython', version: '3.13.1', facts: {}, entry: new Uint8Array(0) };
  const proc = mkdtempSync(join(tmpdir(), 'everyframe-proc-'));
  const memory = join(proc, '4711', 'mem');
  mkdirSync(join(proc, '4711'));
  // opening it waits for somebody who writes
  execFileSync('mkfifo', [memory]);
  let now = 0;
  const reader = new ForeignReader({ proc, now: () => now });
  const frames = new RuntimeFrames(() => runtime, { reader, clock: FREE });
  const isForNow = () => {
    frames.beginBatch();
    return frames.name(frameOf(toPid(4711))).isForNow;
  };
  try {
    expect([isForNow(), isForNow()]).toEqual([true, true]);
    expect(reader.stats).toMatchObject({ timedOut: 1, refused: 1 });
    rmSync(memory);
    now += 2000;
    expect(isForNow()).toBeUndefined();
  } finally {
    reader.close();
    rmSync(proc, { recursive: true });
  }
});

test('frames that are named together are named as one by one, with fewer reads', () => {
  const facts = v8.detect(parseElf(bufferSource(readFileSync(process.execPath))))!.facts;
  const runtime = { runtime: 'v8', version: '', facts, entry: new Uint8Array(0) };
  const proc = mkdtempSync(join(tmpdir(), 'everyframe-proc-'));
  mkdirSync(join(proc, '4711'));
  const reader = new ForeignReader({ proc });
  const newFrames = () => new RuntimeFrames(() => runtime, { reader, clock: FREE });
  const frames = Array.from({ length: 60 }, (_, i) => ({
    ...frameOf(toPid(4711), (i % 4) * 2 ** 48 + i * 4096 + 512),
    kind: FrameKind.V8,
  }));
  try {
    for (let seed = 1; seed <= 5; seed++) {
      writeFileSync(join(proc, '4711', 'mem'), tangledMemory(64 * 4096, seed));
      const [oneByOne, together] = [newFrames(), newFrames()];
      const before = reader.stats.reads;
      const expected = new Map(frames.map((frame) => [frame, oneByOne.name(frame)]));
      const reads = reader.stats.reads - before;
      const named = new Map<UnnamedFrame, NamedRuntimeFrame>();
      for (const _ of together.nameAll(frames, (frame, name) => named.set(frame, name)));
      expect(named).toEqual(expected);
      expect(together.stats).toEqual(oneByOne.stats);
      expect(reader.stats.reads - before - reads).toBeLessThan(reads / 2);
    }
  } finally {
    reader.close();
    rmSync(proc, { recursive: true });
  }
});

/** Objects whose words refer to one another. */
function tangledMemory(bytes: number, seed: number): Buffer {
  const memory = Buffer.alloc(bytes);
  let state = seed;
  for (let at = 0; at < bytes; at += 8) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    memory.writeUInt32LE(((state >>> 8) % (bytes / 8)) * 8 + 1, at);
  }
  return memory;
}
