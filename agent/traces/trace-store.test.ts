import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { TraceId } from '../../common/base/brand.ts';
import { TRACE } from '../records/records.gen.ts';
import { TraceStore } from './trace-store.ts';

/** Of as many words as it says. */
function record(hash: number, content: number, words = 4): Buffer {
  const bytes = Buffer.alloc(TRACE.frames + words * 8);
  bytes.writeUInt16LE(words, TRACE.words);
  bytes.writeUInt32LE(hash, TRACE.traceHash);
  bytes.writeUInt32LE(7, TRACE.processTgid);
  for (let i = 0; i < words; i++) bytes.writeBigUInt64LE(BigInt(content + i), TRACE.frames + i * 8);
  return bytes;
}

const add = (store: TraceStore, bytes: Buffer): TraceId => store.add(bytes, 0, bytes.length);
const contentOf = (store: TraceStore, id: TraceId): number => store.read(id).u32Pairs[0]!;

/** Of slabs that hold eight traces of four words each. */
function smallStore(maxBytes = 4096): { store: TraceStore; forgotten: number[] } {
  const forgotten: number[] = [];
  const forget = (low: number): void => void forgotten.push(low);
  return { store: new TraceStore({ maxBytes, forget, slabNumbers: 256 }), forgotten };
}

test('what is sampled stays, and BPF is told of the rest, at most once each', () => {
  const { store, forgotten } = smallStore();
  add(store, record(1, 100));
  for (let i = 2; i < 500; i++) {
    store.release(store.beginInterval() - 1);
    for (let n = 0; n < 4; n++) store.drained();
    expect(store.sampled(1, 0)).toBeDefined();
    add(store, record(i, i));
  }
  expect(contentOf(store, store.sampled(1, 0)!)).toBe(100);
  expect(forgotten).not.toContain(1);
  expect(new Set(forgotten).size).toBe(forgotten.length);
  expect(store.stats).toMatchObject({ added: 499, conflicts: 0 });
  expect(store.stats.moved).toBeGreaterThan(10);
  expect(forgotten).toHaveLength(store.stats.evicted);
  expect(store.bytes).toBeLessThanOrEqual(4096 + 1024);
});

test('traces that are all in use leave room for others all the same', () => {
  const { store } = smallStore();
  for (let i = 1; i < 300; i++) {
    add(store, record(i, i));
    for (let known = 1; known <= i; known++) store.sampled(known, 0);
    store.release(store.beginInterval() - 1);
    for (let n = 0; n < 4; n++) store.drained();
  }
  expect(store.stats.evicted).toBeGreaterThan(200);
  expect(store.bytes).toBeLessThanOrEqual(4096 + 1024);
});

test('a trace can be read until its interval was released and samples under way have come', () => {
  const { store, forgotten } = smallStore();
  const interval = store.beginInterval();
  const id = add(store, record(1, 100));
  store.sampled(1, 0);
  for (let i = 2; i < 200; i++) add(store, record(i, i));
  expect(forgotten).toContain(1);
  for (let n = 0; n < 9; n++) store.drained();
  expect(contentOf(store, id)).toBe(100);
  store.release(interval);
  store.drained();
  expect(store.sampled(1, 0)).toBeUndefined();

  const later = add(store, record(1, 300));
  expect(contentOf(store, later)).toBe(300);
});

test('a trace that comes again on its way out is back, under another ID', () => {
  const { store, forgotten } = smallStore();
  const id = add(store, record(1, 100));
  for (let i = 2; i < 60; i++) add(store, record(i, i));
  expect(forgotten).toContain(1);
  const again = add(store, record(1, 100));
  expect(store.hasMoved(id, again)).toBe(true);
  expect(store.hasMoved(again, id)).toBe(false);
  for (let n = 0; n < 4; n++) store.drained();
  expect(contentOf(store, store.sampled(1, 0)!)).toBe(100);
  expect(store.stats).toMatchObject({ repeated: 1, conflicts: 0 });
});

test('two traces of one hash are told apart: the newer one holds from there on', () => {
  const { store } = smallStore();
  const older = add(store, record(1, 100));
  const newer = add(store, record(1, 200));
  expect([contentOf(store, older), contentOf(store, newer)]).toEqual([100, 200]);
  expect(store.sampled(1, 0)).toBe(newer);
  expect(store.hasMoved(older, newer)).toBe(false);
  expect(store.stats).toMatchObject({ added: 2, conflicts: 1, repeated: 0 });
});

test('frames stay with a trace that moves, for as long as their numbers mean the same', () => {
  const { store } = smallStore();
  store.setFrames(add(store, record(1, 100)), [4, 5, 6], 3);
  for (let i = 2; i < 60; i++) {
    store.sampled(1, 0);
    add(store, record(i, i));
  }
  const id = store.sampled(1, 0)!;
  expect(store.stats.moved).toBeGreaterThan(0);
  const frames = new Uint32Array(store.frameCount(id));
  store.mapFrames(id, frames, (frame) => frame * 2);
  expect([...frames]).toEqual([8, 10, 12]);
  expect([store.hasFrames(id, 3), store.hasFrames(id, 4)]).toEqual([true, false]);
});

test('half of all traces go where memory runs out', () => {
  const { store } = smallStore(1 << 16);
  for (let i = 1; i < 400; i++) add(store, record(i, i));
  const { bytes } = store;
  for (const _ of store.dropHalf());
  for (let n = 0; n < 4; n++) store.drained();
  expect(store.bytes).toBeLessThanOrEqual(bytes / 2);
  expect(store.sampled(1, 0)).toBeUndefined();
  expect(contentOf(store, store.sampled(399, 0)!)).toBe(399);
});

test('a record that claims more words than it has is read as far as it goes', () => {
  fc.assert(
    fc.property(fc.nat(0xffff), fc.nat(0xffff), fc.nat(20), (words, kernelFrames, present) => {
      const { store } = smallStore();
      const bytes = record(1, 1, present);
      bytes.writeUInt16LE(words, TRACE.words);
      bytes.writeUInt16LE(kernelFrames, TRACE.kernelFrames);
      const trace = store.read(add(store, bytes));
      expect(trace.u32Pairs.length / 2).toBeLessThanOrEqual(Math.min(words, present));
      expect(trace.kernelFrames).toBeLessThanOrEqual(trace.u32Pairs.length / 2);
    }),
  );
});
