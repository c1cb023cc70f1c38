import { readFileSync } from 'node:fs';
import { deflateSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bufferSource, OutOfBounds } from '../base/byte-source.ts';
import { buildElf, type ElfSpec } from './build-elf.ts';
import { ElfError, type ElfFile, PF_X, PT_LOAD, PT_NOTE, parseElf } from './elf.ts';

const SHF_COMPRESSED = 0x800;
const SHT_NOTE = 7;

const parse = (spec: ElfSpec): ElfFile => parseElf(bufferSource(buildElf(spec)));
const bytesOf = (...values: number[]): Uint8Array => Uint8Array.from(values);

function note(owner: string, type: number, desc: Uint8Array): Buffer {
  const name = Buffer.from(`${owner}\0`);
  const head = Buffer.alloc(12);
  head.writeUInt32LE(name.length, 0);
  head.writeUInt32LE(desc.length, 4);
  head.writeUInt32LE(type, 8);
  const pad = (n: number): Buffer => Buffer.alloc(-n & 3);
  return Buffer.concat([head, name, pad(name.length), desc, pad(desc.length)]);
}

function compressed(method: number, size: number, content: Uint8Array): Uint8Array {
  const head = Buffer.alloc(24);
  head.writeUInt32LE(method, 0);
  head.writeBigUInt64LE(BigInt(size), 8);
  return Buffer.concat([head, content]);
}

describe('parseElf', () => {
  it.each([
    ['a short file', new Uint8Array(10), 'no ELF file: it has only 10 bytes'],
    ['text', Buffer.alloc(100, 'a'), 'no ELF file: it does not start with \\x7fELF'],
    ['32 bits', buildElf({ elfClass: 1 }), 'a 32-bit ELF file: only 64-bit ones are supported'],
    ['big endian', buildElf({ data: 2 }), 'a big-endian ELF file: only little-endian ones are supported'],
    [
      'RISC-V',
      buildElf({ machine: 243 }),
      'an ELF file for machine 243: only amd64 (62) and arm64 (183) are supported',
    ],
  ])('refuses %s with a sentence', (_, bytes, message) => {
    expect(() => parseElf(bufferSource(bytes))).toThrow(new ElfError(message));
  });

  it('refuses addresses that are not exact numbers', () => {
    const segment = { type: PT_LOAD, offset: 0, vaddr: 2 ** 60, filesz: 64 };
    expect(() => parse({ segments: [segment] })).toThrow(ElfError);
  });

  it('reads header, segments and sections', () => {
    const elf = parse({
      machine: 183,
      entry: 0x1234,
      segments: [
        { type: PT_LOAD, flags: 5, offset: 0x200, vaddr: 0x10200, filesz: 0x80, memsz: 0x100, align: 0x1000 },
      ],
      sections: [{ name: '.text', addr: 0x200, flags: 6, bytes: bytesOf(1, 2, 3) }],
    });
    expect([elf.machine, elf.entry, elf.type]).toEqual(['aarch64', 0x1234, 3]);
    expect(elf.segments).toEqual([
      { type: PT_LOAD, flags: 5, offset: 0x200, vaddr: 0x10200, filesz: 0x80, memsz: 0x100, align: 0x1000 },
    ]);
    expect(elf.section('.text')).toMatchObject({ addr: 0x200, size: 3, flags: 6 });
    expect(elf.sectionData(elf.section('.text')!)).toEqual(bytesOf(1, 2, 3));
    expect(elf.section('.data')).toBeUndefined();
  });

  it('goes on without section headers that are missing or lie outside the file', () => {
    const spec = { segments: [{ type: PT_LOAD, offset: 0, filesz: 64 }] };
    expect(parse({ ...spec, sectionHeaders: false }).sections).toEqual([]);
    const bytes = buildElf(spec);
    expect(parseElf(bufferSource(bytes.subarray(0, bytes.length - 1))).sections).toEqual([]);
  });

  it('does not copy a name without an end for every section', () => {
    const bytes = buildElf({ sections: [{ name: 'a'.repeat(100_000), bytes: bytesOf() }] });
    expect(parseElf(bufferSource(bytes)).sections[1]!.name).toHaveLength(4096);
  });

  it('translates between file offsets and addresses inside of what the file holds', () => {
    const elf = parse({
      segments: [{ type: PT_LOAD, flags: PF_X, offset: 0x100, vaddr: 0x5100, filesz: 0x40, memsz: 0x80 }],
    });
    expect([0xff, 0x100, 0x13f, 0x140].map((o) => elf.fileOffsetToAddress(o))).toEqual([
      undefined,
      0x5100,
      0x513f,
      undefined,
    ]);
    expect([0x50ff, 0x5100, 0x513f, 0x5140].map((a) => elf.addressToFileOffset(a))).toEqual([
      undefined,
      0x100,
      0x13f,
      undefined,
    ]);
  });
});

