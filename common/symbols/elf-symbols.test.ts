import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkRanges } from '../../test/support/address-ranges.ts';
import { KeptScratch } from '../../test/support/kept-scratch.ts';
import { bufferSource } from '../base/byte-source.ts';
import { ElfError, parseElf } from '../elf/elf.ts';
import { readSymbolTable } from './elf-symbols.ts';
import { tableSource } from './source-fallback.ts';

const read = (bytes: Uint8Array) => readSymbolTable(parseElf(bufferSource(bytes)));

interface Listed {
  address: number;
  size: number;
  type: string;
  name: string;
}

/** Every defined symbol of both tables, by readelf. */
function readelf(path: string): Listed[] {
  const text = execFileSync('readelf', ['-sW', path], { encoding: 'utf8', maxBuffer: 1 << 28 });
  const line = /^ *\d+: ([0-9a-f]{16}) +(\d+|0x[0-9a-f]+) (\w+) +\w+ +\w+ +(?:\[.*\] )?\d+ (\S+)/gm;
  return [...text.matchAll(line)].map(([, address, size, type, name]) => ({
    address: Number(`0x${address}`),
    size: Number(size),
    type: type!,
    name: name!.replace(/(?<=.)@.*$/, ''),
  }));
}

const source = `
#include <stdio.h>
#include <string.h>
static __attribute__((noinline)) int local_one(int x) { return x * 3 + (int)strlen("abc"); }
__attribute__((noinline)) int __hidden_name(int x) { return local_one(x) + 1; }
int shown_name(int) __attribute__((weak, alias("__hidden_name")));
int __also(int) __attribute__((alias("__hidden_name")));
__asm__(".text\\n.globl no_type_no_size\\nno_type_no_size: nop\\nnop\\nret\\n"
        ".type sized_end,@function\\nsized_end: nop\\nret\\n.size sized_end,2\\n"
        "local_label: nop\\nret\\n");
int main(int argc, char **argv) { puts(argv[0]); return shown_name(argc); }
`;

let directory = '';
let program: Buffer = Buffer.alloc(0);
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'symbols-'));
  writeFileSync(join(directory, 'a.c'), source);
  execFileSync('gcc', ['-O1', '-Wl,-z,lazy', '-o', join(directory, 'a'), join(directory, 'a.c')]);
  execFileSync('strip', ['-o', join(directory, 'stripped'), join(directory, 'a')]);
  program = readFileSync(join(directory, 'a'));
});
afterAll(() => rmSync(directory, { recursive: true }));

const addressOf = (name: string) =>
  readelf(join(directory, 'a')).find((symbol) => symbol.name === name)!.address;

describe('a C program', () => {
  test('an exported name without underscores wins over its aliases', () => {
    expect(read(program).lookup(addressOf('__hidden_name'))?.name).toBe('shown_name');
  });

  test('static functions have their names, labels inside nothing have none', () => {
    const symbols = read(program);
    expect(symbols.lookup(addressOf('local_one') + 1)?.name).toBe('local_one');
    expect(symbols.lookup(addressOf('local_label'))).toBeUndefined();
    expect(symbols.lookup(addressOf('main') - 0x1000_0000)).toBeUndefined();
  });

  test('an exported label without type and size names its address, a sized one reaches to its end', () => {
    const symbols = read(program);
    const start = addressOf('no_type_no_size');
    expect(symbols.lookup(start)).toEqual({ name: 'no_type_no_size', start, size: 1 });
    expect(symbols.lookup(start + 1)).toBeUndefined();
    expect(symbols.lookup(start + 4)?.name).toBe('sized_end');
    expect(symbols.lookup(start + 5)).toBeUndefined();
  });

  test.each(['a', 'stripped'])('stubs of %s are named as objdump names them', (file) => {
    const path = join(directory, file);
    const symbols = read(readFileSync(path));
    const printed = execFileSync('objdump', ['-d', path], { encoding: 'latin1' });
    const stubs = [...printed.matchAll(/^([0-9a-f]{16}) <(\w+)@plt>:$/gm)];
    expect(stubs.map((stub) => stub[2])).toContain('puts');
    for (const [, address, name] of stubs)
      expect(symbols.lookup(Number(`0x${address}`))?.name).toBe(`${name}@plt`);
  });
});

