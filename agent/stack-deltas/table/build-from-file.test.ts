/** Files on disk whose rules come from elsewhere: another file, or an earlier run. */
import { execFileSync } from 'node:child_process';
import {
  chownSync,
  closeSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { bufferSource } from '../../../common/base/byte-source.ts';
import { parseElf } from '../../../common/elf/elf.ts';
import { buildFromFile, type FileResult } from './build-from-file.ts';
import { findPackedRule } from './pack.ts';
import { TableCache } from './table-cache.ts';

const base = mkdtempSync(join(tmpdir(), 'build-from-file-'));
const inBase = (name: string): string => join(base, name);
const run = (command: string, ...args: string[]): string =>
  execFileSync(command, args, { cwd: base, encoding: 'latin1' });
/** In a function that no other leads to, and whose code can't be followed. */
let inside = 0;

beforeAll(() => {
  writeFileSync(
    inBase('a.c'),
    `int work(int n) { volatile char room[100]; room[n] = 1; return room[n / 2]; }
     ${Array.from({ length: 49 }, (_, i) => `int f${i}(int n) { return work(n + ${i}) * ${i}; }`).join('\n')}
     int f49(int n) { __asm__ volatile(".byte 6"); return work(n); }
     int main(int c, char **v) { return f1(c) + f2(c); }`,
  );
  const flags = ['-O0', '-g', '-fno-asynchronous-unwind-tables', '-Wl,--build-id'];
  run('gcc', ...flags, '-o', 'full', 'a.c');
  run('objcopy', '--only-keep-debug', 'full', 'program.debug');
  run('objcopy', '--strip-all', '--add-gnu-debuglink=program.debug', 'full', 'program');
  inside = Number(`0x${/^([0-9a-f]+) T f49$/m.exec(run('nm', 'full'))![1]}`) + 4;
});
afterAll(() => {
  rmSync(base, { recursive: true });
});

function build(name: string, cache?: TableCache): FileResult {
  const fd = openSync(inBase(name), 'r');
  try {
    return buildFromFile(fd, { place: { isOwn: true, path: inBase(name) }, cache });
  } finally {
    closeSync(fd);
  }
}

/** Whether there is a rule for f49(), which only its unwind information can tell. */
function knowsAll({ result }: FileResult): boolean {
  if (result.kind !== 'built' || !result.executable.table) return false;
  const elf = parseElf(bufferSource(readFileSync(inBase('program'))));
  return findPackedRule(result.executable.table, elf.addressToFileOffset(inside)!) !== 0;
}

describe('a file without .eh_frame for its code', () => {
  test('has rules from the file with its debug information', () => {
    const built = build('program');
    expect(knowsAll(built)).toBe(true);
    expect(built.result).toMatchObject({ kind: 'built', executable: { usesSeparate: true, badFdes: 0 } });
  });

  test('has none where that is not there, or another build’s', () => {
    copyFileSync(inBase('program'), inBase('alone'));
    mkdirSync(inBase('elsewhere'));
    copyFileSync(inBase('program'), inBase('elsewhere/program'));
    expect(knowsAll(build('elsewhere/program'))).toBe(false);
    run('gcc', '-O0', '-g', '-fno-asynchronous-unwind-tables', '-o', 'elsewhere/program.debug', 'a.c', '-lm');
    run('objcopy', '--update-section', '.note.gnu.build-id=/dev/null', 'elsewhere/program.debug');
    expect(knowsAll(build('elsewhere/program'))).toBe(false);
  });

  if (process.getuid?.() !== 0) console.log('skipped: a file of somebody else (needs root)');
  test.skipIf(process.getuid?.() !== 0)('has none of a file that somebody else owns', () => {
    chownSync(inBase('program.debug'), 4321, 4321);
    expect(knowsAll(build('program'))).toBe(false);
    chownSync(inBase('program.debug'), 0, 0);
    expect(knowsAll(build('program'))).toBe(true);
  });
});

describe('tables on disk', () => {
  const directory = inBase('cache');
  const files = (): string[] => readdirSync(join(directory, 'tables'));
  beforeEach(() => rmSync(directory, { recursive: true, force: true }));
  const cacheUse = (name: string): string => build(name, new TableCache(directory)).cache.kind;

  test('are found by the next run, the same as they were made', () => {
    const made = build('full', new TableCache(directory));
    const found = build('full', new TableCache(directory));
    expect([made.cache, found.cache]).toEqual([
      { kind: 'missing', failed: false },
      { kind: 'found', failed: false },
    ]);
    expect(found.result).toEqual(made.result);
    expect(files()).toHaveLength(1);
  });

  test('hold for the very file alone: a copy and a changed file have their own', () => {
    copyFileSync(inBase('full'), inBase('copy'));
    expect(cacheUse('full')).toBe('missing');
    expect(cacheUse('copy')).toBe('missing');
    // same edges and length, so the same file ID; what is between is another program
    const bytes = readFileSync(inBase('copy'));
    bytes.fill(0, 5000, 5100);
    writeFileSync(inBase('copy'), bytes);
    expect(cacheUse('copy')).toBe('missing');
    expect(cacheUse('full')).toBe('found');
  });

  test('are not kept where they depend on another file', () => {
    expect(cacheUse('program')).toBe('missing');
    expect(files()).toEqual([]);
  });

  test('are made anew where they were damaged', () => {
    const made = build('full', new TableCache(directory));
    const path = join(directory, 'tables', files()[0]!);
    const bytes = readFileSync(path);
    bytes[5000]! ^= 1;
    writeFileSync(path, bytes);
    const again = build('full', new TableCache(directory));
    expect(again).toEqual({ result: made.result, cache: { kind: 'damaged', failed: false } });
    expect(cacheUse('full')).toBe('found');
  });
});

test('what is not an ELF file is told as without a cache', () => {
  writeFileSync(inBase('script'), '#!/bin/sh\necho I am no ELF file, however long this line may be\n');
  const { result, cache } = build('script', new TableCache(inBase('cache')));
  expect([result.kind, cache]).toEqual(['not-elf', { kind: 'unused', failed: false }]);
});
