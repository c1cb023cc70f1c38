/** Against nm(1), on files that have the shapes of CPython's builds. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it, test } from 'vitest';
import { bufferSource } from '../../common/base/byte-source.ts';
import { parseElf } from '../../common/elf/elf.ts';
import { compile, hasTool } from '../../test/support/fixtures.ts';
import { findAllocators } from './find-probes.ts';
import { findPythonAllocator } from './python-allocator.ts';

const SHARED = ['-shared', '-fPIC'];
const FIXED = ['-no-pie', '-fno-pie'];

function build(compiler: string, flags: readonly string[], ...shapes: string[]): string {
  const name = ['python-allocator', compiler, ...flags, ...shapes].join('').replaceAll(/\W/g, '-');
  const defines = shapes.map((one) => `-D${one}`);
  return compile(name, compiler, ['-w', '-O2', ...flags, ...defines], 'fake-python-allocator.c');
}

const open = (file: string) => parseElf(bufferSource(readFileSync(file)));

/** What is probed, by the names of the functions. */
function namesOf(file: string): Record<string, string> {
  const found = findPythonAllocator(open(file));
  if (!(found instanceof Map)) throw new Error(`${file}: ${found}`);
  const lines = execFileSync('nm', [file], { encoding: 'utf8' }).split('\n');
  const symbols = new Map(lines.map((line): [number, string] => [Number.parseInt(line, 16), line.slice(19)]));
  return Object.fromEntries([...found].map(([address, probedAs]) => [symbols.get(address), probedAs]));
}

const OWN = {
  own_malloc: 'cpython malloc',
  own_calloc: 'cpython calloc',
  own_realloc: 'cpython realloc',
  own_free: 'cpython free',
};
const CALLERS = {
  PyObject_Malloc: 'malloc',
  PyObject_Calloc: 'calloc',
  PyObject_Realloc: 'realloc',
  PyObject_Free: 'free',
  PyMem_Malloc: 'malloc',
  PyMem_Calloc: 'calloc',
  PyMem_Realloc: 'realloc',
  PyMem_Free: 'free',
};

const BUILDS: [string, string[]][] = [
  ['gcc', FIXED],
  ['gcc', ['-pie', '-fPIE']],
  ['gcc', SHARED],
  ['clang', FIXED],
  ['clang', SHARED],
  ['aarch64-linux-gnu-gcc', FIXED],
  // not in the first page
  ['aarch64-linux-gnu-gcc', [...SHARED, '-Wl,-Ttext=0x11000']],
];

describe.each(BUILDS.filter(([compiler]) => hasTool(compiler)))('of %s %j', (compiler, flags) => {
  it('functions that pointers alone lead to are found', () => {
    expect(namesOf(build(compiler, flags))).toEqual(OWN);
  });

  it('those whose bodies are in their callers as well are found with these', () => {
    expect(namesOf(build(compiler, flags, 'PROFILE'))).toEqual({ ...OWN, ...CALLERS });
  });

  it('those whose bodies are elsewhere, too, are not probed, which is told', () => {
    const elf = open(build(compiler, flags, 'PROFILE', 'LTO'));
    expect(findPythonAllocator(elf)).toBe('inlined');
    expect(findAllocators(elf, [])).toMatchObject({ found: [], hiddenPython: 'inlined' });
  });

  it('there are none where objects are left to malloc()', () => {
    expect(findPythonAllocator(open(build(compiler, flags, 'WITHOUT')))).toBeUndefined();
  });
});

test('those of a stripped library are found as well', () => {
  const file = build('gcc', SHARED);
  const stripped = `${file}.stripped`;
  execFileSync('strip', ['-o', stripped, file]);
  expect(findPythonAllocator(open(stripped))).toEqual(findPythonAllocator(open(file)));
});

test('pointers that stand at their place, in a table of relocations without addends, are found', () => {
  const relr = build('gcc', [...SHARED, '-Wl,-z,pack-relative-relocs']);
  expect(namesOf(relr)).toEqual(OWN);
});

test('a CPython without such a table is told', () => {
  const bytes = readFileSync(build('gcc', SHARED));
  bytes[bytes.indexOf('r\0\0\0\0\0\0\0') + 48] = 0;
  expect(findPythonAllocator(parseElf(bufferSource(bytes)))).toBe('unknown');
});

test('of two allocators, as without the interpreter lock, both are found, or said to be elsewhere', () => {
  expect(namesOf(build('gcc', SHARED, 'TWO'))).toEqual({
    ...OWN,
    mem_malloc: 'cpython malloc',
    mem_calloc: 'cpython calloc',
    mem_realloc: 'cpython realloc',
    mem_free: 'cpython free',
  });
  const elf = open(build('gcc', SHARED, 'TWO', 'PROFILE', 'LTO'));
  expect(findPythonAllocator(elf)).toBe('inlined, free-threaded');
});

test('other programs are none', () => {
  expect(findPythonAllocator(open('/bin/sh'))).toBeUndefined();
});
