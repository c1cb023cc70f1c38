import { deflateSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PF_X, PT_LOAD } from '../../../common/elf/elf.ts';
import { buildFrames, CIE_PROGRAM, type CieSpec, KERNEL_FRAME, type RecordSpec } from '../build-frames.ts';
import { CODE_AT, deltasOf, EH_FRAME_AT, elfWithFrames, ruleTextAt, textOf } from '../fixture.ts';
import { extractStackDeltas } from '../stack-deltas.ts';

const PLAIN = ['0x1000 rsp+8 same cfa-8', '0x1100 invalid'];
const FDE = { start: CODE_AT, size: 0x100 };
const rowsWith = (cie: CieSpec, kind: 'eh' | 'debug' = 'eh'): string[] =>
  textOf(deltasOf({ [kind]: [cie, FDE] }));

describe('CIEs', () => {
  it.each([1, 3, 4])('of version %i', (version) => {
    expect(rowsWith({ version })).toEqual(PLAIN);
    expect(rowsWith({ version }, 'debug')).toEqual(PLAIN);
  });

  it.each([
    ['none', { augmentation: '', encoding: 0 }],
    ['zR', { augmentation: 'zR' }],
    ['zPLR', { augmentation: 'zPLR', augmentationData: [0x9b, 1, 2, 3, 4, 0x1b, 0x1b] }],
    [
      'zPLR with a personality that is absolute and indirect',
      { augmentation: 'zPLR', augmentationData: [0x80, 1, 2, 3, 4, 5, 6, 7, 8, 0x1b, 0x1b] },
    ],
    [
      'zPR with an aligned personality',
      { augmentation: 'zPR', augmentationData: [0x50, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x1b] },
    ],
    ['zPR without a personality', { augmentation: 'zPR', augmentationData: [0xff, 0x1b] }],
    ['zRB', { augmentation: 'zRB' }],
    ['zRGS-like letters of arm64', { augmentation: 'zRBG' }],
    ['an unknown letter behind R', { augmentation: 'zRq', augmentationData: [0x1b, 9, 9] }],
    ['64-bit lengths', { is64: true }],
  ])('with augmentation %s', (_, cie) => expect(rowsWith(cie)).toEqual(PLAIN));

  it('of 64-bit DWARF in .debug_frame', () => expect(rowsWith({ is64: true }, 'debug')).toEqual(PLAIN));

  it.each([
    ['version', { version: 2 }],
    ['return address column', { ra: 7 }],
    ['augmentation without a size', { augmentation: 'foo' }],
    ['pointer encoding', { encoding: 0x4b }],
    ['indirect FDE pointers', { encoding: 0x9b }],
    ['no FDE pointers', { encoding: 0xff }],
    ['program', { program: [0x3f] }],
    ['size', { program: new Array(5000).fill(0) }],
  ])('that cannot be used cost their own functions only: %s', (_, cie) => {
    const deltas = deltasOf({ eh: [{}, { start: 0x1800, size: 16 }, cie, FDE, { ...FDE, start: 0x1200 }] });
    expect(textOf(deltas)).toEqual(['0x1800 rsp+8 same cfa-8', '0x1810 invalid']);
    expect(deltas.stats.ehFrame).toMatchObject({ badFdes: 2 });
    expect([...deltas.stats.ehFrame!.reasons.values()]).toEqual([2]);
  });

  it('that an FDE names are looked for anywhere in the section, and must be CIEs', () => {
    const records: RecordSpec[] = [
      {},
      FDE,
      { program: [0x0c, 7, 16, 0x90, 1] },
      { start: 0x1200, size: 1, cie: 0 },
    ];
    expect(ruleTextAt(deltasOf({ eh: records }), 0x1200)).toBe('rsp+8 same cfa-8');
    const bytes = buildFrames(EH_FRAME_AT, [{}, FDE]);
    for (const distance of [0, 1, 40, 0xffff]) {
      const cieSize = new DataView(bytes.buffer).getUint32(0, true) + 4;
      const broken = bytes.slice();
      new DataView(broken.buffer).setUint32(cieSize + 4, distance, true);
      const deltas = deltasOf({ eh: [{ raw: [...broken] }] });
      expect(deltas.addresses).toHaveLength(0);
    }
  });
});

