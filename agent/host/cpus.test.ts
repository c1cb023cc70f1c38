import { describe, expect, it } from 'vitest';
import { onlineCpus, parseCpuList } from './cpus.ts';

describe('parseCpuList', () => {
  it('reads ranges and single CPUs', () => {
    expect(parseCpuList('0-3,7\n')).toEqual([0, 1, 2, 3, 7]);
    expect(parseCpuList('0')).toEqual([0]);
    expect(parseCpuList('\n')).toEqual([]);
  });

  it.each(['a', '3-1', '0-99999999', '1-', '-1'])('refuses %s', (text) => {
    expect(() => parseCpuList(text)).toThrow(/is not a list of CPUs/);
  });
});

it('finds at least one CPU online', () => {
  expect(onlineCpus().length).toBeGreaterThan(0);
});
