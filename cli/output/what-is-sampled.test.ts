import { expect, test } from 'vitest';
import { parseEvent } from '../../agent/events/event-spec.ts';
import { whatIsSampled } from './what-is-sampled.ts';

test.each([
  [false, [], 'each CPU 20 times a second'],
  [true, [], 'each CPU 20 times a second and threads that wait'],
  [false, ['page-faults'], 'page-faults, but no CPU time (--event cpu-clock adds it)'],
  [true, ['cpu-clock', 'page-faults'], 'each CPU 20 times a second, threads that wait, and page-faults'],
])('waits: %s, events: %s', (offCpu, events, said) => {
  const given = { samplesPerSecond: 20, event: events.map(parseEvent), cgroup: [], excludeCgroup: [] };
  expect(whatIsSampled({ ...given, offCpu, offCpuThreshold: 0 })).toBe(said);
  // a probability alone asks for waits as well
  expect(whatIsSampled({ ...given, offCpu: false, offCpuThreshold: offCpu ? 0.5 : 0 })).toBe(said);
});

test('of chosen processes alone', () => {
  const given = { samplesPerSecond: 20, event: [], offCpu: false, offCpuThreshold: 0, excludeCgroup: [] };
  const cgroup = ['a.service', 'b.service'];
  expect(whatIsSampled({ ...given, cgroup })).toBe(
    'each CPU 20 times a second, of the processes of a.service and b.service alone',
  );
  expect(whatIsSampled({ ...given, cgroup: [] }, [12])).toBe(
    'each CPU 20 times a second, of process 12 and its descendants alone',
  );
  expect(whatIsSampled({ ...given, cgroup: [] }, [12, 34])).toBe(
    'each CPU 20 times a second, of the processes 12 and 34 and their descendants alone',
  );
  expect(whatIsSampled({ ...given, cgroup: [], excludeCgroup: ['c.service'] })).toBe(
    'each CPU 20 times a second, without the processes of c.service',
  );
  expect(whatIsSampled({ ...given, cgroup, excludeCgroup: ['c.service'] })).toBe(
    'each CPU 20 times a second, of the processes of a.service and b.service alone, without those of c.service',
  );
});