describe('FDEs', () => {
  it.each([0x00, 0x01, 0x03, 0x04, 0x08, 0x09, 0x0b, 0x0c, 0x1b, 0x1c])('in encoding 0x%s', (encoding) => {
    expect(rowsWith({ encoding })).toEqual(PLAIN);
  });

  it('go on behind a zero length in the middle', () => {
    const deltas = deltasOf({ eh: [{}, FDE, 'zero', {}, { start: 0x1200, size: 1 }, 'zero'] });
    expect(ruleTextAt(deltas, 0x1200)).toBe('rsp+8 same cfa-8');
  });

  it('without a start or a size are passed over', () => {
    const deltas = deltasOf({ eh: [{}, { start: 0, size: 10 }, { start: CODE_AT, size: 0 }] });
    expect(textOf(deltas)).toEqual([]);
    expect(deltas.stats.ehFrame).toMatchObject({ badFdes: 0 });
  });

  it('that end behind their section are counted, and end the list', () => {
    const deltas = deltasOf({ eh: [{}, FDE, { raw: [0xff, 0xff, 0, 0, 1, 2, 3, 4] }] });
    expect(textOf(deltas)).toEqual(PLAIN);
    expect(deltas.stats.ehFrame).toMatchObject({ badFdes: 1 });
  });

  it('of signal trampolines hold from one byte before to one behind', () => {
    const deltas = deltasOf({
      eh: [KERNEL_FRAME, { start: 0x1001, size: 15 }, {}, { start: 0x1800, size: 1 }],
    });
    expect(textOf(deltas).slice(0, 2)).toEqual(['0x1000 signal', '0x1011 invalid']);
  });

  it('of signal trampolines leave the byte before to another function', () => {
    const deltas = deltasOf({
      eh: [{}, { start: 0x1000, size: 16 }, KERNEL_FRAME, { start: 0x1010, size: 16 }],
    });
    expect(textOf(deltas)).toEqual(['0x1000 rsp+8 same cfa-8', '0x1010 signal', '0x1021 invalid']);
  });

  it('of a signal trampoline may count from a CFA that is the stack pointer', () => {
    // def_cfa rsp 0; offset_extended ra at CFA + 168
    const program = [0x0c, 7, 0, 0x11, 16, 0x6b];
    const deltas = deltasOf({
      eh: [
        { augmentation: 'zRS', program },
        { start: 0x1001, size: 15 },
      ],
    });
    expect(textOf(deltas)[0]).toBe('0x1000 signal');
  });

  it('with the letter S and rules of their own keep these, and their callers were interrupted', () => {
    // def_cfa_expression: what the word above the stack pointer points to, plus 8
    const program = [0x41, 0x0f, 5, 0x77, 8, 0x06, 0x23, 8];
    const deltas = deltasOf({ eh: [{ augmentation: 'zRS' }, { start: 0x1001, size: 15, program }] });
    expect(textOf(deltas).slice(0, 2)).toEqual([
      '0x1000 rsp+8 same cfa-8 interrupted',
      '0x1002 *(rsp+8)+8 same cfa-8 interrupted',
    ]);
  });
});

describe('.debug_frame', () => {
  const debug: RecordSpec[] = [{ program: [0x0c, 7, 16, 0x90, 1] }, FDE, { start: 0x1200, size: 16 }];

  it('fills what .eh_frame leaves out', () => {
    expect(textOf(deltasOf({ eh: [{}, FDE], debug }))).toEqual([
      ...PLAIN,
      '0x1200 rsp+16 same cfa-8',
      '0x1210 invalid',
    ]);
  });

  it('may be compressed', () => {
    const bytes = buildFrames(0, debug, 'debug');
    const head = Buffer.alloc(24);
    head.writeUInt32LE(1, 0);
    head.writeUInt32LE(bytes.length, 8);
    const section = { name: '.debug_frame', flags: 0x800, bytes: Buffer.concat([head, deflateSync(bytes)]) };
    expect(ruleTextAt(deltasOf({ sections: [section] }), 0x1200)).toBe('rsp+16 same cfa-8');
    const broken = { ...section, bytes: section.bytes.subarray(0, 40) };
    expect(textOf(deltasOf({ eh: [{}, FDE], sections: [broken] }))).toEqual(PLAIN);
  });

  it('of Go has the saved frame pointer added', () => {
    const program = [0x41, 0x0e, 16, 0x41, 0x0e, 64];
    const sections = [{ name: '.gopclntab', bytes: Uint8Array.from([1]) }];
    const deltas = deltasOf({ debug: [{ program: CIE_PROGRAM }, { ...FDE, program }], sections });
    expect(textOf(deltas)).toEqual([
      '0x1000 rsp+8 same cfa-8',
      '0x1001 rsp+16 cfa-16 cfa-8',
      '0x1002 rsp+64 cfa-16 cfa-8',
      '0x1100 invalid',
    ]);
  });
});

