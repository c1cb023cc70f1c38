import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkRanges } from '../../../test/support/address-ranges.ts';
import { KeptScratch } from '../../../test/support/kept-scratch.ts';
import { bufferSource } from '../../base/byte-source.ts';
import { parseElf, type Section } from '../../elf/elf.ts';
import { readCodeRanges } from '../code-ranges.ts';
import { IN_MEMORY, type Scratch } from '../scratch.ts';
import { openDwarf } from './dwarf-source.ts';

const NO_FILES = { open: () => undefined };
const SOURCE = `
static inline __attribute__((always_inline)) int twice(int x) { return x * 2 + 1; }
__attribute__((noinline)) int work(int x) { int s = 0; for (int i = 0; i < x; i++) s ^= twice(s + i); return s; }
int main(int c, char **v) { return work(c * 100); }
`;
const hasGcc = spawnSync('gcc', ['--version']).status === 0;

/** Of the sections that are read. */
function sizesOf(sections: readonly Section[]): { sizes: number; largest: number } {
  const sizes = sections.map(({ size }) => size);
  return { sizes: sizes.reduce((sum, size) => sum + size, 0), largest: Math.max(...sizes) };
}

describe.skipIf(!hasGcc)('DWARF of a program of gcc', () => {
  let directory = '';
  let bytes = Buffer.alloc(0);
  let debugSections: Section[] = [];
  let code: number[] = [];
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'everyframe-dwarf-'));
    writeFileSync(join(directory, 'a.c'), SOURCE);
    execFileSync('gcc', ['-O2', '-g', '-gdwarf-5', 'a.c', '-o', 'a'], { cwd: directory });
    bytes = readFileSync(join(directory, 'a'));
    const elf = parseElf(bufferSource(bytes));
    debugSections = elf.sections.filter(({ name, size }) => name.startsWith('.debug_') && size > 0);
    code = readCodeRanges(elf).flatMap(({ start, end }) =>
      Array.from({ length: Math.ceil((end - start) / 8) }, (_, i) => start + i * 8),
    );
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  const LIMITS = {
    cacheBytes: 1 << 20,
    decompressedBytes: 1 << 26,
    unitBytes: 1 << 26,
    splitBytes: 1 << 26,
  };
  const open = (file: Buffer, cacheBytes = LIMITS.cacheBytes) =>
    openDwarf(parseElf(bufferSource(file)), NO_FILES, undefined, { ...LIMITS, cacheBytes });

  it('names an inline chain', () => {
    const dwarf = open(bytes)!;
    const chain = code.map((address) => dwarf.lookup(address)).find((frames) => frames.length === 2)!;
    expect(chain.map(({ function: name, line, inlined }) => ({ name, line, inlined }))).toEqual([
      { name: 'twice', line: 2, inlined: true },
      { name: 'work', line: 3, inlined: false },
    ]);
    expect(chain[0]!.file).toMatch(/\/a\.c$/);
  });

  it.each(['memory', 'a file'])('has sections that are decompressed into %s within a bound', (place) => {
    const { sizes, largest } = sizesOf(debugSections);
    execFileSync('gcc', ['-O2', '-g', '-gdwarf-5', '-gz=zlib', 'a.c', '-o', 'z'], { cwd: directory });
    const elf = parseElf(bufferSource(readFileSync(join(directory, 'z'))));
    const answers = (decompressedBytes: number) => {
      const scratch: Scratch = { ...IN_MEMORY, isOutside: place === 'a file' };
      const dwarf = openDwarf(elf, NO_FILES, undefined, { ...LIMITS, decompressedBytes }, scratch);
      const found = code.map((address) => dwarf?.lookup(address) ?? []);
      return { found, isLess: !dwarf || dwarf.damaged > 0, bytes: dwarf?.byteLength ?? 0 };
    };
    const all = code.map((address) => open(bytes)!.lookup(address));
    expect(answers(sizes)).toMatchObject({ found: all, isLess: false });
    // one after the other goes into a file, in memory they stay together
    expect(answers(largest).isLess).toBe(place === 'memory');
    const few = answers(largest - 1);
    expect(few.isLess).toBe(true);
    expect(few.found).not.toEqual(all);
  });

  it('reads nothing for a stub of the linker', () => {
    const elf = parseElf(bufferSource(bytes));
    let reads = 0;
    const source = {
      ...elf.source,
      size: bytes.length,
      read: (at: number, length: number) => {
        reads++;
        return elf.source.read(at, length);
      },
    };
    const dwarf = openDwarf(parseElf(source), NO_FILES)!;
    const stub = elf.sections.find(({ name }) => name.startsWith('.plt'))!;
    reads = 0;
    expect(dwarf.lookup(stub.addr)).toEqual([]);
    expect(reads).toBe(0);
    expect(code.some((address) => dwarf.lookup(address).length > 0)).toBe(true);
    expect(reads).toBeGreaterThan(0);
  });

  it('gives the same answers when nothing fits into the cache', () => {
    const [roomy, narrow] = [open(bytes)!, open(bytes, 1)!];
    expect(code.map((a) => narrow.lookup(a))).toEqual(code.map((a) => roomy.lookup(a)));
    expect(narrow.byteLength).toBeLessThan(roomy.byteLength);
  });

  it('gives the same answers from units that were packed, and reads each of them once, in a later run none', () => {
    const scratch = new KeptScratch();
    const limits = { cacheBytes: 1, decompressedBytes: 1 << 26, unitBytes: 1 << 26, splitBytes: 1 << 26 };
    const packing = openDwarf(parseElf(bufferSource(bytes)), NO_FILES, undefined, limits, scratch)!;
    const expected = code.map((a) => open(bytes)!.lookup(a));
    for (let round = 0; round < 2; round++) expect(code.map((a) => packing.lookup(a))).toEqual(expected);
    const stored = [...scratch.names];
    expect(new Set(stored).size).toBe(stored.length);
    expect(stored.length).toBeGreaterThan(0);
    expect(stored).not.toContain(undefined);
    const later = openDwarf(parseElf(bufferSource(bytes)), NO_FILES, undefined, limits, scratch)!;
    expect(code.map((a) => later.lookup(a))).toEqual(expected);
    expect(scratch.names).toEqual(stored);
  });

  it('keeps no unit for later runs that is damaged', () => {
    const copy = Buffer.from(bytes);
    const lines = debugSections.find(({ name }) => name === '.debug_line')!;
    // the version of the first line table
    copy.writeUInt16LE(99, lines.offset + 4);
    const scratch = new KeptScratch();
    const dwarf = openDwarf(parseElf(bufferSource(copy)), NO_FILES, undefined, LIMITS, scratch)!;
    for (const address of code) dwarf.lookup(address);
    expect(dwarf.damaged).toBeGreaterThan(0);
    expect(scratch.names).toContain(undefined);
  });

  it.each([false, true])('says where else the same holds (tables outside memory: %s)', (isOutside) => {
    const scratch: Scratch = { ...IN_MEMORY, isOutside };
    const addresses = code.flatMap((address) => [address, address + 3]);
    const dwarf = openDwarf(parseElf(bufferSource(bytes)), NO_FILES, undefined, LIMITS, scratch)!;
    const { wrong, covered } = checkRanges(dwarf, addresses);
    expect(wrong).toEqual([]);
    expect(covered / addresses.length).toBeGreaterThan(2);
  });

  // a hundred files, each read from scratch: on a busy machine that takes a while
  it('never throws where bytes are changed, and answers in bounds', () => {
    const change = fc.record({
      section: fc.nat(),
      at: fc.nat(),
      value: fc.oneof(fc.constantFrom(0, 0x7f, 0x80, 0xff), fc.nat(255)),
    });
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 8 }), (changes) => {
        const copy = Buffer.from(bytes);
        for (const { section, at, value } of changes) {
          const { offset, size } = debugSections[section % debugSections.length]!;
          copy[offset + (at % size)] = value;
        }
        const dwarf = open(copy);
        for (const address of code) {
          const frames = dwarf?.lookup(address) ?? [];
          expect(frames.length).toBeLessThanOrEqual(2048);
        }
        const outside: Scratch = { ...IN_MEMORY, isOutside: true };
        const packing = openDwarf(parseElf(bufferSource(copy)), NO_FILES, undefined, LIMITS, outside);
        const some = code.filter((_, i) => i % 8 === 0);
        expect(packing && checkRanges(packing, some).wrong).toEqual(packing && []);
      }),
      { numRuns: 100 },
    );
  });
});

