/** Which name an address has, held to nm, readelf and objdump on programs that are built here. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { bufferSource } from '../base/byte-source.ts';
import { parseElf } from '../elf/elf.ts';
import { readSymbolTable } from './elf-symbols.ts';

const directory = mkdtempSync(join(tmpdir(), 'symbol-rules-'));
afterAll(() => rmSync(directory, { recursive: true }));

const run = (tool: string, ...args: string[]): string =>
  execFileSync(tool, args, { cwd: directory, encoding: 'latin1', maxBuffer: 256 << 20, stdio: 'pipe' });
const has = (tool: string): boolean => spawnSync(tool, ['--version']).status === 0;
const open = (path: string) => parseElf(bufferSource(readFileSync(join(directory, path))));
const write = (name: string, text: string): void => writeFileSync(join(directory, name), text);

interface Listed {
  start: number;
  end: number;
  /** nm's letter. */
  type: string;
  name: string;
}

/** Symbols with a size. */
const nm = (path: string, ...flags: string[]): Listed[] =>
  [...run('nm', '-S', ...flags, path).matchAll(/^([0-9a-f]+) ([0-9a-f]+) (\w) (\S+)$/gm)].map(
    ([, start, size, type, name]) => {
      const from = Number.parseInt(start!, 16);
      return { start: from, end: from + Number.parseInt(size!, 16), type: type!, name: name! };
    },
  );

write(
  'calls.c',
  `#include <stdio.h>
   #include <string.h>
   #include <unistd.h>
   int (*volatile taken)(const char *) = puts;
   size_t (*volatile length)(const char *) = strlen;
   int main(int c, char **v) {
     char b[64];
     puts(v[0]); taken(v[0]); length(v[0]);
     return read(c, b, 64) + memcmp(b, v[0], c) + write(1, b, c);
   }\n`,
);
const ARM = `.text
.globl main
.type main,%function
main: bl puts
 bl strlen
 adrp x0, :got:read
 ldr x0, [x0, :got_lo12:read]
 bl read
 ret
.size main, .-main\n`;
const armLibrary = ['puts', 'strlen', 'read'].map(
  (f) => `.globl ${f}\n.type ${f},%function\n${f}: ret\n.size ${f},4\n`,
);

/** Builds a program for arm64, with a linker alone: a libc of it is not needed. */
function buildArm(out: string, ...flags: string[]): void {
  write('arm.s', ARM);
  write('library.s', `.text\n${armLibrary.join('')}`);
  for (const name of ['arm', 'library'])
    run('clang', '--target=aarch64-linux-gnu', '-c', '-o', `${name}.o`, `${name}.s`);
  run('aarch64-linux-gnu-ld', '-shared', '-o', 'library.so', 'library.o');
  run('aarch64-linux-gnu-ld', ...flags, '-e', 'main', '-o', out, 'arm.o', 'library.so');
}

const gcc =
  (...flags: string[]) =>
  (out: string): void =>
    void run('gcc', '-O1', '-fno-builtin', ...flags, '-o', out, 'calls.c');

const LAYOUTS: { title: string; tools: string[]; sections: string[]; build(out: string): void }[] = [
  { title: 'lazy', tools: ['gcc'], sections: ['.plt'], build: gcc('-Wl,-z,lazy') },
  { title: 'now', tools: ['gcc'], sections: ['.plt.got'], build: gcc('-Wl,-z,now') },
  {
    title: 'ibt',
    tools: ['gcc'],
    sections: ['.plt', '.plt.sec'],
    build: gcc('-fcf-protection', '-Wl,-z,ibtplt', '-Wl,-z,lazy'),
  },
  {
    title: 'gold',
    tools: ['gcc', 'ld.gold'],
    sections: ['.plt'],
    build: gcc('-fuse-ld=gold', '-Wl,-z,lazy'),
  },
  { title: 'lld', tools: ['gcc', 'ld.lld'], sections: ['.plt'], build: gcc('-fuse-ld=lld') },
  {
    title: 'arm64',
    tools: ['clang', 'aarch64-linux-gnu-ld'],
    sections: ['.plt'],
    build: (out) => buildArm(out),
  },
  {
    title: 'arm64 with branch target identification',
    tools: ['clang', 'aarch64-linux-gnu-ld'],
    sections: ['.plt'],
    build: (out) => buildArm(out, '-z', 'force-bti'),
  },
  {
    title: 'arm64 with signed pointers',
    tools: ['clang', 'aarch64-linux-gnu-ld'],
    sections: ['.plt'],
    build: (out) => buildArm(out, '-z', 'pac-plt'),
  },
  {
    title: 'arm64 with both',
    tools: ['clang', 'aarch64-linux-gnu-ld'],
    sections: ['.plt'],
    build: (out) => buildArm(out, '-z', 'force-bti', '-z', 'pac-plt'),
  },
];

