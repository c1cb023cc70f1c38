import { closeSync, fstatSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test, vi } from 'vitest';
import { toFileKey } from '../../../common/base/brand.ts';
import { bufferSource, OutOfBounds } from '../../../common/base/byte-source.ts';
import { computeFileId } from '../../../common/elf/file-id.ts';
import { ForgetQueue } from '../forget-queue.ts';
import { KeptFiles } from './kept-files.ts';
import { readFileId } from './read-file-id.ts';

const directory = mkdtempSync(join(tmpdir(), 'kept-'));
const path = join(directory, 'file');
writeFileSync(path, 'x');
afterAll(() => rmSync(directory, { recursive: true }));

const key = (n: number) => toFileKey(n.toString(16).padStart(16, '0'));
const isOpen = (fd: number): boolean => {
  try {
    return fstatSync(fd).isFile();
  } catch {
    return false;
  }
};
const closed = (fd: number) => vi.waitFor(() => expect(isOpen(fd)).toBe(false));

test('the least used file is closed, one in use when it is done', async () => {
  const kept = new KeptFiles({ max: 2, idleMs: 60_000 });
  const fds = [1, 2, 3, 4].map(() => openSync(path, 'r'));
  kept.put(key(0), { fd: fds[0]! });
  kept.put(key(1), { fd: fds[1]! });
  await kept.use(key(0), async ({ fd }) => {
    expect(fd).toBe(fds[0]);
    kept.put(key(2), { fd: fds[2]! });
    kept.put(key(3), { fd: fds[3]! });
    await closed(fds[1]!);
    expect(isOpen(fd)).toBe(true);
  });
  await closed(fds[0]!);
  expect(await kept.use(key(0), async () => 1)).toBeUndefined();
  kept.closeAll();
  await Promise.all([closed(fds[2]!), closed(fds[3]!)]);
});

test('a file that fails its user is closed all the same, and one that is replaced', async () => {
  const kept = new KeptFiles({ max: 2, idleMs: 60_000 });
  const fds = [1, 2].map(() => openSync(path, 'r'));
  kept.put(key(0), { fd: fds[0]! });
  const failing = kept.use(key(0), async () => {
    kept.put(key(0), { fd: fds[1]! });
    throw new Error('on purpose');
  });
  await expect(failing).rejects.toThrow('on purpose');
  await closed(fds[0]!);
  expect(isOpen(fds[1]!)).toBe(true);
  kept.delete(key(0));
  await closed(fds[1]!);
});

test('what is idle is closed', async () => {
  let now = 0;
  const kept = new KeptFiles({ max: 10, idleMs: 1000, now: () => now });
  const fds = [1, 2].map(() => openSync(path, 'r'));
  kept.put(key(0), { fd: fds[0]! });
  now = 600;
  kept.put(key(1), { fd: fds[1]! });
  now = 1000;
  kept.sweep();
  await closed(fds[0]!);
  expect([kept.has(key(0)), kept.has(key(1))]).toEqual([false, true]);
  now = 1600;
  kept.sweep();
  await closed(fds[1]!);
  expect(kept.size).toBe(0);
});

test('a queue that is full forgets the oldest key at once, and the others later', async () => {
  const forgotten: string[] = [];
  const queue = new ForgetQueue((k) => void forgotten.push(k), 2);
  queue.add(key(1), 1);
  queue.add(key(2), 3_600_000);
  queue.add(key(3), 3_600_000);
  expect(forgotten).toEqual([key(1)]);
  queue.delete(key(2));
  queue.add(key(4), 1);
  await vi.waitFor(() => expect(forgotten).toEqual([key(1), key(4)]), 10_000);
  expect(queue.size).toBe(1);
  queue.stop();
  expect(queue.size).toBe(0);
});

test.each([1, 4095, 4096, 4097, 10_000])('the file ID of %d bytes is that of the parser', async (size) => {
  const bytes = Buffer.from(Array.from({ length: size }, (_, i) => (i * 7) & 0xff));
  writeFileSync(path, bytes);
  const fd = openSync(path, 'r');
  expect(await readFileId(fd, size)).toBe(computeFileId(bufferSource(bytes)));
  await expect(readFileId(fd, size + 1)).rejects.toBeInstanceOf(OutOfBounds);
  closeSync(fd);
});
