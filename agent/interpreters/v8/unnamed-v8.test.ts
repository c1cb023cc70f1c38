import { describe, expect, it } from 'vitest';
import { bufferSource } from '../../../common/base/byte-source.ts';
import { buildElf } from '../../../common/elf/build-elf.ts';
import { PF_X, PT_LOAD, parseElf } from '../../../common/elf/elf.ts';
import { UnsupportedRuntime } from '../contract.ts';
import { detectV8 } from './detect-v8.ts';
import { layoutOf } from './layout.ts';

const PAGE = 4096;
const FUNCTIONS = 1500;
const DATA_AT = 0x1000;
const CODE_AT = 0x10000;
/** Pages of other code before the blob. */
const OTHER = 3;
/** The flag is in the first megabyte, the version in the second. */
const BETWEEN = 2 ** 20 - 44;
const FLAG = 'interpreted_frames_native_stack\0';

/** Each function of V8's ends in padding, at a multiple of 64. */
const ENDS = Array.from({ length: FUNCTIONS }, (_, i) => 64 * (i * 2 + 1 + (i % 2)));

/** `before` and `behind`: bytes of other constants. */
function dataOf(version: string, { before = 0, behind = 64 }): Buffer {
  const table = Buffer.alloc(FUNCTIONS * 8);
  for (const [i, end] of ENDS.entries()) {
    table.writeUInt32LE(end, i * 8);
    table.writeUInt32LE(i, i * 8 + 4);
  }
  // not at a multiple of eight
  const marks = Buffer.from(`${FLAG}${version}\0`.padEnd(100, '\0'));
  return Buffer.concat([Buffer.alloc(before), marks, table, Buffer.alloc(behind, 0xff)]);
}

function codeOf({ padding = 0xcc } = {}): Buffer {
  const code = Buffer.alloc(OTHER * PAGE + ENDS.at(-1)! + PAGE, 0x90);
  for (const end of ENDS) code[OTHER * PAGE + end - 1] = padding;
  return code;
}

interface FileOptions {
  size?: number;
  padding?: number;
  before?: number;
  behind?: number;
}

/** A file that says to be of so many bytes, as programs with V8 in them are. */
function fileOf(version: string, { size = 64 << 20, padding = 0xcc, ...others } = {} as FileOptions) {
  const [data, code] = [dataOf(version, others), codeOf({ padding })];
  const bytes = buildElf({
    segments: [{ type: PT_LOAD, flags: PF_X | 4, offset: CODE_AT, filesz: code.length, vaddr: CODE_AT }],
    sections: [
      { name: '.rodata', addr: DATA_AT, bytes: data },
      { name: '.text', addr: CODE_AT, bytes: code },
    ],
  });
  const source = bufferSource(bytes);
  const reads: number[] = [];
  const read = (at: number, length: number): Uint8Array => {
    reads.push(length);
    return source.read(at, length);
  };
  return { elf: parseElf({ size: Math.max(size, bytes.length), read }), reads };
}

describe('V8 in a file that does not describe it', () => {
  it('is known where it is a build of Deno: what its objects look like, and where its functions are', () => {
    const found = detectV8(fileOf('15.0.245.2-rusty').elf)!;
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
    const { elf } = fileOf(version, options);
    expect(() => detectV8(elf)).toThrow(UnsupportedRuntime);
    expect(() => detectV8(elf)).toThrow(reason);
  });

  it('is looked for in a megabyte at a time, also where its marks are in two of them', () => {
    for (const before of [2 ** 20 - 20, 3 * 2 ** 20, BETWEEN]) {
      const { elf, reads } = fileOf('15.0.245.2', { before });
      expect(() => detectV8(elf)).toThrow(/not described/);
      expect(Math.max(...reads)).toBeLessThanOrEqual(1 << 20);
    }
    expect(detectV8(fileOf('15.0.245.2-rusty', { before: BETWEEN }).elf)?.version.major).toBe(15);
  });

  it('is not looked for any further once it is found', () => {
    const { elf, reads } = fileOf('13.1.201.2-rusty', { behind: 8 << 20 });
    expect(() => detectV8(elf)).toThrow(/known are/);
    expect(reads.reduce((sum, length) => sum + length, 0)).toBeLessThan(2 << 20);
  });

  it('is not looked for in small files', () => {
    expect(detectV8(fileOf('15.0.245.2-rusty', { size: 1 << 20 }).elf)).toBeUndefined();
  });
});
