import { expect, test } from 'vitest';
import { findPerfEvent } from './perf-names.ts';

// type and config by perf_event_open(2), and as `perf stat -vv` prints them
test.each<[string, number, number]>([
  ['cs', 1, 3],
  ['cache-misses', 0, 3],
  ['branch-misses', 0, 5],
  ['L1-dcache-loads', 3, 0],
  ['L1-dcache-load-misses', 3, 0x10000],
  ['L1-dcache-stores', 3, 0x100],
  ['L1-dcache-prefetches', 3, 0x200],
  ['L1-icache-load-misses', 3, 0x10001],
  ['LLC-load-misses', 3, 0x10002],
  ['LLC-store-misses', 3, 0x10102],
  ['dTLB-load-misses', 3, 0x10003],
  ['iTLB-loads', 3, 4],
  ['branch-load-misses', 3, 0x10005],
  ['node-prefetch-misses', 3, 0x10206],
  ['r1a8', 4, 0x1a8],
  ['R003c', 4, 0x3c],
])('%s', (name, type, config) => {
  expect(findPerfEvent(name)).toMatchObject({ type, config, isHardware: type !== 1 });
});

test.each([
  'LLC',
  'LLC-load',
  'LLC-loads-misses',
  'iTLB-stores',
  'L1-icache-stores',
  'branch-prefetches',
  'r',
  'rxyz',
  'r12345678901234',
  'toString',
])('there is none: %s', (name) => {
  expect(findPerfEvent(name)).toBeUndefined();
});
