/** Names and lines of a stripped Go program against `go tool addr2line` on its twin with symbols. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bufferSource } from '../../common/base/byte-source.ts';
import { type ElfFile, parseElf } from '../../common/elf/elf.ts';
import { readGoSymbols } from '../../common/symbols/go-pclntab.ts';
import type { SymbolSource } from '../../common/symbols/source.ts';
import { checkRanges } from '../support/address-ranges.ts';

const hasGo = spawnSync('go', ['version']).status === 0;
if (!hasGo) console.log('skipped: no Go tool chain');

const PROGRAM = `package main

import "fmt"
var table [256]int
func leaf(x int) int { return table[x&255] * x }

func middle(x int) int {
	return leaf(x) + 1
}

func outer(x int) int { return middle(x) * 2 }

//go:noinline
func run(n int) int {
	return outer(n)
}

func main() { fmt.Println(run(3)) }
`;
const ADDRESSES = 10_000;

const directory = mkdtempSync(join(tmpdir(), 'everyframe-go-'));
const full = join(directory, 'full');
let elf: ElfFile;
let symbols: SymbolSource;

beforeAll(() => {
  if (!hasGo) return;
  writeFileSync(join(directory, 'main.go'), PROGRAM);
  const build = (...flags: string[]) => {
    const { status, stderr } = spawnSync('go', ['build', ...flags, join(directory, 'main.go')], {
      encoding: 'utf8',
      env: { ...process.env, GOFLAGS: '-mod=mod' },
    });
    if (status !== 0) throw new Error(stderr);
  };
  build('-o', full);
  build('-ldflags=-s -w', '-o', join(directory, 'stripped'));
  elf = parseElf(bufferSource(readFileSync(join(directory, 'stripped'))));
  symbols = readGoSymbols(elf)!;
});

afterAll(() => rmSync(directory, { recursive: true }));

test.skipIf(!hasGo)('function, file and line at thousands of addresses', () => {
  const text = elf.section('.text')!;
  const step = Math.floor(text.size / ADDRESSES);
  const addresses = Array.from({ length: ADDRESSES }, (_, i) => text.addr + i * step);
  const input = addresses.map((address) => `0x${address.toString(16)}\n`).join('');
  const { stdout } = spawnSync('go', ['tool', 'addr2line', full], {
    input,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  const lines = stdout.split('\n');
  let padding = 0;
  const differences = addresses.flatMap((address, i) => {
    const frames = symbols.lookup(address);
    const ours = `${frames.at(-1)?.function} ${frames[0]?.file}:${frames[0]?.line}`;
    const theirs = `${lines[2 * i]} ${lines[2 * i + 1]}`;
    // no line belongs to padding behind a function: there it says -1 or less
    if (/ :-\d+$/.test(theirs)) {
      padding++;
      return [];
    }
    return ours === theirs ? [] : [{ address, ours, theirs }];
  });
  expect(differences).toEqual([]);
  expect(padding).toBeLessThan(ADDRESSES / 10);
});

test.skipIf(!hasGo)('inlined calls, each with the line of its call', () => {
  const nm = spawnSync('go', ['tool', 'nm', full], { encoding: 'utf8' }).stdout;
  const start = Number.parseInt(/^ *([0-9a-f]+) T main\.run$/m.exec(nm)![1]!, 16);
  const chains = Array.from({ length: 200 }, (_, i) =>
    symbols
      .lookup(start + i)
      .map(({ function: name, line, inlined }) => `${name}:${line}${inlined ? ' inlined' : ''}`),
  );
  expect(chains).toContainEqual([
    'main.leaf:5 inlined',
    'main.middle:8 inlined',
    'main.outer:11 inlined',
    'main.run:15',
  ]);
});

test.skipIf(!hasGo)('where else the same holds', () => {
  const text = elf.section('.text')!;
  const addresses = Array.from({ length: 2000 }, (_, i) => text.addr + Math.floor((text.size * i) / 2000));
  const { wrong, covered } = checkRanges(symbols, addresses);
  expect(wrong).toEqual([]);
  // those reach to the ends of memory
  expect(checkRanges(symbols, [text.addr - 1, text.addr + text.size]).wrong).toEqual([]);
  expect(covered / addresses.length).toBeGreaterThan(5);
});

test.skipIf(!hasGo)('the same without section headers', () => {
  const bytes = readFileSync(join(directory, 'stripped'));
  // e_shoff, e_shnum and e_shstrndx
  bytes.writeBigUInt64LE(0n, 40);
  bytes.writeUInt32LE(0, 60);
  const bare = parseElf(bufferSource(bytes));
  expect(bare.sections).toEqual([]);
  const text = elf.section('.text')!;
  const addresses = Array.from({ length: 1000 }, (_, i) => text.addr + Math.floor((text.size * i) / 1000));
  const found = readGoSymbols(bare)!;
  expect(addresses.map((address) => found.lookup(address))).toEqual(
    addresses.map((address) => symbols.lookup(address)),
  );
});

test.skipIf(!hasGo)('nothing outside of Go functions', () => {
  const text = elf.section('.text')!;
  expect(symbols.lookup(text.addr - 1)).toEqual([]);
  expect(symbols.lookup(text.addr + text.size + 4096)).toEqual([]);
  expect(symbols.lookup(0)).toEqual([]);
});
