/** Programs in which addresses are looked up, built once into a cache directory. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { userCacheDirectory } from '../../agent/files/cache-directory.ts';

export type OracleName = 'addr2line' | 'llvm-symbolizer' | 'go tool addr2line';

export interface Program {
  /** As the table has it. */
  title: string;
  path: string;
  oracles: readonly OracleName[];
}

const SOURCES = new URL('../../../test/oracle/programs/', import.meta.url).pathname;
/** Holds SQLite in one file of C. */
const SQLITE_PACKAGE = 'better-sqlite3@12.4.1';
const SQLITE = 'package/deps/sqlite3/sqlite3.c';
const BOTH: readonly OracleName[] = ['addr2line', 'llvm-symbolizer'];
/** binutils reads no .dwo files: it has no lines and no inlined functions there. */
const LLVM: readonly OracleName[] = ['llvm-symbolizer'];

interface Recipe {
  title: string;
  file: string;
  oracles: readonly OracleName[];
  /** Shell commands, in the cache directory; $P is the folder of the sources. */
  build: string;
}

const RECIPES: readonly Recipe[] = [
  {
    title: 'C: SQLite, gcc -O2',
    file: 'c.so',
    oracles: BOTH,
    build: `npm pack --silent ${SQLITE_PACKAGE} && tar xzf better-sqlite3-*.tgz ${SQLITE} && gcc -O2 -g -shared -fPIC -o c.so ${SQLITE}`,
  },
  {
    title: 'C++: standard library, g++ -O2',
    file: 'cxx',
    oracles: BOTH,
    build: 'g++ -std=c++20 -O2 -g -o cxx $P/library.cc -pthread',
  },
  {
    title: 'the same, clang++ -O2',
    file: 'cxx-clang',
    oracles: BOTH,
    build: 'clang++ -std=c++20 -O2 -g -o cxx-clang $P/library.cc -pthread',
  },
  {
    title: 'the same, g++ -gsplit-dwarf, .dwo',
    file: 'split',
    oracles: LLVM,
    build: 'g++ -std=c++20 -O2 -g -gsplit-dwarf -o split $P/library.cc -pthread',
  },
  {
    title: 'the same, clang++ -gsplit-dwarf, .dwp',
    file: 'package-dwp',
    oracles: LLVM,
    build:
      'mkdir -p dwp && clang++ -std=c++20 -O2 -g -gsplit-dwarf -c -o dwp/library.o $P/library.cc && clang++ -o package-dwp dwp/library.o -pthread && llvm-dwp -e package-dwp -o package-dwp.dwp && rm dwp/library.dwo',
  },
  {
    title: 'C and C++, gcc -O2 -flto',
    file: 'lto',
    oracles: BOTH,
    build:
      'gcc -O2 -g -flto -c $P/mixed.c -o mixed.o && g++ -std=c++20 -O2 -g -flto -o lto $P/mixed.cc mixed.o',
  },
  {
    title: 'Rust: standard library, rustc -O',
    file: 'rust',
    oracles: BOTH,
    build: 'rustc --edition 2021 -O -g -o rust $P/library.rs',
  },
  {
    title: 'Go: net/http',
    file: 'gobin',
    oracles: ['go tool addr2line'],
    build: 'GO111MODULE=off go build -o gobin $P/library.go',
  },
];

/** What can't be built here is left out, with the reason on stderr. */
export function buildPrograms(): Program[] {
  const folder = join(userCacheDirectory(process.env), 'everyframe-symbols');
  mkdirSync(folder, { recursive: true });
  return RECIPES.flatMap(({ title, file, oracles, build }) => {
    const path = join(folder, file);
    if (!existsSync(path)) {
      console.error(`building: ${title}`);
      const { status, stderr } = spawnSync('sh', ['-ec', build], {
        cwd: folder,
        env: { ...process.env, P: SOURCES },
        encoding: 'utf8',
      });
      if (status !== 0) {
        console.error(`left out: ${title}: ${stderr.trim().split('\n').at(-1)}`);
        return [];
      }
    }
    return [{ title, path, oracles }];
  });
}

/** First line of what a tool says of its version. */
export const versionOf = (command: string, ...args: string[]): string => {
  const text = execFileSync(command, args, { encoding: 'utf8' });
  return text
    .split('\n')
    .find((line) => /\d/.test(line))!
    .trim();
};
