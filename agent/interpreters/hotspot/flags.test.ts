import { expect, test } from 'vitest';
import { CannotRead, RuntimeMemory } from '../runtime-memory.ts';
import { readFlag } from './flags.ts';
import type { VmField, VmTables } from './vm-tables.ts';

const BASE = 0x7f00_0000_0000;
const STRIDE = 40;

/** An array of flags in memory, as JDK 8 and later have it, and its description under a type's name. */
function made(type: string, flags: readonly (readonly [name: string, value: boolean])[]) {
  const bytes = Buffer.alloc(16 << 10);
  let end = 64;
  const put = (content: Buffer): number => {
    const at = end;
    content.copy(bytes, at);
    end += (content.length + 15) & ~15;
    return BASE + at;
  };
  const entries = Buffer.alloc(STRIDE * flags.length);
  for (const [i, [name, value]] of flags.entries()) {
    entries.writeBigUInt64LE(BigInt(put(Buffer.from(`${name}\0`))), i * STRIDE + 8);
    entries.writeBigUInt64LE(BigInt(put(Buffer.from([Number(value)]))), i * STRIDE);
  }
  const words = put(Buffer.alloc(16));
  bytes.writeBigUInt64LE(BigInt(put(entries)), words - BASE);
  bytes.writeBigUInt64LE(BigInt(flags.length), words - BASE + 8);
  const field = (offset: number, address = 0): VmField => ({ offset, address, type: '' });
  const tables: VmTables = {
    fields: new Map([
      [`${type}.flags`, field(0, words)],
      [`${type}.numFlags`, field(0, words + 8)],
      [`${type}._name`, field(8)],
      [`${type}._addr`, field(0)],
    ]),
    sizes: new Map([[type, STRIDE]]),
  };
  let reads = 0;
  const memory = new RuntimeMemory({
    read: (address, length) => {
      reads++;
      const at = address - BASE;
      return at >= 0 && at < bytes.length ? bytes.subarray(at, at + length) : undefined;
    },
  });
  return { memory, tables, bytes, countAt: words + 8 - BASE, reads: () => reads };
}

const FLAGS = [
  ['UseSerialGC', true],
  ['DebugNonSafepointsToo', true],
  ['DebugNonSafepoints', false],
  ['PreserveFramePointer', true],
] as const;

test.each(['JVMFlag', 'Flag'])('reads flags of %s by their whole name', (type) => {
  const { memory, tables } = made(type, FLAGS);
  expect(readFlag(memory, tables, 'DebugNonSafepoints')).toBe(false);
  expect(readFlag(memory, tables, 'PreserveFramePointer')).toBe(true);
  expect(readFlag(memory, tables, 'Debug')).toBeUndefined();
  expect(readFlag(memory, { fields: new Map(), sizes: new Map() }, 'Debug')).toBeUndefined();
});

test('finds a flag again where it was, and elsewhere if it is there no more', () => {
  const { memory, tables, reads } = made('JVMFlag', FLAGS);
  const hints = new Map<string, number>();
  expect(readFlag(memory, tables, 'DebugNonSafepoints', hints)).toBe(false);
  const before = reads();
  expect(readFlag(memory, tables, 'DebugNonSafepoints', hints)).toBe(false);
  expect(reads() - before).toBeLessThan(before);
  hints.set('DebugNonSafepoints', 0);
  expect(readFlag(memory, tables, 'DebugNonSafepoints', hints)).toBe(false);
});

test('an absurd number of flags ends with what can be read', () => {
  const { memory, tables, bytes, countAt, reads } = made('JVMFlag', FLAGS);
  bytes.writeBigUInt64LE(2n ** 60n, countAt);
  try {
    expect(readFlag(memory, tables, 'Missing')).toBeUndefined();
  } catch (error) {
    expect(error).toBeInstanceOf(CannotRead);
  }
  expect(reads()).toBeLessThan(20_000);
});
