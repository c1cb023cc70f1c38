import { expect, it } from 'vitest';
import { StatsRegistry } from './stats-registry.ts';

it('reads what the parts count now, under their names and in their order', () => {
  const registry = new StatsRegistry();
  const stats = { requests: 0 };
  let isOn = false;
  registry.add('reader', () => stats);
  registry.add('loop', () => (isOn ? { maxDelayMs: 3 } : undefined));
  registry.add('reader', () => ({ bytes: 7 }));
  expect(registry.read()).toEqual({ 'reader.requests': 0, 'reader.bytes': 7 });
  stats.requests++;
  isOn = true;
  expect(Object.entries(registry.read())).toEqual([
    ['reader.requests', 1],
    ['loop.maxDelayMs', 3],
    ['reader.bytes', 7],
  ]);
});

it('keeps what was counted by the end, and asks nobody after that', () => {
  const registry = new StatsRegistry();
  let value = 1;
  registry.add('bpf', () => {
    if (value > 1) throw new Error('the map is closed');
    return { samples: value };
  });
  registry.freeze();
  value = 2;
  registry.freeze();
  expect(registry.read()).toEqual({ 'bpf.samples': 1 });
});