const hasClang = spawnSync('clang', ['--version']).status === 0;

describe.skipIf(!hasGcc || !hasClang)('DWARF of which .debug_aranges know a part', () => {
  const directory = mkdtempSync(join(tmpdir(), 'everyframe-dwarf-'));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it('names functions of the other units, too', () => {
    const run = (...command: string[]) => execFileSync(command[0]!, command.slice(1), { cwd: directory });
    writeFileSync(join(directory, 'known.c'), 'int known(int x) { return x * 3; }');
    writeFileSync(join(directory, 'rest.c'), 'int known(int); int main(void) { return known(2); }');
    run('gcc', '-g', '-c', 'known.c');
    run('clang', '-g', '-c', 'rest.c');
    run('gcc', 'known.o', 'rest.o', '-o', 'both');
    const elf = parseElf(bufferSource(readFileSync(join(directory, 'both'))));
    // one of the two units: 48 bytes
    expect(elf.section('.debug_aranges')?.size).toBe(48);
    const dwarf = openDwarf(elf, NO_FILES)!;
    const names = readCodeRanges(elf).flatMap(({ start, end }) =>
      Array.from(
        { length: Math.ceil((end - start) / 4) },
        (_, i) => dwarf.lookup(start + i * 4)[0]?.function,
      ),
    );
    expect(names).toContain('known');
    expect(names).toContain('main');
  });
});

