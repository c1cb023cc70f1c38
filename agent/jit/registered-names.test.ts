import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Pid, toPid } from '../../common/base/brand.ts';
import { bufferSource } from '../../common/base/byte-source.ts';
import { parseElf } from '../../common/elf/elf.ts';
import type { JitCodeStats } from '../../common/jit/jit-code.ts';
import type { ForeignFiles } from '../processes/foreign-files.ts';
import { functionsOf, RegisteredNames } from './registered-names.ts';

let folder = '';
let object: Buffer;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'registered-'));
  writeFileSync(join(folder, 'a.c'), 'int one(void) { return 1; }\nint two(void) { return 2; }\nint data;\n');
  execFileSync('gcc', ['-c', '-O0', '-o', join(folder, 'a.o'), join(folder, 'a.c')]);
  object = readFileSync(join(folder, 'a.o'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** As a JIT does: code lies there. */
function placedAt(address: number): Buffer {
  const copy = Buffer.from(object);
  const elf = parseElf(bufferSource(copy));
  const index = elf.sections.findIndex(({ name }) => name === '.text');
  const at = Number(copy.readBigUInt64LE(40)) + index * 64 + 16;
  copy.writeBigUInt64LE(BigInt(address), at);
  return copy;
}

describe('an object that is registered for debuggers', () => {
  it('names functions where its sections lie', () => {
    const [one, two] = functionsOf(parseElf(bufferSource(placedAt(0x7f0000001000))));
    expect(one).toMatchObject({ name: 'one', start: 0x7f0000001000 });
    expect(two).toMatchObject({ name: 'two', start: 0x7f0000001000 + one!.size });
  });

  it('of any bytes is none, or ends', () => {
    fc.assert(
      fc.property(fc.nat(object.length - 9), fc.bigInt(0n, 2n ** 64n - 1n), (at, word) => {
        const copy = placedAt(0x1000);
        copy.writeBigUInt64LE(word, at);
        try {
          for (const { start, size } of functionsOf(parseElf(bufferSource(copy))))
            expect(start + size).toBeLessThanOrEqual(2 ** 52);
        } catch (error) {
          expect(['ElfError', 'OutOfBounds']).toContain((error as Error).name);
        }
      }),
      { numRuns: 300 },
    );
  });
});

describe('the list of objects', () => {
  const DESCRIPTOR = 0x10000;
  const ENTRY = 0x20000;
  const OBJECT = 0x30000;
  const CODE = 0x7f0000001000;

  /** Of a process: its descriptor, an entry and the entry's object. */
  const memory = Buffer.alloc(OBJECT + (1 << 16));
  const files = {
    newSession: () => 1,
    readMemory: async (_pid: Pid, at: number, length: number) => memory.subarray(at, at + length),
  } as unknown as ForeignFiles;
  const register = (bytes: Buffer): void => {
    memory.set(bytes, OBJECT);
    memory.writeBigUInt64LE(BigInt(ENTRY), DESCRIPTOR + 16);
    memory.writeBigUInt64LE(BigInt(OBJECT), ENTRY + 16);
    memory.writeBigUInt64LE(BigInt(bytes.length), ENTRY + 24);
  };
  const unregister = (): void => void memory.writeBigUInt64LE(0n, DESCRIPTOR + 16);

  it('is read again where an object has taken the place of one that left', async () => {
    const stats = { functions: 0, dropped: 0, malformed: 0 } as JitCodeStats;
    const names = new RegisteredNames({ files, pid: toPid(7), address: DESCRIPTOR }, 100, stats);
    register(placedAt(CODE));
    expect(await names.follow()).toBe('grown');
    expect(await names.follow()).toBe('same');
    unregister();
    expect(await names.follow()).toBe('same');
    register(placedAt(CODE + 0x1000));
    expect(await names.follow()).toBe('grown');
    const place = names.code.find(CODE + 0x1000);
    expect(await names.describe(place!)).toMatchObject({ function: 'one' });
  });
});
