import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { ForeignReader } from '../processes/foreign-reader.ts';
import { ProcessMemories } from './process-memory.ts';

const PAGE = 4096;
const PID = toPid(4711);
let proc: string;
let reader: ForeignReader;

beforeEach(() => {
  proc = mkdtempSync(join(tmpdir(), 'everyframe-proc-'));
  mkdirSync(join(proc, String(PID)));
  reader = new ForeignReader({ proc });
});

afterEach(() => {
  reader.close();
  rmSync(proc, { recursive: true });
});

/** Two pages of memory full of one byte. */
const become = (byte: number): void =>
  writeFileSync(join(proc, String(PID), 'mem'), Buffer.alloc(2 * PAGE, byte));

const read = (memories: ProcessMemories): number[] => [...memories.of(PID).read(PAGE, 2)!];

test('reads a page once for all frames of a batch', () => {
  const memories = new ProcessMemories(reader);
  become(1);
  expect(read(memories)).toEqual([1, 1]);
  become(2);
  expect(read(memories)).toEqual([1, 1]);
});

test('shows the next batch in the same turn what the program has done since', () => {
  const memories = new ProcessMemories(reader);
  become(1);
  expect(read(memories)).toEqual([1, 1]);
  become(2);
  memories.renew();
  expect(read(memories)).toEqual([2, 2]);
});

test('and the next turn', async () => {
  const memories = new ProcessMemories(reader);
  become(1);
  expect(read(memories)).toEqual([1, 1]);
  become(2);
  await new Promise((resolve) => setImmediate(resolve));
  expect(read(memories)).toEqual([2, 2]);
});

test('a process that is gone has none, and does not come back within a batch', () => {
  const memories = new ProcessMemories(reader);
  expect(memories.of(PID).read(PAGE, 2)).toBeUndefined();
  become(1);
  expect(memories.of(PID).read(PAGE, 2)).toBeUndefined();
  memories.renew();
  expect(read(memories)).toEqual([1, 1]);
});
