import { expect, it } from 'vitest';
import { CPU_SAMPLES, timeScale } from '../../../common/flame/shown-type.ts';
import { labelsWidth, timeLabels } from './timeline-ticks.ts';

it('tells tiny shares of a CPU apart', () => {
  const { label } = timeScale(CPU_SAMPLES, 1000, 1e7);
  expect([0, 0.5, 1, 12.5].map(label)).toEqual(['0', '0.5', '1', '12.5']);
  expect([0, 0.00002, 0.00004].map(label)).toEqual(['0', '0.00002', '0.00004']);
  expect(labelsWidth(['0', '0.00004'])).toBeGreaterThan(labelsWidth(['0', '0.5']));
  expect(labelsWidth([])).toBe(0);
});

it('leaves out a time that the right edge would cut', () => {
  const toMs = 1_800_000_040_000;
  const times = [toMs - 20_000, toMs - 1000, toMs];
  const labels = timeLabels(times, { fromMs: toMs - 60_000, toMs }, 700);
  expect(labels.map((label) => label.length)).toEqual([8, 0, 0]);
});

it('leaves out a time that would touch the labels of the other axis', () => {
  const fromMs = 1_800_000_000_000;
  const labels = timeLabels([fromMs, fromMs + 1000, fromMs + 20_000], { fromMs, toMs: fromMs + 60_000 }, 700);
  expect(labels.map((label) => label.length)).toEqual([0, 0, 8]);
});

it('tells times within a second apart', () => {
  const fromMs = 1_800_000_000_000;
  const labels = timeLabels([fromMs + 500, fromMs + 1000], { fromMs, toMs: fromMs + 3000 }, 700);
  expect(labels.map((label) => label.slice(-4))).toEqual(['00.5', '01.0']);
});
