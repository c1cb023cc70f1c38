import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bufferSource } from '../base/byte-source.ts';
import { type ElfFile, parseElf } from '../elf/elf.ts';
import { readSymbolTable } from './elf-symbols.ts';
import { functionFinder } from './function-bounds.ts';

/** Assembly as it is written by hand, in turns with code that loses its names when the file is stripped. */
const code = (sections: string): string => `
  .cfi_sections ${sections}
  .text
  .globl bare
bare: ret
  .type hidden_one,@function
hidden_one: nop; nop; ret
  .size hidden_one, .-hidden_one
  .globl framed
  .type framed,@function
framed: .cfi_startproc
  nop; nop; nop; ret
  .cfi_endproc
  .type hidden_two,@function
hidden_two: nop; ret
  .size hidden_two, .-hidden_two
  .globl last
last: ret
hidden_three: nop; ret
`;

let directory = '';
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'function-bounds-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

const pathOf = (name: string): string => join(directory, name);

function build(name: string, sections: string, ...flags: string[]): Buffer {
  writeFileSync(pathOf(`${name}.s`), code(sections));
  execFileSync('gcc', ['-shared', '-nostdlib', ...flags, '-o', pathOf(name), pathOf(`${name}.s`)]);
  return readFileSync(pathOf(name));
}

const elfOf = (bytes: Uint8Array): ElfFile => parseElf(bufferSource(bytes));

function addresses(name: string): Map<string, number> {
  const text = execFileSync('nm', [pathOf(name)], { encoding: 'utf8' });
  return new Map(
    [...text.matchAll(/^([0-9a-f]{16}) \w (\w+)$/gm)].map((m) => [m[2]!, Number.parseInt(m[1]!, 16)]),
  );
}

/** What each byte of code is called. */
function named(elf: ElfFile, from: number, to: number, codeElf = elf): string {
  const symbols = readSymbolTable(elf, { code: codeElf });
  const names: string[] = [];
  for (let at = from; at < to; at++) names.push(symbols.lookup(at)?.name ?? '-');
  return names.join(' ');
}

const EXPECTED = 'bare - - - framed framed framed framed - - last - -';

describe('a symbol without a size names its function and nothing behind it', () => {
  test.each([
    ['with a search table', '.eh_frame', []],
    ['without one', '.eh_frame', ['-Wl,--no-eh-frame-hdr']],
    ['in .debug_frame', '.debug_frame', []],
  ])('%s', (name, sections, flags) => {
    const file = name.replaceAll(' ', '-');
    build(file, sections, ...flags);
    const start = addresses(file).get('bare')!;
    execFileSync('strip', ['--strip-unneeded', '--keep-section=.debug_frame', pathOf(file)]);
    expect(named(elfOf(readFileSync(pathOf(file))), start, start + 13)).toBe(EXPECTED);
  });

  test('whose symbols were moved into another file', () => {
    build('moved', '.eh_frame');
    const start = addresses('moved').get('bare')!;
    execFileSync('objcopy', ['--only-keep-debug', pathOf('moved'), pathOf('moved.debug')]);
    const [program, debug] = ['moved', 'moved.debug'].map((name) => elfOf(readFileSync(pathOf(name))));
    const expected = 'bare hidden_one hidden_one hidden_one framed framed framed framed';
    expect(named(debug!, start, start + 8, program)).toBe(expected);
    // without its program nothing is known of functions
    expect(named(debug!, start + 4, start + 8)).toBe('framed - - -');
  });
});

test('agrees with readelf on every function of a C library', () => {
  const path = '/lib/x86_64-linux-gnu/libc.so.6';
  // it complains of what it does not follow, and prints all the same
  const { stdout } = spawnSync('readelf', ['--debug-dump=frames', path], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  const fdes = [...stdout.matchAll(/ FDE cie=\S+ pc=([0-9a-f]+)\.\.([0-9a-f]+)$/gm)];
  expect(fdes.length).toBeGreaterThan(1000);
  const find = functionFinder([elfOf(readFileSync(path))]);
  for (const [, from, to] of fdes) {
    const [start, end] = [Number.parseInt(from!, 16), Number.parseInt(to!, 16)];
    expect(find(start)).toMatchObject({ start, end });
    expect(find(end - 1)).toMatchObject({ start, end });
  }
});

test('damaged frame information costs ranges, nothing else', () => {
  const intact = build('damaged', '.eh_frame');
  const { sections } = elfOf(intact);
  const places = sections.filter(({ name }) => name.startsWith('.eh_frame'));
  const change = fc.record({
    section: fc.nat(places.length - 1),
    at: fc.nat(1 << 16),
    value: fc.nat(255),
  });
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 8 }), (changes) => {
      const bytes = Buffer.from(intact);
      for (const { section, at, value } of changes) {
        const { offset, size } = places[section]!;
        bytes[offset + (at % size)] = value;
      }
      const symbols = readSymbolTable(elfOf(bytes));
      expect(symbols.lookup(addresses('damaged').get('hidden_one')!)?.name).toBe('hidden_one');
    }),
    { numRuns: 60 },
  );
});