describe('stubs', () => {
  test.each(LAYOUTS)(
    '$title: named as objdump names them, and no byte more',
    ({ title, tools, sections, build }) => {
      const missing = tools.find((tool) => !has(tool));
      if (missing) return console.log(`skipped: ${missing} is not installed`);
      const out = title.replaceAll(' ', '-');
      build(out);
      const elf = open(out);
      const symbols = readSymbolTable(elf);
      const objdump = title.startsWith('arm64') ? 'aarch64-linux-gnu-objdump' : 'objdump';
      const names = [...run(objdump, '-d', out).matchAll(/^([0-9a-f]{16}) <([^@>]+)(?:@[^>]*)?@plt>:$/gm)];
      const stubs = new Map(names.map(([, address, name]) => [Number.parseInt(address!, 16), `${name}@plt`]));
      expect([...stubs.values()]).toEqual(expect.arrayContaining(['puts@plt', 'read@plt']));
      const found = new Map<number, string>();
      for (const { name, addr, size } of elf.sections) {
        if (!/^\.plt/.test(name)) continue;
        for (let at = addr; at < addr + size; at++) {
          const symbol = symbols.lookup(at);
          if (symbol && symbol.start === at) found.set(at, symbol.name);
        }
      }
      expect(found).toEqual(stubs);
      expect(elf.sections.map(({ name }) => name)).toEqual(expect.arrayContaining(sections));
    },
  );

  test('of a file’s own indirect functions: named after the function that is called', () => {
    const libc = '/lib/x86_64-linux-gnu/libc.so.6';
    const symbols = readSymbolTable(parseElf(bufferSource(readFileSync(libc))));
    const resolvers = new Map<string, string[]>();
    for (const [, address, name] of run('readelf', '-sW', libc).matchAll(
      /^ *\d+: 0*([0-9a-f]+) +\d+ IFUNC .* (\S+?)(?:@\S+)?$/gm,
    )) {
      resolvers.set(address!, [...(resolvers.get(address!) ?? []), `${name}@plt`]);
    }
    const stubs = [...run('objdump', '-d', libc).matchAll(/^0*([0-9a-f]+) <\*ABS\*\+0x([0-9a-f]+)@plt>:$/gm)];
    expect(stubs.length).toBeGreaterThan(10);
    const known = stubs.filter(([, , resolver]) => resolvers.has(resolver!));
    expect(known.length).toBeGreaterThan(10);
    const wrong = known.filter(([, address, resolver]) => {
      const name = symbols.lookup(Number.parseInt(address!, 16))?.name;
      return !name || !resolvers.get(resolver!)!.includes(name);
    });
    expect(wrong).toEqual([]);
  });
});

