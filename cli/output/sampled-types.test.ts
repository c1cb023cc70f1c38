import { expect, it } from 'vitest';
import { parseEvent } from '../../agent/events/event-spec.ts';
import { requireType, requireWaits } from './sampled-types.ts';

const asked = (events: string[] = [], offCpu = false) => ({
  ...{ event: events.map(parseEvent), offCpu, offCpuThreshold: 0 },
});

it.each([
  ['off_cpu', asked(), 'add --off-cpu'],
  ['thread_time', asked(['lock']), 'add --off-cpu'],
  ['inuse_space', asked(), 'add --event malloc'],
  ['cpu', asked(['malloc']), 'add --event cpu-clock'],
  ['page-faults', asked(), 'no samples of the type "page-faults"'],
])('refuses to write %s where nothing samples it', (type, settings, told) => {
  expect(() => requireType(type, settings)).toThrow(told);
});

it.each([
  ['cpu', asked()],
  ['cpu', asked(['page-faults', 'cpu-clock'])],
  ['off_cpu/nanoseconds', asked([], true)],
  ['thread_time', { ...asked(), offCpuThreshold: 0.5 }],
  ['lock', asked(['lock'])],
  ['alloc_space', asked(['malloc'])],
  ['page-faults', asked(['page-faults'])],
])('writes %s where it is sampled', (type, settings) => {
  expect(() => requireType(type, settings)).not.toThrow();
});

it('refuses to fold idle threads where no waits are sampled', () => {
  expect(() => requireWaits(asked())).toThrow('add --off-cpu');
  expect(() => requireWaits(asked(['lock']))).not.toThrow();
});
