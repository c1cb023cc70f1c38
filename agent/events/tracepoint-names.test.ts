import { mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { whatThereIs, whyNotThere } from './tracepoint-names.ts';

const NAMES = ['sched_switch', 'sched_waking', 'kmalloc', 'kmem_cache_alloc', 'pelt_cfs_tp'];
const tracefs = mkdtempSync(join(tmpdir(), 'everyframe-tracefs-'));
for (const [category, name] of [
  ['sched', 'sched_switch'],
  ['sched', 'sched_waking'],
  ['kmem', 'kmalloc'],
  ['irq', 'softirq_entry'],
] as const)
  mkdirSync(join(tracefs, 'events', category, name), { recursive: true });

describe.each([
  ['with tracefs', tracefs],
  ['without', join(tracefs, 'none')],
])('%s', (_, path) => {
  const like = (category: string, name: string): string => whatThereIs({ category, name }, NAMES, path);

  test('what is there may be sampled', () => {
    for (const name of ['sched_switch', 'pelt_cfs_tp', 'of_a_module'])
      expect(whyNotThere({ category: 'sched', name }, path)).toBeUndefined();
  });

  test('what is mistyped is told with what there is', () => {
    expect(like('sched', 'sched_swich')).toMatch(/^there are (sched:)?sched_switch/);
    expect(like('kmem', 'malloc')).toMatch(/^there are (kmem:)?kmalloc/);
    expect(like('sched', 'nothing_like_it')).toBe('nor one of a similar name');
  });

  test('single system calls are told to be asked for otherwise', () => {
    expect(whyNotThere({ category: 'syscalls', name: 'sys_enter_read' }, path)).toMatch(
      /raw_syscalls:sys_enter/,
    );
  });
});

test('a wrong category is told where tracefs has them', () => {
  expect(whyNotThere({ category: 'shed', name: 'sched_switch' }, tracefs)).toBe(
    'it is tracepoint:sched:sched_switch',
  );
  expect(whatThereIs({ category: 'irk', name: 'softirq_enter' }, NAMES, tracefs)).toMatch(
    /irq:softirq_entry/,
  );
});