const libraries = [
  '/lib/x86_64-linux-gnu/libc.so.6',
  '/usr/lib/x86_64-linux-gnu/libstdc++.so.6',
  '/bin/bash',
  process.execPath,
];
test.each(libraries.filter((path) => existsSync(path)))(
  '%s: every function that readelf lists finds itself',
  (path) => {
    const symbols = read(readFileSync(path));
    const all = readelf(path).filter(({ size, type }) => size > 0 && (type === 'FUNC' || type === 'IFUNC'));
    expect(all.length).toBeGreaterThan(100);
    const names = new Map<number, Set<string>>();
    for (const { address, name } of all) names.set(address, (names.get(address) ?? new Set()).add(name));
    const wrong = all.filter(({ address, size }) => {
      const first = symbols.lookup(address);
      const last = symbols.lookup(address + size - 1);
      return !(first?.start === address && names.get(address)!.has(first.name) && last);
    });
    expect(wrong).toEqual([]);
    expect(symbols.skipped).toBe(0);
  },
  // 79,000 names of node
  60_000,
);

/** A file with one section of code at 0x1000 and a .symtab of these entries. */
function buildElf(
  entries: { value: number; size: number; info: number; name: string }[],
  codeSize = 0x1000,
): Buffer {
  const strings = Buffer.from(`\0.text\0${entries.map((entry) => entry.name).join('\0')}\0`);
  const symbols = Buffer.alloc(24 * (entries.length + 1));
  let nameAt = 7;
  entries.forEach((entry, i) => {
    const at = 24 * (i + 1);
    symbols.writeUInt32LE(nameAt, at);
    symbols[at + 4] = entry.info;
    symbols.writeUInt16LE(1, at + 6);
    symbols.writeBigUInt64LE(BigInt(entry.value), at + 8);
    symbols.writeBigUInt64LE(BigInt(entry.size), at + 16);
    nameAt += entry.name.length + 1;
  });
  const header = Buffer.alloc(64);
  header.write('\x7fELF\x02\x01\x01', 'latin1');
  header.writeUInt16LE(3, 16);
  header.writeUInt16LE(62, 18);
  const sections = Buffer.alloc(64 * 4);
  const section = (
    i: number,
    type: number,
    flags: number,
    addr: number,
    offset: number,
    size: number,
    link: number,
  ) => {
    sections.writeUInt32LE(type, i * 64 + 4);
    [flags, addr, offset, size].forEach(
      (value, k) => void sections.writeBigUInt64LE(BigInt(value), i * 64 + 8 + k * 8),
    );
    sections.writeUInt32LE(link, i * 64 + 40);
  };
  section(1, 8, 6, 0x1000, 0, codeSize, 0);
  section(2, 2, 0, 0, 64, symbols.length, 3);
  section(3, 3, 0, 0, 64 + symbols.length, strings.length, 0);
  header.writeBigUInt64LE(BigInt(64 + symbols.length + strings.length), 40);
  [64, 56, 0, 64, 4, 0].forEach((value, i) => void header.writeUInt16LE(value, 52 + i * 2));
  return Buffer.concat([header, symbols, strings, sections]);
}

const FUNC = 0x12;

test('versions are not part of a name', () => {
  const symbols = read(
    buildElf([
      { value: 0x1000, size: 16, info: FUNC, name: 'read@@GLIBC_2.2.5' },
      { value: 0x1010, size: 16, info: FUNC, name: 'old@Base' },
      { value: 0x1020, size: 16, info: FUNC, name: '@odd' },
    ]),
  );
  expect([0x1000, 0x1010, 0x1020].map((at) => symbols.lookup(at)?.name)).toEqual(['read', 'old', '@odd']);
});

