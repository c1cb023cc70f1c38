import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { LoopDelay } from './loop-delay.ts';

const delay = new LoopDelay();
afterEach(() => delay.stop());

function block(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

it('finds the longest time for which the loop stood still, and how often it was too long', async () => {
  delay.start();
  await sleep(100);
  block(150);
  await sleep(100);
  delay.takeInterval();
  const { maxDelayMs } = delay.stats;
  expect(maxDelayMs).toBeGreaterThan(100);
  expect(delay.stats.intervalsOverLimit).toBe(1);

  await sleep(100);
  block(maxDelayMs + 100);
  await sleep(100);
  delay.takeInterval();
  expect(delay.stats.maxDelayMs).toBeGreaterThan(maxDelayMs);
  expect(delay.stats.intervalsOverLimit).toBe(2);
});

it('says nothing where nobody asked', () => {
  const unused = new LoopDelay();
  unused.takeInterval();
  expect(unused.stats).toEqual({ maxDelayMs: 0, intervalsOverLimit: 0 });
});
