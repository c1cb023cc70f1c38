import { describe, expect, it } from 'vitest';
import { buildElf } from '../../common/elf/build-elf.ts';
import { PF_X, PT_LOAD } from '../../common/elf/elf.ts';
import type { ReadAt } from '../processes/foreign-files.ts';
import { parseMappings } from '../processes/process-maps.ts';
import { findImage, isSameCode, offsetInFile } from './moved-text.ts';

const MAPS = `555555554000-555555555000 r--p 00000000 08:01 17 /bin/p
555555555000-555555557000 r-xp 00000000 00:00 0
555555557000-555555558000 r-xp 00003000 08:01 17 /bin/p
555555558000-555555559000 rw-p 00004000 08:01 17 /bin/p
555555559000-55555557a000 rw-p 00000000 00:00 0          [heap]
7ffff7fc0000-7ffff7fc1000 r-xp 00000000 00:00 0
7ffff7fc1000-7ffff7fc2000 r--p 00000000 08:01 18 /lib/a b (deleted)
`;
const mappings = parseMappings(MAPS);

const HEADER = buildElf({
  segments: [
    { type: PT_LOAD, flags: 4, offset: 0, filesz: 0x800 },
    { type: PT_LOAD, flags: PF_X | 4, offset: 0x1000, vaddr: 0x1000, filesz: 0x2800 },
  ],
});

describe('code that a process has moved', () => {
  it('lies between mappings of one file', () => {
    expect(findImage(mappings, 1)).toMatchObject({ path: '/bin/p', start: 0x555555554000 });
    // beside the heap, and before a library
    expect(findImage(mappings, 4)).toBeUndefined();
    expect(findImage(mappings, 5)).toBeUndefined();
  });

  it('may lie in memory that other processes share', () => {
    for (const name of ['/memfd:text', '/dev/zero', '/anon_hugepage', '/SYSV00000000']) {
      const moved = MAPS.replace('00:00 0\n', `00:01 2051 ${name} (deleted)\n`);
      expect(findImage(parseMappings(moved), 1)).toMatchObject({ path: '/bin/p' });
    }
  });

  it('is where the program headers put it', () => {
    expect(offsetInFile(HEADER, mappings[0]!, 0x555555555000)).toBe(0x1000);
    expect(offsetInFile(HEADER, mappings[0]!, 0x555555557000)).toBe(0x3000);
    expect(offsetInFile(HEADER, mappings[0]!, 0x555555559000)).toBeUndefined();
    expect(offsetInFile(Buffer.from('#!/bin/sh'), mappings[0]!, 0x555555555000)).toBeUndefined();
  });

  it('has to be the same', async () => {
    const file = Buffer.alloc(0x3000, 7);
    const memory = Buffer.alloc(0x2000, 7);
    const readAt =
      (from: Buffer, base: number): ReadAt =>
      async (position, bytes) =>
        from.copy(bytes, 0, position - base, position - base + bytes.length);
    const readers = { memory: readAt(memory, 0x1000), file: readAt(file, 0), offset: 0x800 };
    const range = { start: 0x1000, end: 0x3000 };
    expect(await isSameCode(range, 0x2000, readers)).toBe(true);
    memory[0x1801] = 1;
    expect(await isSameCode(range, 0x2000, readers)).toBe(false);
    expect(await isSameCode(range, 0x2000, { ...readers, memory: async () => 0 })).toBe(false);
  });
});
