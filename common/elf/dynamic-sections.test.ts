import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bufferSource } from '../base/byte-source.ts';
import { readSymbolTable } from '../symbols/elf-symbols.ts';
import { tableSource } from '../symbols/source-fallback.ts';
import { type ElfFile, parseElf } from './elf.ts';

const SOURCE = 'int one(void) { return 1; }\nint two(int x) { return x + one(); }\n';
let folder = '';

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'dynamic-'));
  writeFileSync(join(folder, 'a.c'), SOURCE);
});
afterAll(() => rmSync(folder, { recursive: true }));

function build(style: string): Buffer {
  const out = join(folder, `${style}.so`);
  const flags = ['-shared', '-fPIC', '-s', `-Wl,--hash-style=${style}`];
  execFileSync('gcc', [...flags, '-o', out, join(folder, 'a.c')]);
  return readFileSync(out);
}

/** As sstrip does: nothing says where sections are. */
function withoutSections(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  copy.writeBigUInt64LE(0n, 40);
  copy.writeUInt32LE(0, 60);
  return copy;
}

const parse = (bytes: Uint8Array): ElfFile => parseElf(bufferSource(bytes));

function namesOf(elf: ElfFile, reference: ElfFile): string[] {
  const table = tableSource(readSymbolTable(elf));
  const { offset, size } = reference.section('.dynsym')!;
  const entries = Buffer.from(reference.source.read(offset, size));
  return Array.from({ length: size / 24 }, (_, i) => Number(entries.readBigUInt64LE(i * 24 + 8)))
    .filter((address) => address > 0)
    .map((address) => table.lookup(address)[0]?.function ?? '')
    .sort();
}

describe('dynamic symbols without section headers', () => {
  it.each(['gnu', 'sysv', 'both'])('are those that the file has with them: %s', (style) => {
    const [whole, cut] = [parse(build(style)), parse(withoutSections(build(style)))];
    expect(whole.section('.text')).toBeDefined();
    expect(cut.sections.map(({ name }) => name)).toEqual(['', '.dynsym', '.dynstr']);
    const { offset, size } = whole.section('.dynsym')!;
    expect(cut.section('.dynsym')).toMatchObject({ offset, size });
    expect(namesOf(cut, whole)).toEqual(namesOf(whole, whole));
    expect(namesOf(cut, whole)).toContain('two');
  });

  it('are found where the headers lie in a hole', () => {
    const bytes = build('gnu');
    const at = Number(bytes.readBigUInt64LE(40));
    bytes.fill(0, at);
    expect(parse(bytes).section('.dynsym')).toBeDefined();
  });

  it('are none where the hash table is that of other names', () => {
    const bytes = withoutSections(build('gnu'));
    const at = bytes.indexOf('\0two\0');
    bytes.write('owt', at + 1, 'latin1');
    expect(parse(bytes).sections).toEqual([]);
  });

  it('are none where they lie in writable memory', () => {
    const bytes = withoutSections(build('gnu'));
    // flags of the first PT_LOAD
    const headers = Number(bytes.readBigUInt64LE(32));
    for (let at = headers; ; at += 56) {
      if (bytes.readUInt32LE(at) !== 1) continue;
      bytes.writeUInt32LE(6, at + 4);
      break;
    }
    expect(parse(bytes).sections).toEqual([]);
  });

  it('of changed files end', () => {
    const bytes = withoutSections(build('both'));
    fc.assert(
      fc.property(fc.nat(bytes.length - 9), fc.bigInt(0n, 2n ** 64n - 1n), (at, word) => {
        const copy = Buffer.from(bytes);
        copy.writeBigUInt64LE(word, at);
        try {
          parse(copy);
        } catch (error) {
          expect((error as Error).name).toBe('ElfError');
        }
      }),
      { numRuns: 300 },
    );
  });
});
