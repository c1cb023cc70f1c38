import { expect, test } from 'vitest';
import { RecordDispatch } from './record-dispatch.ts';

const recordOf = (type: number): Buffer => {
  const record = Buffer.alloc(16);
  record.writeUInt16LE(type);
  return record;
};

test('a record that cannot be taken costs itself, is counted, and is told of once', () => {
  const taken: number[] = [];
  const warnings: string[] = [];
  const takers = {
    1: (record: Buffer) => void taken.push(record.readUInt16LE(0)),
    2: () => {
      throw new TypeError('no such property');
    },
  };
  const records = new RecordDispatch(takers, (message) => warnings.push(message));
  for (const type of [1, 2, 1, 2, 7, 1]) records.take(recordOf(type), 0, 16);
  expect(taken).toEqual([1, 1, 1]);
  expect(records.stats).toEqual({ malformed: 1, failed: 2 });
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toMatch(/no such property/);
});

test('a record is not taken either where what it left to be done fails', () => {
  const warnings: string[] = [];
  const steps: number[] = [];
  function* failing(): Generator<void> {
    steps.push(1);
    yield;
    throw new TypeError('no such process');
  }
  const records = new RecordDispatch({ 1: failing }, (message) => warnings.push(message));
  const left = records.take(recordOf(1), 0, 16)!;
  expect(left.next().done).toBe(false);
  expect(left.next().done).toBe(true);
  expect(steps).toEqual([1]);
  expect(records.stats).toEqual({ malformed: 0, failed: 1 });
  expect(warnings[0]).toMatch(/no such process/);
});
