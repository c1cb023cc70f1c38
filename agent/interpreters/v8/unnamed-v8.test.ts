import { describe, expect, it } from 'vitest';
import { buildElf } from '../../../common/elf/build-elf.ts';
import { type ElfFile, PF_X, PT_LOAD, parseElf } from '../../../common/elf/elf.ts';
import { bufferSource } from '../../../common/elf/source.ts';
import { UnsupportedRuntime } from '../contract.ts';
import { findV8 } from './find-v8.ts';
import { layoutOf } from './layout.ts';

const PAGE = 4096;
const FUNCTIONS = 1500;
const DATA_AT = 0x1000;
const CODE_AT = 0x10000;
/** Pages of other code before the blob. */
const OTHER = 3;
const FLAG = 'interpreted_frames_native_stack\0';

/** Each function of V8's ends in padding, at a multiple of 64. */
const ENDS = Array.from({ length: FUNCTIONS }, (_, i) => 64 * (i * 2 + 1 + (i % 2)));

function dataOf(version: string): Buffer {
  const table = Buffer.alloc(FUNCTIONS * 8);
  for (const [i, end] of ENDS.entries()) {
    table.writeUInt32LE(end, i * 8);
    table.writeUInt32LE(i, i * 8 + 4);
  }
  // not at a multiple of eight
  return Buffer.concat([Buffer.from(`${FLAG}${version}\0`.padEnd(100, '\0')), table, Buffer.alloc(64, 0xff)]);
}

function codeOf({ padding = 0xcc } = {}): Buffer {
  const code = Buffer.alloc(OTHER * PAGE + ENDS.at(-1)! + PAGE, 0x90);
  for (const end of ENDS) code[OTHER * PAGE + end - 1] = padding;
  return code;
}

/** A file that says to be of so many bytes, as programs with V8 in them are. */
function fileOf(version: string, { size = 64 << 20, padding = 0xcc } = {}): ElfFile {
  const [data, code] = [dataOf(version), codeOf({ padding })];
  const bytes = buildElf({
    segments: [{ type: PT_LOAD, flags: PF_X | 4, offset: CODE_AT, filesz: code.length, vaddr: CODE_AT }],
    sections: [
      { name: '.rodata', addr: DATA_AT, bytes: data },
      { name: '.text', addr: CODE_AT, bytes: code },
    ],
  });
  const source = bufferSource(bytes);
  return parseElf({ size: Math.max(size, bytes.length), read: (at, length) => source.read(at, length) });
}

describe('V8 in a file that does not describe it', () => {
  it('is known where it is a build of Deno: what its objects look like, and where its functions are', () => {
    const found = findV8(fileOf('15.0.245.2-rusty'))!;
    expect(found.version).toEqual({ major: 15, minor: 0, text: '15.0.245' });
    expect(found.blob).toEqual({ start: CODE_AT + OTHER * PAGE, length: ENDS.at(-1) });
    const { types, bytecodes, deopt, kindBaseline } = layoutOf(found);
    expect(types).toMatchObject({ shared: 278, scopeInfo: 276, script: 166, bytecodeArray: 185, code: 186 });
    expect(types.fixedArrays.toSorted()).toEqual([193, 197, 199]);
    expect([bytecodes.data, deopt.shared, kindBaseline]).toEqual([64, 7, 11]);
  });

  it.each([
    ['of another embedder', '15.0.245.2', {}, /not described/],
    ['of a version never looked at', '13.1.201.2-rusty', {}, /13\.1\.201 of Deno: known are 14\.0/],
    ['whose functions are somewhere else', '15.0.245.2-rusty', { padding: 0x90 }, /were not found/],
  ])('is refused with a reason %s', (_, version, options, reason) => {
    const elf = fileOf(version, options);
    expect(() => findV8(elf)).toThrow(UnsupportedRuntime);
    expect(() => findV8(elf)).toThrow(reason);
  });

  it('is not looked for in small files', () => {
    expect(findV8(fileOf('15.0.245.2-rusty', { size: 1 << 20 }))).toBeUndefined();
  });
});
