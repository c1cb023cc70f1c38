import { expect, test } from 'vitest';
import { inSlices, runInSlices } from './slices.ts';

const busy = (ms: number): void => {
  for (const end = performance.now() + ms; performance.now() < end; );
};

test('short work is done at once', () => {
  function* steps(): Generator<void, string> {
    yield;
    return 'done';
  }
  expect(runInSlices(steps())).toBe('done');
});

test('other work gets its turn between slices', async () => {
  const order: string[] = [];
  function* steps(): Generator<void, number> {
    for (let i = 0; i < 4; i++) {
      busy(6);
      order.push('step');
      yield;
    }
    return order.push('end');
  }
  setImmediate(() => order.push('other'));
  await runInSlices(steps());
  expect(order.at(-1)).toBe('end');
  expect(order.indexOf('other')).toBeLessThan(order.lastIndexOf('step'));
});

test('numbers come in their order', async () => {
  const taken: number[] = [];
  await inSlices(3, (i) => taken.push(i));
  expect(taken).toEqual([0, 1, 2]);
});
