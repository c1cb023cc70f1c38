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

test('reads more at a time than an answer of the reader has room for', () => {
  const bytes = Buffer.alloc(75 * PAGE).map((_, i) => i % 251);
  writeFileSync(join(proc, String(PID), 'mem'), bytes);
  const memory = new ProcessMemories(reader).of(PID);
  expect(memory.read(PAGE + 7, 70 * PAGE)).toEqual(new Uint8Array(bytes.subarray(PAGE + 7, 71 * PAGE + 7)));
  // up to where the memory ends
  expect(memory.read(2 * PAGE, 80 * PAGE)).toHaveLength(73 * PAGE);
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

test('reads what several attempts missed in one go', () => {
  const memories = new ProcessMemories(reader);
  become(1);
  const memory = memories.of(PID);
  const attempt = (page: number) => memory.tryReading((tried) => [...tried.read(page * PAGE, 2)!]);
  expect([attempt(0), attempt(1), attempt(0)]).toEqual([undefined, undefined, undefined]);
  expect(reader.stats.reads).toBe(0);
  memory.readMissed();
  expect([attempt(0), attempt(1)]).toEqual([
    [1, 1],
    [1, 1],
  ]);
  // across both
  expect([...memory.tryReading((tried) => tried.read(PAGE - 2, 4))!]).toEqual([1, 1, 1, 1]);
  expect(reader.stats.reads).toBe(1);
});

test('says of a page that is not there that it is not, once it was asked for', () => {
  const memories = new ProcessMemories(reader);
  become(1);
  const memory = memories.of(PID);
  const attempt = (address: number, length: number) =>
    memory.tryReading((tried) => tried.read(address, length)?.length ?? 'none');
  const far = 7 * PAGE;
  expect([attempt(far, 2), attempt(2 * PAGE - 2, 8)]).toEqual([undefined, undefined]);
  memory.readMissed();
  expect(attempt(far, 2)).toBe('none');
  // up to where memory ends
  expect(attempt(2 * PAGE - 2, 8)).toBe(2);
});

test('more pages than there is room for are read one by one', () => {
  const memories = new ProcessMemories(reader);
  writeFileSync(join(proc, String(PID), 'mem'), Buffer.alloc(400 * PAGE, 3));
  const memory = memories.of(PID);
  const pages = Array.from({ length: 400 }, (_, page) => page);
  const attempt = (page: number) => memory.tryReading((tried) => tried.read(page * PAGE, 2)?.[0]);
  for (const page of pages) attempt(page);
  memory.readMissed();
  expect(pages.map(attempt)).toEqual(pages.map(() => 3));
  expect(reader.stats.reads).toBe(256 / 16 + (400 - 256));
});

test('what an attempt throws otherwise is thrown', () => {
  const memory = new ProcessMemories(reader).of(PID);
  expect(() =>
    memory.tryReading(() => {
      throw new Error('malformed');
    }),
  ).toThrow('malformed');
});
