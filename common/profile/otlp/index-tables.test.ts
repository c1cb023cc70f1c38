import fc from 'fast-check';
import { expect, it } from 'vitest';
import { IntList } from '../../protobuf/proto-reader.ts';
import { EntryMap, SequenceTable } from './index-tables.ts';

const listOf = (values: readonly number[]): IntList => {
  const list = new IntList();
  for (const value of values) list.push(value);
  return list;
};

it('gives each list of integers one id, which counts from 0', () => {
  const lists = fc.array(fc.array(fc.integer({ min: -2, max: 3 }), { maxLength: 5 }), { maxLength: 300 });
  fc.assert(
    fc.property(lists, (all) => {
      const [table, ids] = [new SequenceTable(), new Map<string, number>()];
      for (const list of all) {
        const key = list.join();
        if (!ids.has(key)) ids.set(key, ids.size);
        expect(table.intern(listOf(list))).toBe(ids.get(key));
      }
    }),
    { numRuns: 50 },
  );
});

it('does not look far for lists that were made to have one hash', () => {
  // flips of the highest bit go through a multiplication as they are, so the next number can take them back
  const block = (isFlipped: boolean): number[] => (isFlipped ? [-0x8000_0000, 0x8001_0000 | 0] : [0, 0]);
  const lists = Array.from({ length: 1024 }, (_, i) =>
    Array.from({ length: 10 }, (_, bit) => block(((i >> bit) & 1) === 1)).flat(),
  );
  const table = new SequenceTable();
  const ids = lists.map((list) => table.intern(listOf(list)));
  expect(new Set(ids).size).toBe(1024);
  expect(table.intern(listOf(lists[0]!))).toBe(ids[0]);
  expect(table.intern(listOf(lists[1023]!))).toBe(1024);
});

it('forgets what another profile had', () => {
  const map = new EntryMap(3);
  map.clear();
  map.set(2, 7);
  map.setProblem(1, new Error('bad'));
  expect([map.find(0), map.find(1), map.find(2), map.find(3), map.find(-1)]).toEqual([0, -1, 7, -1, -1]);
  expect(map.problemOf(1)?.message).toBe('bad');
  map.clear();
  expect([map.find(2), map.problemOf(1)]).toEqual([-1, undefined]);
});