describe('without section headers', () => {
  const frames = buildFrames(EH_FRAME_AT, [{}, FDE, { start: 0x1200, size: 16 }]);
  const lengthAt = (at: number): number => 4 + new DataView(frames.buffer).getUint32(at, true);
  const cieBytes = lengthAt(0);
  const fdeAt = (n: number): number => EH_FRAME_AT + cieBytes + n * lengthAt(cieBytes);
  const HEADER_AT = 0x6000;
  const header = (table: boolean, countEncoding = 3): Buffer => {
    const out = Buffer.alloc(table ? 28 : 8);
    out.set([1, 0x1b, table ? countEncoding : 0xff, table ? 0x3b : 0xff]);
    out.writeInt32LE(EH_FRAME_AT - (HEADER_AT + 4), 4);
    if (table) {
      out.writeUInt32LE(2, 8);
      for (const n of [0, 1]) out.writeInt32LE(fdeAt(n) - HEADER_AT, 16 + n * 8);
    }
    return out;
  };
  const textWith = (head: Uint8Array, behind: readonly number[]): string[] => {
    const eh = Uint8Array.from([...frames, ...behind]);
    const elf = elfWithFrames({
      sections: [
        { name: 'a', addr: EH_FRAME_AT, bytes: eh },
        { name: 'b', addr: HEADER_AT, bytes: head },
      ],
      elf: {
        sectionHeaders: false,
        segments: [
          { type: PT_LOAD, flags: PF_X, offset: CODE_AT, filesz: 0x2000 },
          { type: PT_LOAD, offset: EH_FRAME_AT, filesz: eh.length },
          { type: PT_LOAD, offset: HEADER_AT, filesz: head.length },
          { type: 0x6474e550, offset: HEADER_AT, filesz: head.length },
        ],
      },
    });
    expect(elf.sections).toEqual([]);
    return textOf(extractStackDeltas(elf));
  };
  const ALL = [...PLAIN, '0x1200 rsp+8 same cfa-8', '0x1210 invalid'];
  const another = [...buildFrames(EH_FRAME_AT + frames.length + 4, [{}, { start: 0x1400, size: 1 }])];

  it('the search table says where .eh_frame ends', () => {
    expect(textWith(header(true), [0, 0, 0, 0, ...another])).toEqual(ALL);
  });

  it('without a table it ends at a zero length', () => {
    expect(textWith(header(false), [0, 0, 0, 0, ...another])).toEqual(ALL);
    expect(textWith(header(true, 4), [0, 0, 0, 0, ...another])).toEqual(ALL);
  });

  it('a broken header is not a header', () => {
    for (const [at, value] of [
      [0, 9],
      [1, 0x5b],
      [7, 0x7f],
    ] as const) {
      const broken = header(true);
      broken[at] = value;
      expect(textWith(broken, [])).toEqual([]);
    }
  });
});

describe('hostile sections', () => {
  const good = buildFrames(EH_FRAME_AT, [
    {},
    { ...FDE, program: [0x41, 0x0e, 16] },
    { augmentation: 'zPLR', augmentationData: [0x9b, 1, 2, 3, 4, 0x1b, 0x1b] },
    { start: 0x1200, size: 0x80 },
  ]);
  const isOrdered = (addresses: Float64Array): boolean =>
    addresses.every((a, i) => i === 0 || a > addresses[i - 1]!);

  it('of random bytes end, without an error, with ordered rows', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 300 }),
        fc.constantFrom('eh', 'debug'),
        fc.boolean(),
        (bytes, kind, arm) => {
          const deltas = deltasOf({ [kind]: [{ raw: [...bytes] }], machine: arm ? 183 : 62 });
          expect(isOrdered(deltas.addresses)).toBe(true);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('that were good ones, with bytes changed, end without an error, with ordered rows', () => {
    const change = fc.tuple(fc.nat(good.length - 1), fc.nat(255));
    fc.assert(
      fc.property(fc.array(change, { maxLength: 8 }), (changes) => {
        const bytes = good.slice();
        for (const [at, value] of changes) bytes[at] = value;
        const deltas = deltasOf({ eh: [{ raw: [...bytes] }] });
        expect(isOrdered(deltas.addresses)).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });

  it('whose FDEs each name another CIE cost no more than their number', () => {
    // each FDE points at another byte of a CIE-like area of zeros: none is a CIE of a size that is accepted
    const fdes: number[] = [];
    for (let i = 0; i < 5000; i++)
      fdes.push(12, 0, 0, 0, ...[i & 0xff, i >> 8, 0, 0], 0, 0, 0, 0, 1, 0, 0, 0);
    const deltas = deltasOf({ eh: [{ raw: fdes }] });
    expect(deltas.stats.ehFrame!.badFdes + deltas.stats.ehFrame!.fdes).toBeLessThanOrEqual(5000);
    expect(deltas.stats.ehFrame!.badCies).toBeLessThanOrEqual(5000);
  });
});
