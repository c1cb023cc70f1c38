import { describe, expect, it } from 'vitest';
import { bufferSource } from '../base/byte-source.ts';
import { buildElf } from './build-elf.ts';
import { bytesAt, codeAt, codeSegmentAt, textBiasAt } from './bytes-at.ts';
import { type ElfFile, PF_W, PF_X, PT_LOAD, parseElf } from './elf.ts';

const CODE = { type: PT_LOAD, flags: PF_X, offset: 0x100, vaddr: 0x5100, filesz: 0x40, memsz: 0x80 };
const DATA = { type: PT_LOAD, flags: PF_W, offset: 0x140, vaddr: 0x9140, filesz: 0x40 };

/** Its bytes count up from 0; it is cut `missing` bytes before the end of its data. */
function elfOf(missing = 0): ElfFile {
  const bytes = Buffer.concat([
    buildElf({ segments: [CODE, DATA], sectionHeaders: false }),
    Buffer.alloc(0x180),
  ]);
  for (let at = 0x100; at < 0x180; at++) bytes[at] = at - 0x100;
  return parseElf(bufferSource(bytes.subarray(0, 0x180 - missing)));
}

describe('code at an address', () => {
  it('is that of executable segments, as far as the file backs them', () => {
    const elf = elfOf();
    expect([0x50ff, 0x5100, 0x513f, 0x5140, 0x9140].map((a) => codeSegmentAt(elf, a)?.vaddr)).toEqual([
      undefined,
      0x5100,
      0x5100,
      undefined,
      undefined,
    ]);
    expect([textBiasAt(elf, 0x5100), textBiasAt(elf, 0x9140)]).toEqual([0x5000, undefined]);
  });

  it('is as much as a file holds that was cut, and none where none is or a size is nonsense', () => {
    expect([...codeAt(elfOf(0x7d), 0x5101, 16)]).toEqual([1, 2]);
    expect(codeAt(elfOf(), 0x7000, 16)).toHaveLength(0);
    expect(codeAt(elfOf(), 0x5100, -1)).toHaveLength(0);
  });
});

describe('bytes at an address', () => {
  it('are all or nothing', () => {
    expect([...bytesAt(elfOf(), 0x9140, 2)!]).toEqual([0x40, 0x41]);
    expect(bytesAt(elfOf(1), 0x917f, 1)).toBeUndefined();
    expect(bytesAt(elfOf(), 0x7000, 1)).toBeUndefined();
  });
});
