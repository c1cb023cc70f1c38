import { expect, test } from 'vitest';
import { answerFirst } from './answer-first.ts';

function work(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end; );
}

test('what is quick is answered in one message', async () => {
  expect(await answerFirst([1, 2, 3], async (n) => n * 2)).toEqual([2, 4, 6]);
});

test('what comes behind one that takes long is left for the next message', async () => {
  expect(
    await answerFirst(['quick', 'long', 'quick'], (name) => {
      if (name === 'long') work(210);
      return name;
    }),
  ).toEqual(['quick', 'long']);
});

test('one that fails is the failure of all', async () => {
  const fail = (): never => {
    throw new Error('as it says');
  };
  await expect(answerFirst([1], fail)).rejects.toThrow('as it says');
});
