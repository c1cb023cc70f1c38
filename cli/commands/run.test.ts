import { expect, it } from 'vitest';
import { takeCollectorArguments } from './run.ts';

it("takes the collector's settings, as they were given, and leaves the agent's", () => {
  const settings = {
    maxMemory: '1GiB',
    allowAnyone: true,
    source: ['/a', '/b c'],
    forwardTo: 'http://c:4317',
    samplesPerSecond: '97',
  };
  expect(takeCollectorArguments(settings)).toEqual([
    ...['--max-memory', '1GiB', '--allow-anyone', '--forward-to', 'http://c:4317'],
    ...['--source', '/a', '--source', '/b c'],
  ]);
  expect(settings).toEqual({ samplesPerSecond: '97' });
});

it('refuses what its collector would refuse, before anything is started', () => {
  expect(() => takeCollectorArguments({ maxAge: 'a week' })).toThrow('--max-age is "a week"');
});
