import { expect, test } from 'vitest';
import { toFileKey, toPid } from '../../common/base/brand.ts';
import { ForeignReader } from '../processes/foreign-reader.ts';
import { FrameKind } from '../tracer/records.gen.ts';
import { RuntimeFrames } from './runtime-frames.ts';

const FREE = { cpuMicros: () => 0, wallMs: () => 0 };

test('what is known of a process goes with it', () => {
  const runtime = { runtime: 'cpython', version: '3.13.1', facts: {}, entry: new Uint8Array(0) };
  const frames = new RuntimeFrames(() => runtime, {
    reader: new ForeignReader({ proc: '/nonexistent' }),
    clock: FREE,
  });
  const pid = toPid(4711);
  frames.name(pid, toFileKey('1'.repeat(16)), FrameKind.PYTHON, { operand: 4096, low: 1, high: 0 });
  frames.name(toPid(4712), toFileKey('1'.repeat(16)), FrameKind.PYTHON, { operand: 4096, low: 1, high: 0 });
  expect(frames.stats).toMatchObject({ unreadable: 2 });
  expect(frames.processes).toBe(2);
  frames.forget(pid);
  expect(frames.processes).toBe(1);
});

test('a process that costs too much is left unnamed, and the others are not', () => {
  const runtime = { runtime: 'cpython', version: '3.13.1', facts: {}, entry: new Uint8Array(0) };
  const key = toFileKey('1'.repeat(16));
  const clock = { cpu: 0, cpuMicros: () => (clock.cpu += 500_000), wallMs: () => 0 };
  const frames = new RuntimeFrames(() => runtime, {
    reader: new ForeignReader({ proc: '/nonexistent' }),
    clock,
  });
  const name = (pid: number) =>
    frames.name(toPid(pid), key, FrameKind.PYTHON, { operand: 4096, low: 1, high: 0 }).lines[0]!.name;
  // each takes half a second
  const names = Array.from({ length: 6 }, () => name(4711));
  expect(names.slice(4)).toEqual(Array(2).fill('[cpython: reading the names of its process takes too long]'));
  expect(frames.stats).toMatchObject({ unreadable: 4, costly: 2 });
  name(4712);
  expect(frames.stats).toMatchObject({ unreadable: 5, costly: 2 });
});

test('a plug-in that throws costs the frame and is told of once', () => {
  const warnings: string[] = [];
  const runtime = { runtime: 'cpython', version: '3.13.1', facts: null, entry: new Uint8Array(0) };
  const warn = (message: string): unknown => warnings.push(message);
  const options = { reader: new ForeignReader({ proc: '/nonexistent' }), clock: FREE, warn };
  const frames = new RuntimeFrames(() => runtime, options);
  const words = { operand: 4096, low: 1, high: 0 };
  const names = [1, 2].map(
    () => frames.name(toPid(4711), toFileKey('1'.repeat(16)), FrameKind.PYTHON, words).lines[0]!.name,
  );
  expect(names).toEqual(Array(2).fill("[cpython: the agent's code for it failed]"));
  expect(frames.stats).toMatchObject({ failed: 2, named: 0 });
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toMatch(/cpython.*TypeError/);
});
