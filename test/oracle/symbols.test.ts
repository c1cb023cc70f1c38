/** What binutils and LLVM say of programs compiled here: name and line at every level of every inline chain. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bufferSource } from '../../common/base/byte-source.ts';
import { parseElf } from '../../common/elf/elf.ts';
import { compareSymbols, type Oracle, ourLevels, sampleAddresses } from '../bench/compare-symbols.ts';

const SOURCE = `
extern "C" int puts(const char *);
#define INLINE static inline __attribute__((always_inline))
struct S { int v; __attribute__((noinline)) int out(int x) const { return x * v + 1; } };
INLINE int fourth(int x) { return x * 3 + (x >> 1); }
INLINE int third(int x) {
  int s = 0;
  for (int i = 0; i < x; i++) s += fourth(i);
  return s;
}
INLINE int second(int x) { return third(x) + third(x + 1); }
INLINE int first(int x) { return second(x) * 2; }
__attribute__((noinline)) int chain(int x) { return first(x); }
struct F { int (*call)(int); };
INLINE F make() { return F{[](int x) { return second(x) + 1; }}; }
__attribute__((noinline)) int apply(F f, int x) { return f.call(x) + 1; }
int main(int c, char **) {
  if (c > 3) puts("many");
  return chain(c) + S{c}.out(2) + apply(make(), c);
}
`;

const has = (command: string): boolean => spawnSync(command, ['--version']).status === 0;

const CASES: [name: string, compiler: string, flags: string[], oracle: Oracle][] = [
  ['gcc, DWARF 5', 'g++', ['-gdwarf-5'], 'llvm-symbolizer'],
  ['gcc, DWARF 4, type units', 'g++', ['-gdwarf-4', '-fdebug-types-section'], 'llvm-symbolizer'],
  ['gcc, DWARF 3', 'g++', ['-gdwarf-3'], 'llvm-symbolizer'],
  ['gcc, compressed sections', 'g++', ['-gdwarf-5', '-gz=zlib'], 'llvm-symbolizer'],
  ['gcc, .zdebug sections', 'g++', ['-gdwarf-4', '-gz=zlib-gnu'], 'llvm-symbolizer'],
  ['gcc, split', 'g++', ['-gdwarf-5', '-gsplit-dwarf'], 'llvm-symbolizer'],
  ['gcc, split DWARF 4', 'g++', ['-gdwarf-4', '-gsplit-dwarf'], 'llvm-symbolizer'],
  ['clang, DWARF 5', 'clang++', ['-gdwarf-5'], 'llvm-symbolizer'],
  ['clang, split', 'clang++', ['-gdwarf-5', '-gsplit-dwarf'], 'llvm-symbolizer'],
];

describe('names and lines', () => {
  let directory = '';
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'everyframe-symbols-'));
    writeFileSync(join(directory, 'chain.cc'), SOURCE);
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it.each(CASES)('%s', async (name, compiler, flags, oracle) => {
    const missing = [compiler, oracle].find((command) => !has(command));
    if (missing) return console.log(`skipped: ${missing} is not installed`);
    const program = join(directory, name.replaceAll(/\W+/g, '-'));
    const arguments_ = ['-O2', ...flags, '-o', program, 'chain.cc'];
    execFileSync(compiler, arguments_, { cwd: directory, stdio: ['ignore', 'ignore', 'inherit'] });
    const addresses = sampleAddresses(program, 2000);
    const { same, stubs, borrowed, onlyOracle, differences } = await compareSymbols(
      oracle,
      program,
      addresses,
    );
    expect(differences).toEqual([]);
    // what only the oracle names lies between functions
    expect(same + stubs + borrowed + onlyOracle).toBe(addresses.length);
    expect(onlyOracle).toBeLessThan(addresses.length / 10);
    const deepest = Math.max(...(await ourLevels(program, addresses)).map((levels) => levels.length));
    expect(deepest).toBe(5);
  });
});

/** Run in a folder that holds a.out, and split.out with its split-chain.dwo; what makes OUT of them. */
const KEPT: [name: string, tool: string, command: string, section: string][] = [
  ['zlib', 'objcopy', 'objcopy --compress-debug-sections=zlib a.out OUT', '.debug_info'],
  ['zstd', 'objcopy', 'objcopy --compress-debug-sections=zstd a.out OUT', '.debug_info'],
  [
    'what two files share in a third',
    'dwz',
    'cp a.out OUT; cp a.out b; dwz -m shared OUT b',
    '.gnu_debugaltlink',
  ],
  ['a package of split units', 'dwp', 'cp split.out OUT; dwp -e OUT -o OUT.dwp; rm *.dwo', '.debug_addr'],
];

/** The same debug information, kept in another way, has the same answers as where it was compiled. */
describe('debug information kept as', () => {
  let directory = '';
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'everyframe-kept-'));
    writeFileSync(join(directory, 'chain.cc'), SOURCE);
    if (!has('g++')) return;
    for (const flags of [
      ['-gdwarf-5', '-o', 'a.out'],
      // binutils' dwp falls over DWARF 5
      ['-gdwarf-4', '-gsplit-dwarf', '-dumpdir', 'split-', '-o', 'split.out'],
    ])
      execFileSync('g++', ['-O2', ...flags, 'chain.cc'], { cwd: directory });
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it.each(KEPT)('%s', async (name, tool, command, section) => {
    const missing = ['g++', 'addr2line', tool].find((one) => !has(one));
    if (missing) return console.log(`skipped: ${missing} is not installed`);
    const [plain, kept] = [join(directory, 'a.out'), join(directory, name.replaceAll(/\W+/g, '-'))];
    execFileSync('sh', ['-ec', command.replaceAll('OUT', kept)], { cwd: directory });
    const elf = parseElf(bufferSource(readFileSync(kept)));
    expect(elf.section(section)).toBeDefined();
    const addresses = sampleAddresses(plain, 2000);
    expect(await ourLevels(kept, addresses)).toEqual(await ourLevels(plain, addresses));
    // binutils reads no package
    if (tool !== 'dwp')
      expect(await compareSymbols('addr2line', kept, addresses)).toEqual(
        await compareSymbols('addr2line', plain, addresses),
      );
  });
});
