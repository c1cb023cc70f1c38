import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bufferSource } from '../../common/base/byte-source.ts';
import { parseElf } from '../../common/elf/elf.ts';
import { functionsOf } from './registered-names.ts';

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
