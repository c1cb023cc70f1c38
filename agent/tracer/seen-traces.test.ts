import { expect, test } from 'vitest';
import { EF_SEEN_SETS, EF_SEEN_WAYS, SEEN_SET } from './records.gen.ts';
import { forgetSeen } from './seen-traces.ts';

/** A map of BPF's, with what it does between the agent's reading and writing. */
class SeenMap {
  readonly sets = new Map<number, Buffer>();
  updates = 0;
  meanwhile = (_set: Buffer): void => {};

  mapLookup(_fd: number, key: Buffer, bytes: number): Buffer {
    const set = this.#set(key.readUInt32LE());
    expect(bytes).toBe(set.length);
    const copy = Buffer.from(set);
    this.meanwhile(set);
    return copy;
  }

  mapUpdate(_fd: number, key: Buffer, value: Buffer): void {
    this.updates++;
    this.sets.set(key.readUInt32LE(), Buffer.from(value));
  }

  hashes(set: number): bigint[] {
    const bytes = this.#set(set);
    return Array.from({ length: EF_SEEN_WAYS }, (_, way) => bytes.readBigUInt64LE(SEEN_SET.hashes + way * 8));
  }

  put(set: number, way: number, hash: bigint): void {
    this.#set(set).writeBigUInt64LE(hash, SEEN_SET.hashes + way * 8);
  }

  #set(index: number): Buffer {
    const set = this.sets.get(index) ?? Buffer.alloc(SEEN_SET.bytes);
    this.sets.set(index, set);
    return set;
  }
}

const SET = 3;
const hash = (n: number): bigint => BigInt(n * EF_SEEN_SETS + SET);

test('takes a trace out of its set, and no other', () => {
  const map = new SeenMap();
  for (let way = 0; way < EF_SEEN_WAYS; way++) map.put(SET, way, hash(way + 1));
  forgetSeen(map, 0, hash(5));
  expect(map.hashes(SET)).toEqual([1, 2, 3, 4, 0, 6, 7, 8].map((n) => (n === 0 ? 0n : hash(n))));
});

test('finds the set of a hash of 64 bits', () => {
  const map = new SeenMap();
  const large = 0xffff_ffff_ffff_f000n + BigInt(SET);
  map.put(SET, 0, large);
  forgetSeen(map, 0, large);
  expect(map.hashes(SET)).toEqual(Array(EF_SEEN_WAYS).fill(0n));
});

test('writes nothing where the trace is gone already', () => {
  const map = new SeenMap();
  map.put(SET, 0, hash(1));
  forgetSeen(map, 0, hash(2));
  expect(map.updates).toBe(0);
});

test('whatever BPF does meanwhile, the trace is gone', () => {
  const map = new SeenMap();
  map.put(SET, 0, hash(1));
  map.put(SET, 1, hash(2));
  // another trace takes the place of the second
  map.meanwhile = (set) => set.writeBigUInt64LE(hash(3), SEEN_SET.hashes + 8);
  forgetSeen(map, 0, hash(1));
  expect(map.hashes(SET)).not.toContain(hash(1));
});