describe('section data', () => {
  const content = Buffer.from('unwind '.repeat(500));
  const dataOf = (bytes: Uint8Array, maxBytes?: number): Uint8Array => {
    const elf = parse({ sections: [{ name: '.debug_frame', flags: SHF_COMPRESSED, bytes }] });
    return elf.sectionData(elf.section('.debug_frame')!, maxBytes);
  };

  it('is decompressed', () => {
    expect(Buffer.from(dataOf(compressed(1, content.length, deflateSync(content))))).toEqual(content);
  });

  it('is decompressed from zstd', () => {
    // one frame with a raw block of 3 bytes: RFC 8878, section 3.1.1
    const frame = Buffer.from('28b52ffd200319000061626363'.slice(0, 24), 'hex');
    expect(Buffer.from(dataOf(compressed(2, 3, frame))).toString()).toBe('abc');
  });

  it.each([
    ['garbage for zstd', compressed(2, 10, Buffer.alloc(9, 7)), /cannot be decompressed/],
    ['an unknown method', compressed(9, 10, bytesOf()), /method 9/],
    ['garbage', compressed(1, 10, Buffer.alloc(9, 7)), /cannot be decompressed/],
    ['more than it says', compressed(1, 10, deflateSync(content)), /cannot be decompressed/],
    [
      'less than it says',
      compressed(1, 5000, deflateSync(content)),
      /has 3500 bytes when decompressed, not 5000/,
    ],
    [
      'more than deflate can make of it',
      compressed(1, 2 ** 29, deflateSync(content)),
      /cannot have 536870912 bytes/,
    ],
    ['too much', compressed(1, 2 ** 40, deflateSync(content)), /has 1099511627776 bytes/],
  ])('refuses %s', (_, bytes, message) => {
    expect(() => dataOf(bytes)).toThrow(ElfError);
    expect(() => dataOf(bytes)).toThrow(message);
  });

  it('has the cap that the caller sets', () => {
    const bytes = compressed(1, content.length, deflateSync(content));
    expect(() => dataOf(bytes, content.length - 1)).toThrow(ElfError);
    expect(dataOf(bytes, content.length)).toHaveLength(content.length);
  });

  it('outside the file is out of bounds', () => {
    const elf = parse({ sections: [{ name: '.x', bytes: bytesOf(1) }] });
    expect(() => elf.sectionData({ ...elf.section('.x')!, offset: 1e6 })).toThrow(OutOfBounds);
  });
});

describe('build IDs', () => {
  const id = bytesOf(0xde, 0xad, 0xbe, 0xef, 1);
  const notes = Buffer.concat([
    note('GNU', 1, bytesOf(0)),
    note('GNU', 3, id),
    note('Go\0', 4, Buffer.from('a/b/c')),
  ]);

  it('are read from sections', () => {
    const elf = parse({ sections: [{ name: '.note', type: SHT_NOTE, bytes: notes }] });
    expect([elf.gnuBuildId, elf.goBuildId]).toEqual(['deadbeef01', 'a/b/c']);
  });

  it('are read from segments where the section headers are stripped', () => {
    const elf = parse({
      sectionHeaders: false,
      segments: [{ type: PT_NOTE, offset: 0x200, filesz: notes.length }],
      sections: [{ name: '.note', offset: 0x200, bytes: notes }],
    });
    expect([elf.gnuBuildId, elf.goBuildId]).toEqual(['deadbeef01', 'a/b/c']);
  });

  it('are empty where there are none', () => {
    expect([parse({}).gnuBuildId, parse({}).goBuildId]).toEqual(['', '']);
  });

  it('of notes with impossible sizes are not read', () => {
    for (const at of [0, 4]) {
      const broken = Buffer.from(note('GNU', 3, id));
      broken.writeUInt32LE(0xffff_fffe, at);
      const elf = parse({ sections: [{ name: '.note', type: SHT_NOTE, bytes: broken }] });
      expect(elf.gnuBuildId).toBe('');
    }
  });
});

/** All of a file's parts; throws what they throw. */
function touchAll(bytes: Uint8Array): void {
  const elf = parseElf(bufferSource(bytes));
  expect([elf.gnuBuildId, elf.goBuildId].every((id) => typeof id === 'string')).toBe(true);
  for (const section of elf.sections.slice(0, 100)) {
    try {
      elf.sectionData(section, 1 << 20);
    } catch (error) {
      if (!(error instanceof ElfError || error instanceof OutOfBounds)) throw error;
    }
  }
}

describe('hostile files', () => {
  const onlyElfErrors = (bytes: Uint8Array): void => {
    try {
      touchAll(bytes);
    } catch (error) {
      expect(error).toBeInstanceOf(ElfError);
    }
  };
  const real = readFileSync('/bin/true');

  it('of random bytes behind a good start give typed errors only', () => {
    const start = buildElf({}).subarray(0, 24);
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 40, maxLength: 400 }), (rest) => {
        onlyElfErrors(Buffer.concat([start, rest]));
      }),
    );
  });

  it('that were real ones, with bytes changed, give typed errors only', () => {
    const change = fc.tuple(
      fc.oneof(
        fc.nat(1023),
        fc.nat(real.length - 1),
        fc.integer({ min: real.length - 2048, max: real.length - 1 }),
      ),
      fc.nat(255),
    );
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 12 }), fc.nat(real.length), (changes, size) => {
        const bytes = Buffer.from(real);
        for (const [at, value] of changes) bytes[at] = value;
        onlyElfErrors(bytes);
        onlyElfErrors(bytes.subarray(0, size));
      }),
      { numRuns: 300 },
    );
  });
});
