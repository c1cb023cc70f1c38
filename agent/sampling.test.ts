import { expect, it } from 'vitest';
import { Sampling } from './sampling.ts';

it('switches the events by chance, and only on a change', () => {
  const calls: string[] = [];
  const events = {
    enable: () => {
      calls.push('on');
      return Promise.resolve();
    },
    disable: () => void calls.push('off'),
  };
  const rolls = [0.1, 0.5, 0.9, 0.2, 0.1];
  const options = { probabilisticThreshold: 30, probabilisticIntervalMs: 60_000 };
  const sampling = new Sampling(options, events, () => rolls.shift() ?? 1);
  for (let i = 0; i < 5; i++) sampling.choose();
  expect(calls).toEqual(['off', 'on']);
});

it('never switches with a threshold of 100', () => {
  const events = { enable: () => Promise.reject(new Error('on')), disable: () => expect.fail('off') };
  const sampling = new Sampling({ probabilisticThreshold: 100, probabilisticIntervalMs: 60_000 }, events);
  sampling.start();
  sampling.choose();
  sampling.stop();
});
