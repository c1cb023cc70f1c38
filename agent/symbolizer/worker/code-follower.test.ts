import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bufferSource } from '../../../common/base/byte-source.ts';
import { parseElf } from '../../../common/elf/elf.ts';
import { readSymbolTable } from '../../../common/symbols/elf-symbols.ts';
import { codeFollower } from './code-follower.ts';

/** Hand-written, as by nasm: exports without sizes, no call frame information, and between them code without a name. */
const SOURCE = `
  .text
  .globl looping
looping: mov $9,%ecx
1: dec %ecx
  jz 2f
  jmp 1b
2: ret
hidden_one: dec %eax
  ret
  .globl tail
tail: jmp hidden_two
hidden_two: inc %eax
  ret
  .globl calling
calling: call hidden_two
  nop
hidden_three: dec %eax
  ret
  .globl not_code
not_code: .byte 0x06, 0x06, 0x06
  .section .note.GNU-stack,"",@progbits
`;

let directory = '';
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'code-follower-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

test('a symbol without a size and without call frame information names the code that surely follows it', () => {
  const [source, program] = [join(directory, 'a.s'), join(directory, 'a')];
  writeFileSync(source, SOURCE);
  execFileSync('gcc', ['-shared', '-nostdlib', '-o', program, source]);
  const text = execFileSync('nm', [program], { encoding: 'utf8' });
  const addressOf = (name: string): number =>
    Number.parseInt(new RegExp(`^([0-9a-f]+) \\w ${name}$`, 'm').exec(text)![1]!, 16);
  const start = addressOf('looping');
  const end = addressOf('not_code') + 3;
  const hidden = ['hidden_one', 'hidden_two', 'hidden_three'].map(addressOf);
  execFileSync('strip', ['--strip-unneeded', program]);

  const elf = parseElf(bufferSource(readFileSync(program)));
  const symbols = readSymbolTable(elf, { followCode: codeFollower(elf) });
  const bytesOf = (name: string): number => {
    let count = 0;
    for (let at = start; at < end; at++) count += Number(symbols.lookup(at)?.name === name);
    return count;
  };
  expect(hidden.map((at) => symbols.lookup(at))).toEqual([undefined, undefined, undefined]);
  expect(bytesOf('looping')).toBe(hidden[0]! - start);
  expect(bytesOf('tail')).toBe(2);
  // not the nop, behind which another function begins
  expect(bytesOf('calling')).toBe(5);
  expect(bytesOf('not_code')).toBe(1);
});
