import { expect, it } from 'vitest';
import { timeTicks } from './time-ticks.ts';

it('has round times with room for their labels', () => {
  const fromMs = Date.UTC(2026, 0, 1, 12, 0, 3);
  for (const [seconds, width] of [
    [5, 300],
    [60, 1200],
    [300, 390],
    [86_400, 900],
  ] as const) {
    const ticks = timeTicks({ fromMs, toMs: fromMs + seconds * 1000 }, width);
    expect(ticks.length).toBeGreaterThan(0);
    expect(ticks.length).toBeLessThanOrEqual(width / 90);
    for (const ms of ticks) expect(ms % 1000).toBe(0);
  }
});
