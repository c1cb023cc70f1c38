import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bufferSource } from '../../../common/base/byte-source.ts';
import { parseElf } from '../../../common/elf/elf.ts';
import { placeOf } from '../../files/debug-files.ts';
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

async function nameOf(file: string, address: number): Promise<string | undefined> {
  const symbols = await openSymbols(parseElf(bufferSource(readFileSync(path(file)))), placeOf(path(file)));
  try {
    return symbols.lookup(address).at(-1)?.function;
  } finally {
    symbols.close();
  }
}

test('a stripped program has inlined functions and lines of its separate debug information', async () => {
  writeFileSync(
    path('b.c'),
    'static inline __attribute__((always_inline)) int twice(int x) {\n  volatile int y = x;\n  return y + y;\n}\n' +
      '__attribute__((noinline)) int work(int x) { return twice(x); }\nint main(int c, char **v) { return work(c); }\n',
  );
  run('gcc', '-O1', '-g', '-Wl,--build-id=sha1', '-o', 'whole', 'b.c');
  const work = Number.parseInt(/^([0-9a-f]+) T work$/m.exec(run('nm', 'whole'))![1]!, 16);
  run('objcopy', '--only-keep-debug', 'whole', 'whole.debug');
  run('objcopy', '--strip-all', '--add-gnu-debuglink=whole.debug', 'whole', 'stripped');
  const bytes = readFileSync(path('stripped'));
  const symbols = await openSymbols(parseElf(bufferSource(bytes)), placeOf(path('stripped')));
  const frames = symbols.lookup(work).map(({ function: name, line, inlined }) => ({ name, line, inlined }));
  symbols.close();
  const names = await openSymbols(parseElf(bufferSource(bytes)), placeOf(path('stripped')), 'names');
  expect(names.lookup(work)).toMatchObject([{ function: 'work', line: 0, inlined: false }]);
  names.close();
  expect(frames).toEqual([
    { name: 'twice', line: 2, inlined: true },
    { name: 'work', line: 5, inlined: false },
  ]);
});

describe('a stripped program', () => {
  test('has the names of the file that its debug link names', async () => {
    expect(await nameOf('program', helper)).toBe('helper');
  });

  test('has no names of a file that only bears that name', async () => {
    run('objcopy', '--only-keep-debug', 'other', 'program.debug');
    expect(await nameOf('program', helper)).toBeUndefined();
  });

  test('is nameless without that file, not wrong', async () => {
    rmSync(path('program.debug'));
    expect(await nameOf('program', helper)).toBeUndefined();
  });
});
