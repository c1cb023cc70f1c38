import { expect, test } from 'vitest';
import { EF_SEEN_SETS, EF_SEEN_WAYS, SEEN_SET } from '../records/records.gen.ts';
import { SEEN_BYTES, SeenTraces } from './seen-traces.ts';

const SET = 3;
const hash = (n: number): bigint => (BigInt(n) << 40n) | BigInt(n * EF_SEEN_SETS + SET);
const low = (n: bigint): number => Number(n & 0xffff_ffffn);
const high = (n: bigint): number => Number(n >> 32n);

function mapWith(hashes: readonly bigint[], set = SET): { seen: SeenTraces; hashes(): bigint[] } {
  const memory = new ArrayBuffer(SEEN_BYTES);
  const words = new BigUint64Array(memory, set * SEEN_SET.bytes + SEEN_SET.hashes, EF_SEEN_WAYS);
  words.set(hashes);
  return { seen: new SeenTraces(memory), hashes: () => [...words] };
}

test('takes a trace out of its set, and no other', () => {
  const all = [1, 2, 3, 4, 5, 6, 7, 8].map(hash);
  const { seen, hashes } = mapWith(all);
  seen.forget(low(hash(5)), high(hash(5)));
  expect(hashes()).toEqual(all.map((one) => (one === hash(5) ? 0n : one)));
});

test('finds the set of a hash of 64 bits', () => {
  const large = 0xffff_ffff_ffff_ffffn;
  const { seen, hashes } = mapWith([large], EF_SEEN_SETS - 1);
  seen.forget(0xffff_ffff, 0xffff_ffff);
  expect(hashes()).toEqual(Array(EF_SEEN_WAYS).fill(0n));
});

test('leaves a trace whose hash differs in its high half', () => {
  const { seen, hashes } = mapWith([hash(1)]);
  seen.forget(low(hash(1)), high(hash(1)) + 1);
  expect(hashes()[0]).toBe(hash(1));
});
