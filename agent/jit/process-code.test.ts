import { openSync } from 'node:fs';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import type { ForeignFiles } from '../processes/foreign-files.ts';
import { ProcessCode } from './process-code.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const [BASE, OTHER_BASE] = [0x400000, 0x800000];
const PAGE = 0x1000;
const identity = { pid: toPid(1), execId: 0, startBoottimeNs: 0n };

/** Three pages of code of an ELF file, whose program header is at its begin. */
function image(): Buffer {
  const bytes = Buffer.alloc(3 * PAGE, 0xc3);
  bytes.fill(0, 0, 120);
  bytes.write('\x7fELF\x02\x01\x01', 0, 'latin1');
  bytes.writeUInt16LE(3, 16);
  bytes.writeUInt16LE(process.arch === 'arm64' ? 183 : 62, 18);
  bytes.writeBigUInt64LE(64n, 32);
  bytes.writeUInt16LE(56, 54);
  bytes.writeUInt16LE(1, 56);
  bytes.writeUInt32LE(1, 64);
  bytes.writeUInt32LE(5, 68);
  for (const at of [96, 104]) bytes.writeBigUInt64LE(BigInt(bytes.length), at);
  return bytes;
}

/** A process that has moved the second page of its file to memory. */
function setUp() {
  const bytes = image();
  const seen = { base: BASE, published: [] as number[], withdrawn: [] as number[], onRead: () => {} };
  const files: Partial<ForeignFiles> = {
    readProcFile: async () => {
      const page = (i: number): string => (seen.base + i * PAGE).toString(16);
      const file = (i: number): string => `${page(i)}-${page(i + 1)} r-xp ${i}000 08:01 7 /bin/a\n`;
      return Buffer.from(`${file(0)}${page(1)}-${page(2)} r-xp 0 00:00 0 \n${file(2)}`);
    },
    lookAt: async () => ({
      ...{ fd: openSync('/dev/null', 'r'), mode: 0, uid: 0, gid: 0, links: 1 },
      ...{ dev: 1n, ino: 7n, size: 1n, ctimeNs: 1n, mtimeNs: 1n },
    }),
    newSession: () => 1,
    read: async (_pid, _fd, offset, length) => bytes.subarray(offset, offset + length),
    readMemory: async (_pid, address, length) => {
      seen.onRead();
      return bytes.subarray(address - seen.base, address - seen.base + length);
    },
  };
  const code = new ProcessCode(
    {
      publish: ({ start }) => seen.published.push(start) > 0,
      withdraw: (_, start) => void seen.withdrawn.push(start),
      keyOf: () => undefined,
      hasTable: () => true,
      hasRuntime: () => false,
      onFile: () => {},
      installImage: async () => false,
      forget: () => {},
    },
    files as ForeignFiles,
  );
  return { seen, code };
}

it('lets go of memory that the process has no more', async () => {
  const { seen, code } = setUp();
  code.onAddress(identity, BASE + PAGE + 8);
  await vi.advanceTimersByTimeAsync(1);
  expect([seen.published, seen.withdrawn]).toEqual([[BASE + PAGE], []]);
  seen.base = OTHER_BASE;
  code.onAddress(identity, OTHER_BASE + PAGE + 8);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(seen.published).toEqual([BASE + PAGE, OTHER_BASE + PAGE]);
  expect(seen.withdrawn).toEqual([BASE + PAGE]);
  code.onExit(identity);
  expect(seen.withdrawn).toEqual([BASE + PAGE, OTHER_BASE + PAGE]);
});

it('publishes nothing of a process that ends while it is looked at', async () => {
  const { seen, code } = setUp();
  seen.onRead = () => code.onExit(identity);
  code.onAddress(identity, BASE + PAGE + 8);
  await vi.advanceTimersByTimeAsync(1);
  expect(code.stats.looks).toBe(1);
  expect(seen.published).toEqual([]);
});
