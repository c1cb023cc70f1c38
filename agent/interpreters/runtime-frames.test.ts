import { expect, test } from 'vitest';
import { toFileKey, toPid } from '../../common/base/brand.ts';
import { FrameKind } from '../tracer/records.gen.ts';
import { RuntimeFrames } from './runtime-frames.ts';

test('what is known of a process goes with it', () => {
  const runtime = { runtime: 'cpython', version: '3.13.1', facts: {}, entry: new Uint8Array(0) };
  const frames = new RuntimeFrames(() => runtime, '/nonexistent');
  const pid = toPid(4711);
  frames.name(pid, toFileKey('1'.repeat(16)), FrameKind.PYTHON, { operand: 4096, low: 1, high: 0 });
  frames.name(toPid(4712), toFileKey('1'.repeat(16)), FrameKind.PYTHON, { operand: 4096, low: 1, high: 0 });
  expect(frames.stats).toMatchObject({ unreadable: 2 });
  expect(frames.processes).toBe(2);
  frames.forget(pid);
  expect(frames.processes).toBe(1);
});
