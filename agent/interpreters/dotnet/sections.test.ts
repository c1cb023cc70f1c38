import { describe, expect, it } from 'vitest';
import { RuntimeMemory } from '../runtime-memory.ts';
import { BASE, FakeClr } from './fake-clr.ts';
import { lookUp } from './sections.ts';

const BUCKETS = 47;
const METHOD_DESC = 0x7fb5_3d36_13c8;

/** All buckets are full, and say that keys of theirs are elsewhere. */
function madeMap(key: number, bucket: number, slot: number): { memory: RuntimeMemory; map: number } {
  const clr = new FakeClr();
  const map = clr.reserve((BUCKETS + 1) * 64);
  clr.word(map, BUCKETS);
  const at = map + (bucket + 1) * 64 + slot * 8;
  clr.word(at, key);
  clr.word(at + 32, METHOD_DESC / 2);
  for (let i = 1; i <= BUCKETS; i++)
    clr.int(map + i * 64 + 36, clr.bytes.readUInt32LE(map - BASE + i * 64 + 36) + 2 ** 31);
  return { memory: new RuntimeMemory(clr), map };
}

describe("the runtime's map from code to methods", () => {
  // read from a live .NET 9: the bucket that the runtime itself had put the key into
  it.each([
    [0x7f06_328e_2990, 44, 2],
    [0x7fb5_3d36_13c0, 31, 3],
    [0x7fb5_3d18_e010, 22, 2],
    [0x7f06_32c6_2520, 34, 0],
    [0x7fa0_9e0e_2990, 8, 2],
  ])('has %d in bucket %d', (key, bucket, slot) => {
    const { memory, map } = madeMap(key, bucket, slot);
    expect(lookUp(memory, map, key)).toBe(METHOD_DESC);
    expect(lookUp(memory, map, key + 16)).toBeUndefined();
  });

  it.each([0, 1, 2 ** 40])('has nothing where it says that it has %d buckets', (count) => {
    const { memory, map } = madeMap(0x7f06_328e_2990, 44, 2);
    const clr = new FakeClr();
    clr.word(clr.reserve(64), count);
    expect(lookUp(new RuntimeMemory(clr), BASE + 64, 1)).toBeUndefined();
    expect(lookUp(memory, map, 1)).toBeUndefined();
  });
});