describe('functions', () => {
  test('that the compiler has split or specialised keep the names of their parts', () => {
    write(
      'parts.c',
      `#include <stdlib.h>
       extern int volatile sink;
       int volatile sink;
       __attribute__((noinline)) int risky(int x) { if (x == 77) { sink = x; abort(); } return x * 3 + sink; }
       static __attribute__((noinline)) int partial(int x) {
         if (__builtin_expect(x > 1000, 0)) { for (int i = 0; i < x; i++) sink += i * x; return sink; }
         return 0;
       }
       int one(int x) { return partial(x) + 1; }
       int two(int x) { return partial(x) + 2; }
       static __attribute__((noinline)) int special(int x, int y) { for (int i = 0; i < x; i++) sink += y; return sink; }
       int main(int c, char **v) { return risky(c) + one(c) + two(c) + special(c, 5) + special(c + 1, 5); }\n`,
    );
    run('gcc', '-O2', '-fpartial-inlining', '-fno-inline-small-functions', '-o', 'parts', 'parts.c');
    const symbols = readSymbolTable(open('parts'));
    const functions = nm('parts').filter(({ type }) => /[tT]/.test(type));
    const names = functions.map(({ name }) => name);
    expect(names).toEqual(
      expect.arrayContaining(['risky.cold', expect.stringMatching(/\.(part|constprop|isra)\.0$/)]),
    );
    for (const { start, end, name } of functions) {
      expect([start, end - 1].map((at) => symbols.lookup(at))).toEqual([
        { name, start, size: end - start },
        { name, start, size: end - start },
      ]);
    }
  });

  test('that choose another one have their own name, or where it was stripped that of what they choose', () => {
    write(
      'chosen.c',
      `static int fast(int x) { return x + 1; }
       static int (*pick_chosen(void))(int) { return fast; }
       int chosen(int) __attribute__((ifunc("pick_chosen")));
       int user(int x) { return chosen(x) * 2; }\n`,
    );
    run('gcc', '-O1', '-fPIC', '-shared', '-Wl,-Bsymbolic', '-o', 'chosen.so', 'chosen.c');
    run('strip', '-o', 'chosen-stripped.so', 'chosen.so');
    const [resolver] = nm('chosen.so').filter(({ type }) => type === 'i');
    expect(resolver!.name).toBe('chosen');
    expect(readSymbolTable(open('chosen.so')).lookup(resolver!.start)?.name).toBe('pick_chosen');
    const stripped = readSymbolTable(open('chosen-stripped.so'));
    expect(stripped.lookup(resolver!.start)?.name).toBe('chosen');
    expect(Array.from({ length: stripped.count }, (_, i) => stripped.at(i).name)).toContain('chosen@plt');
  });

  test('of several versions have the name without a version', () => {
    write(
      'versions.c',
      `__asm__(".symver old_way, way@V1"); __asm__(".symver new_way, way@@V2");
       int old_way(void) { return 1; }
       int new_way(void) { return 2; }\n`,
    );
    write('versions.map', 'V1 { global: way; local: *; };\nV2 { global: way; } V1;\n');
    run('gcc', '-shared', '-fPIC', '-Wl,--version-script=versions.map', '-o', 'versions.so', 'versions.c');
    run('strip', '-o', 'versions-stripped.so', 'versions.so');
    const listed = nm('versions-stripped.so', '-D', '--with-symbol-versions').filter(
      ({ type }) => type === 'T',
    );
    expect(listed.map(({ name }) => name).sort()).toEqual(['way@@V2', 'way@V1']);
    const symbols = readSymbolTable(open('versions-stripped.so'));
    for (const { start } of listed) expect(symbols.lookup(start)?.name).toBe('way');
  });

  test('have no names of marks that stand at the end of another section', () => {
    write(
      'marks.s',
      `.section first_code,"ax",@progbits
       .globl in_first
       .type in_first,@function
       in_first: nop
       ret
       .size in_first, .-in_first
       .section second_code,"ax",@progbits
       nop
       ret
       .text
       .globl _start
       _start: lea __stop_first_code(%rip), %rax
       ret\n`,
    );
    run('gcc', '-nostdlib', '-o', 'marks', 'marks.s');
    const elf = open('marks');
    const second = elf.section('second_code')!;
    const at = Number.parseInt(/^([0-9a-f]+) \w __stop_first_code$/m.exec(run('nm', 'marks'))![1]!, 16);
    expect(at).toBe(second.addr);
    const symbols = readSymbolTable(elf);
    expect(symbols.lookup(at - 1)?.name).toBe('in_first');
    expect(symbols.lookup(at)).toBeUndefined();
  });
});

test.each(['/bin/bash', '/lib/x86_64-linux-gnu/libc.so.6'])(
  '%s: nothing between functions has a name',
  (path) => {
    const elf = parseElf(bufferSource(readFileSync(path)));
    const symbols = readSymbolTable(elf);
    const listed = [...nm(path), ...nm(path, '-D')].sort((a, b) => a.start - b.start);
    // labels without a size reach to the next symbol; stubs have no symbols
    const labels = [
      ...run('readelf', '-sW', path).matchAll(/^ *\d+: ([0-9a-f]{16}) +0 (?:NOTYPE|FUNC|IFUNC) /gm),
    ];
    const starts = labels.map(([, start]) => Number.parseInt(start!, 16)).sort((a, b) => a - b);
    const text = elf.section('.text')!;
    let reached = text.addr;
    let gaps = 0;
    const named: string[] = [];
    for (const { start, end } of listed) {
      const isGap = start > reached && start <= text.addr + text.size && reached > text.addr;
      if (isGap && !starts.some((at) => at >= reached && at < start)) {
        gaps++;
        for (const at of [reached, start - 1]) {
          const symbol = symbols.lookup(at);
          if (symbol) named.push(`${at.toString(16)} ${symbol.name}`);
        }
      }
      if (start >= text.addr && start < text.addr + text.size) reached = Math.max(reached, end);
    }
    expect(gaps).toBeGreaterThan(10);
    expect(named).toEqual([]);
  },
);
