import { expect, test } from 'vitest';
import { Turns } from './turns.ts';

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('so much at a time, the rest in order, also behind work that fails', async () => {
  const turns = new Turns(2);
  const done: number[] = [];
  let [running, most] = [0, 0];
  const all = Array.from({ length: 9 }, (_, i) =>
    turns.run(async () => {
      most = Math.max(most, ++running);
      await nextTurn();
      running--;
      if (i % 3 === 2) throw new Error('as a test');
      done.push(i);
    }),
  );
  expect(turns.waiting).toBe(7);
  const results = await Promise.allSettled(all);
  expect(results.filter(({ status }) => status === 'rejected')).toHaveLength(3);
  expect(done).toEqual([0, 1, 3, 4, 6, 7]);
  expect(most).toBe(2);
  await nextTurn();
  expect(await turns.run(() => 'free')).toBe('free');
});
