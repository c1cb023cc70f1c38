import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseElf } from '../../common/elf/elf.ts';
import { bufferSource } from '../../common/elf/source.ts';
import { placeOf } from './debug-files.ts';
import { openSymbols } from './open-symbols.ts';

const directory = mkdtempSync(join(tmpdir(), 'everyframe-symbols-'));
const path = (name: string): string => join(directory, name);
const run = (command: string, ...args: string[]): string =>
  execFileSync(command, args, { cwd: directory, encoding: 'latin1' });
let helper: number;

beforeAll(() => {
  writeFileSync(
    path('a.c'),
    'static __attribute__((noinline)) int helper(int x) { return x * 3; }\nint main(int c, char **v) { return helper(c); }\n',
  );
  run('gcc', '-O1', '-Wl,--build-id=sha1', '-o', 'full', 'a.c');
  helper = Number.parseInt(/^([0-9a-f]+) t helper$/m.exec(run('nm', 'full'))![1]!, 16);
  run('objcopy', '--only-keep-debug', 'full', 'program.debug');
  run('objcopy', '--strip-all', '--add-gnu-debuglink=program.debug', 'full', 'program');
  run('gcc', '-O2', '-Wl,--build-id=sha1', '-o', 'other', 'a.c');
});

afterAll(() => rmSync(directory, { recursive: true }));

function nameOf(file: string, address: number): string | undefined {
  const symbols = openSymbols(parseElf(bufferSource(readFileSync(path(file)))), placeOf(path(file)));
  try {
    return symbols.lookup(address).at(-1)?.function;
  } finally {
    symbols.close();
  }
}

describe('a stripped program', () => {
  test('has the names of the file that its debug link names', () => {
    expect(nameOf('program', helper)).toBe('helper');
  });

  test('has no names of a file that only bears that name', () => {
    run('objcopy', '--only-keep-debug', 'other', 'program.debug');
    expect(nameOf('program', helper)).toBeUndefined();
  });

  test('is nameless without that file, not wrong', () => {
    rmSync(path('program.debug'));
    expect(nameOf('program', helper)).toBeUndefined();
  });
});