const LOCAL_CODE = `
#include <algorithm>
#include <string>
#include <vector>
struct Item { std::string text; int n; };
__attribute__((noinline)) int order(std::vector<Item> &all) {
  struct Local { __attribute__((noinline)) static int count(const std::string &t) { return static_cast<int>(t.size()) * 3; } };
  std::sort(all.begin(), all.end(), [](const Item &a, const Item &b) { return Local::count(a.text) + a.n < Local::count(b.text) + b.n; });
  auto each = [&](int from) __attribute__((noinline)) { int sum = from; for (auto &item : all) sum += item.n; return sum; };
  return each(1) + each(2);
}
int main(int c, char **v) { std::vector<Item> all; for (int i = 0; i < c; i++) all.push_back({v[i], i}); return order(all); }
`;

describe.each(['g++', 'clang++'])('DWARF of a program of %s with functions in functions', (compiler) => {
  const isInstalled = spawnSync(compiler, ['--version']).status === 0;
  const directory = mkdtempSync(join(tmpdir(), 'everyframe-dwarf-'));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it.skipIf(!isInstalled)('is answered for one address as when its unit was read whole', () => {
    writeFileSync(join(directory, 'a.cc'), LOCAL_CODE);
    execFileSync(compiler, ['-std=c++17', '-O1', '-gdwarf-5', 'a.cc', '-o', 'a'], { cwd: directory });
    const file = readFileSync(join(directory, 'a'));
    const open = () => openDwarf(parseElf(bufferSource(file)), NO_FILES)!;
    const whole = open();
    const addresses = readCodeRanges(parseElf(bufferSource(file))).flatMap(({ start, end }) =>
      Array.from({ length: Math.ceil((end - start) / 16) }, (_, i) => start + i * 16),
    );
    // the first look-up is for one address, those behind it are not
    for (const address of addresses) whole.lookup(address);
    const named = addresses.map((address) => whole.lookup(address));
    expect(addresses.map((address) => open().lookup(address))).toEqual(named);
    const functions = new Set(named.flat().map((frame) => frame.function));
    expect(functions).toContain('count');
    expect(functions).toContain('operator()');
  });
});