test('overlapping symbols: the innermost that contains the address, however they nest', () => {
  const entry = fc.record({
    value: fc.integer({ min: 0x1000, max: 0x10ff }),
    size: fc.integer({ min: 1, max: 0x60 }),
  });
  fc.assert(
    fc.property(fc.uniqueArray(entry, { selector: (e) => e.value, maxLength: 30 }), (entries) => {
      const named = entries.map((e) => ({ ...e, info: FUNC, name: `f${e.value}` }));
      const symbols = read(buildElf(named));
      expect(symbols.count).toBe(entries.length);
      for (let at = 0xff0; at < 0x1180; at++) {
        const inside = named.filter((e) => e.value <= at && at < e.value + e.size);
        const innermost = inside.reduce<(typeof named)[0] | undefined>(
          (a, b) => (a && a.value > b.value ? a : b),
          undefined,
        );
        expect(symbols.lookup(at)?.name).toBe(innermost?.name);
      }
      const addresses = Array.from({ length: 0x190 }, (_, i) => 0xff0 + i);
      expect(checkRanges(tableSource(symbols), addresses).wrong).toEqual([]);
    }),
    { numRuns: 50 },
  );
});

test('symbols outside the code are skipped, sizes end with the section', () => {
  const symbols = read(
    buildElf(
      [
        { value: 0x10, size: 16, info: FUNC, name: 'below' },
        { value: 0x1100, size: 16, info: FUNC, name: 'behind' },
        { value: 2 ** 52, size: 16, info: FUNC, name: 'far' },
        { value: 0x10f0, size: 2 ** 52, info: FUNC, name: 'huge' },
        { value: 0x1020, size: 4, info: FUNC, name: '' },
      ],
      0x100,
    ),
  );
  expect(symbols.skipped).toBe(3);
  expect(symbols.lookup(0x1020)).toBeUndefined();
  expect(symbols.lookup(0x10ff)).toEqual({ name: 'huge', start: 0x10f0, size: 16 });
  expect(symbols.lookup(0x1100)).toBeUndefined();
});

test('damage costs what is damaged, never more', () => {
  const mutation = fc.tuple(fc.nat({ max: 0xffff_ffff }), fc.integer({ min: 0, max: 255 }));
  fc.assert(
    fc.property(fc.array(mutation, { maxLength: 40 }), fc.nat(), (mutations, cut) => {
      const bytes = Buffer.from(program.subarray(0, cut % 4 === 0 ? cut % program.length : program.length));
      const tables = program.length - 0x1800;
      for (const [at, value] of mutations)
        bytes[at % 2 ? at % program.length : tables + (at % 0x1800)] = value;
      try {
        const symbols = read(bytes);
        for (const address of [0, 0x1000, 0x1139, 0xffff_ffff]) symbols.lookup(address);
        for (let i = 0; i < symbols.count; i += 7) expect(symbols.at(i).size).toBeGreaterThanOrEqual(0);
      } catch (error) {
        expect(error).toBeInstanceOf(ElfError);
      }
    }),
    { numRuns: 300 },
  );
});

test('a table that an earlier run stored answers as the one that is made', () => {
  const elf = parseElf(bufferSource(program));
  const scratch = new KeptScratch();
  const [made, found] = [readSymbolTable(elf, { scratch }), readSymbolTable(elf, { scratch })];
  expect(scratch.names).toEqual(['symbols 2']);
  expect([found.count, found.skipped]).toEqual([made.count, made.skipped]);
  const functions = Array.from({ length: made.count }, (_, i) => made.at(i));
  expect(functions.map(({ name }) => name)).toEqual(expect.arrayContaining(['shown_name', 'puts@plt']));
  expect(functions.map(({ start }) => found.lookup(start))).toEqual(
    functions.map(({ start }) => made.lookup(start)),
  );
});
