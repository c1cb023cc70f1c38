import { expect, test } from 'vitest';
import { nextTurn } from '../../common/base/slices.ts';
import { RecordStream } from './record-stream.ts';

/** Records of the sizes, each filled with its number. */
function ringOf(...sizes: number[]): { drain(buffer: Buffer): number } {
  return {
    drain(buffer) {
      let at = 0;
      for (const [number, size] of sizes.splice(0).entries()) {
        buffer.writeUInt32LE(size, at);
        buffer.fill(number, at + 8, at + 8 + size);
        at += 8 + Math.ceil(size / 8) * 8;
      }
      return at;
    },
  };
}

/** A slice of no time is one record or step. */
const NO_TIME = 0;

test('takes whatever is there in one slice', () => {
  const taken: string[] = [];
  const records = new RecordStream(ringOf(1, 8, 9), {
    beginBatch: () => taken.push('batch'),
    onRecord: (buffer, at, size): undefined => {
      taken.push(buffer.toString('hex', at, at + size));
    },
    drained: () => taken.push('drained'),
  });
  records.drain();
  expect(taken).toEqual(['batch', '00', '01'.repeat(8), '02'.repeat(9), 'drained']);
});

test('gives the event loop its turn after each record that takes as long as a slice', async () => {
  const taken: number[] = [];
  const records = new RecordStream(
    ringOf(8, 8),
    {
      onRecord: (buffer, at): undefined => {
        taken.push(buffer[at]!);
      },
      drained: () => taken.push(-1),
    },
    NO_TIME,
  );
  const seen: number[] = [];
  records.drain(); // fills the batch
  for (let turn = 0; turn < 3; turn++) {
    seen.push(taken.length);
    // as BPF asks for it, for the event loop there is still one slice a turn
    records.drain();
    records.drain();
    await nextTurn();
  }
  expect(seen).toEqual([0, 1, 2]);
  expect(taken).toEqual([0, 1, -1]);
});

test('gives the event loop its turn after each step of a record, and takes no other before the last', async () => {
  const taken: string[] = [];
  function* steps(record: number): Generator<void, void> {
    for (let step = 0; step < 2; step++) {
      taken.push(`${record}.${step}`);
      yield;
    }
  }
  const records = new RecordStream(ringOf(8, 8), { onRecord: (buffer, at) => steps(buffer[at]!) }, NO_TIME);
  records.drain();
  await nextTurn();
  await nextTurn();
  expect(taken).toEqual(['0.0']);
  await records.catchUp(Infinity);
  expect(taken).toEqual(['0.0', '0.1', '1.0', '1.1']);
});

test('a batch ends once its records are taken, and with the steps that this leaves', async () => {
  const taken: string[] = [];
  function* steps(): Generator<void, void> {
    taken.push('ends');
    yield;
    taken.push('has ended');
  }
  const consumer = {
    beginBatch: () => taken.push('batch'),
    onRecord: (buffer: Buffer, at: number): undefined => {
      taken.push(String(buffer[at]!));
    },
    endBatch: steps,
    drained: () => taken.push('drained'),
  };
  const records = new RecordStream(ringOf(8, 8), consumer, NO_TIME);
  records.drain();
  while (!taken.includes('drained')) await nextTurn();
  expect(taken).toEqual(['batch', '0', '1', 'ends', 'has ended', 'drained']);
});

test('catches up with what came behind the batch under way, and gives up in time', async () => {
  const taken: number[] = [];
  const waiting = [8, 8];
  const ring = { drain: (batch: Buffer) => ringOf(...waiting.splice(0)).drain(batch) };
  const onRecord = (): undefined => void taken.push(taken.length);
  const records = new RecordStream(ring, { onRecord }, NO_TIME);
  records.drain(); // fills the batch
  waiting.push(8);
  expect(await records.catchUp(Infinity)).toBe(true);
  expect(taken).toEqual([0, 1, 2]);
  waiting.push(8);
  expect(await records.catchUp(0)).toBe(false);
  expect(await records.catchUp(Infinity)).toBe(true);
  expect(taken).toEqual([0, 1, 2, 3]);
});
