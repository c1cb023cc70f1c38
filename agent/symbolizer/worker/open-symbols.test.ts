import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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

const SCOPES = `volatile int sink;
#define INLINE __attribute__((always_inline)) inline
#define OUTER __attribute__((noinline))
template <class F> static INLINE int apply(F f, int a) { return f(a); }
namespace { struct W { int v; INLINE int run(int x) { sink = x; return v * sink; } }; }
namespace ns {
static INLINE int helper(int a) { sink = a; return sink * 3; }
extern "C" OUTER int plain(int a) { return helper(a); }
}
OUTER int one(int a) { return apply([](int x) { sink = x; return sink * 7; }, a); }
OUTER int two(int a) { return apply([&](auto x) { sink = x; return sink * 5 + a; }, a); }
int main(int c, char **) {
  struct L { INLINE int f(int a) { sink = a; return sink + 2; } } l;
  W w{c};
  return one(c) + two(c) + ns::plain(c) + w.run(c) + l.f(c);
}
`;

test.each([
  ['g++', []],
  ['g++', ['-flto']],
  ['g++', ['-gdwarf-4', '-gsplit-dwarf']],
  ['clang++', []],
])(
  '%s %j: inlined functions that other files can not call say what they stand in',
  async (compiler, flags) => {
    if (spawnSync(compiler, ['--version']).status !== 0) return console.log(`skipped: no ${compiler}`);
    writeFileSync(path('scopes.cc'), SCOPES);
    run(compiler, '-O2', '-g', '-std=c++17', ...flags, '-o', 'scopes', 'scopes.cc');
    const elf = parseElf(bufferSource(readFileSync(path('scopes'))));
    const symbols = await openSymbols(elf, placeOf(path('scopes')));
    const { addr, size } = elf.section('.text')!;
    const found = new Map<string, string>();
    for (let at = addr; at < addr + size; at++)
      for (const { function: name, systemName } of symbols.lookup(at)) found.set(name, systemName);
    symbols.close();
    // clang gives all of them mangled names, whose lambdas have numbers and no types
    const names = [...found.keys()].map((name) =>
      name.replace(/(?:\{lambda\}|<lambda\(.*?\)>|\$_\d+)::operator\(\).*$/, 'LAMBDA'),
    );
    const wanted = [
      'ns::helper',
      '(anonymous namespace)::W::run',
      'one::LAMBDA',
      'two::LAMBDA',
      'main::L::f',
    ];
    const bare = (name: string): string =>
      name.replace(/^(?:auto )?(one|two)\(int\)/, '$1').replace(/(?<=\w)\(int\)$/, '');
    expect(names.map(bare)).toEqual(expect.arrayContaining([...wanted, 'plain', 'one', 'two', 'main']));
    if (compiler === 'g++') expect(found.get('ns::helper')).toBe('helper');
  },
);

test.each([4, 5])(
  'DWARF %i whose strings dwz has moved to another file still says where it was compiled',
  async (version) => {
    if (spawnSync('dwz', ['--version']).status !== 0) return console.log('skipped: no dwz');
    mkdirSync(path('source'), { recursive: true });
    writeFileSync(
      path('source/c.c'),
      'int shared_work(int x) { return x * 7; }\nint main(int c, char **v) { return shared_work(c); }\n',
    );
    for (const name of ['first', 'second']) run('gcc', '-g', `-gdwarf-${version}`, '-o', name, 'source/c.c');
    run('dwz', '-m', 'common', '-M', path('common'), 'first', 'second');
    const work = Number.parseInt(/^([0-9a-f]+) T shared_work$/m.exec(run('nm', 'first'))![1]!, 16);
    const symbols = await openSymbols(
      parseElf(bufferSource(readFileSync(path('first')))),
      placeOf(path('first')),
    );
    const [frame] = symbols.lookup(work);
    symbols.close();
    expect(frame).toMatchObject({ function: 'shared_work', file: path('source/c.c'), line: 1 });
  },
);
