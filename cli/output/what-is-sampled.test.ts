import { expect, test } from 'vitest';
import { parseEvent } from '../../agent/events/event-spec.ts';
import { whatIsSampled } from './what-is-sampled.ts';

test.each([
  [false, [], 'each CPU 20 times a second'],
  [true, [], 'each CPU 20 times a second and threads that wait'],
  [false, ['page-faults'], 'page-faults, but no CPU time (--event cpu-clock adds it)'],
  [true, ['cpu-clock', 'page-faults'], 'each CPU 20 times a second, threads that wait, and page-faults'],
])('waits: %s, events: %s', (offCpu, events, said) => {
  expect(whatIsSampled({ samplesPerSecond: 20, offCpu, event: events.map(parseEvent) })).toBe(said);
});
