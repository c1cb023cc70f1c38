import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CalleeSaved } from '../../records/records.gen.ts';
import { ByteWriter } from '../build-frames.ts';
import { CODE_AT, deltasOf, rowsOf, ruleTextAt } from '../fixture.ts';

const op = (): ByteWriter => new ByteWriter();
const END = '0x1100 invalid';
const FP = 6;
const SP = 7;
const RA = 16;

/** What each instruction makes of `rsp+8 same cfa-8`, from 0x1001 on. */
const effectOf = (...bytes: number[]): string | undefined => {
  const rows = rowsOf([0x41, ...bytes]);
  // it joins what lies behind the function
  if (rows[1] === '0x1001 invalid') return 'invalid';
  expect(rows.at(-1)).toBe(END);
  return rows.length === 3 ? rows[1]!.replace('0x1001 ', '') : undefined;
};

describe('call frame instructions', () => {
  it.each([
    ['def_cfa', [0x0c, 6, 16], 'rbp+16 same cfa-8'],
    ['def_cfa_sf', [0x12, 7, 0x7e], 'rsp+16 same cfa-8'],
    ['def_cfa_register', [0x0d, 10], 'r10+8 same cfa-8'],
    ['def_cfa_offset', [0x0e, 0x80, 1], 'rsp+128 same cfa-8'],
    ['def_cfa_offset_sf', [0x13, 0x7d], 'rsp+24 same cfa-8'],
    ['offset', [0x80 | FP, 2], 'rsp+8 cfa-16 cfa-8'],
    ['offset_extended', [0x05, FP, 3], 'rsp+8 cfa-24 cfa-8'],
    ['offset_extended_sf', [0x11, FP, 0x7e], 'rsp+8 cfa+16 cfa-8'],
    ['GNU_negative_offset_extended', [0x2f, FP, 2], 'rsp+8 cfa+16 cfa-8'],
    ['undefined fp', [0x07, FP], 'rsp+8 undefined cfa-8'],
    ['undefined ra', [0x07, RA], 'stop'],
    ['register ra', [0x09, RA, 5], 'rsp+8 same rdi'],
    ['register ra beyond the general ones', [0x09, RA, 17], 'invalid'],
    ['register fp', [0x09, FP, 10], 'rsp+8 undefined cfa-8'],
    ['val_offset fp', [0x14, FP, 2], 'rsp+8 undefined cfa-8'],
    ['val_expression fp', [0x16, FP, 2, 0x77, 8], 'rsp+8 undefined cfa-8'],
    ['expression fp from fp', [0x10, FP, 2, 0x76, 0x70], 'rsp+8 *(rbp-16) cfa-8'],
    ['expression fp from sp', [0x10, FP, 2, 0x77, 0x10], 'rsp+8 *(rsp+16) cfa-8'],
    ['expression fp from elsewhere', [0x10, FP, 2, 0x78, 0x10], 'rsp+8 undefined cfa-8'],
    ['expression fp, loaded', [0x10, FP, 3, 0x76, 0x70, 0x06], 'rsp+8 undefined cfa-8'],
    ['expression ra from sp', [0x10, RA, 2, 0x77, 0x10], 'rsp+8 same *(rsp+16)'],
    ['val_expression ra, loaded', [0x16, RA, 3, 0x77, 0x10, 0x06], 'rsp+8 same *(rsp+16)'],
    ['val_expression fp, loaded', [0x16, FP, 3, 0x76, 0x70, 0x06], 'rsp+8 *(rbp-16) cfa-8'],
    ['val_expression ra, loaded and moved', [0x16, RA, 5, 0x77, 0x10, 0x06, 0x23, 4], 'invalid'],
    ['val_expression ra, loaded twice', [0x16, RA, 4, 0x77, 0x10, 0x06, 0x06], 'invalid'],
    ['expression ra from elsewhere', [0x10, RA, 2, 0x78, 0x10], 'invalid'],
    ['expression sp', [0x10, SP, 2, 0x77, 0x10], 'invalid'],
    ['offset sp', [0x80 | SP, 2], 'invalid'],
    ['register sp', [0x09, SP, 8], 'invalid'],
    ['val_offset sp, 8', [0x14, SP, 1], 'invalid'],
    ['CFA from a register beyond the general ones', [0x0c, 17, 8], 'invalid'],
    ['CFA offset too large', [0x0e, 0x80, 0x80, 0x80, 0x80, 0x10], 'invalid'],
    ['fp offset too large', [0x05, FP, 0x80, 0x80, 1], 'rsp+8 undefined cfa-8'],
  ])('%s', (_, bytes, text) => expect(effectOf(...bytes)).toBe(text));

  it.each([
    ['nop', [0]],
    ['GNU_args_size', [0x2e, 0x80, 1]],
    ['GNU_window_save', [0x2d]],
    ['same_value fp', [0x08, FP]],
    ['val_offset sp, 0', [0x14, SP, 0]],
    ['another register', [0x83, 4, 0x09, 3, 12, 0x10, 12, 2, 0x77, 8]],
    ['remember and restore', [0x0a, 0x0e, 32, 0x0b]],
    ['set and restore', [0x80 | FP, 2, 0xc0 | FP, 0x05, FP, 2, 0x06, FP]],
  ])('%s changes nothing', (_, bytes) => expect(effectOf(...bytes)).toBeUndefined());

  it('advance by every width, scaled by the code alignment', () => {
    const step = [
      0x0e, 16, 0x41, 0x0e, 24, 0x02, 2, 0x0e, 32, 0x03, 3, 0, 0x0e, 40, 0x04, 4, 0, 0, 0, 0x0e, 48,
    ];
    expect(rowsOf(step, { codeAlign: 4 })).toEqual([
      '0x1000 rsp+16 same cfa-8',
      '0x1004 rsp+24 same cfa-8',
      '0x100c rsp+32 same cfa-8',
      '0x1018 rsp+40 same cfa-8',
      '0x1028 rsp+48 same cfa-8',
      END,
    ]);
    const far = op().u8(0x1d).uint(16, 8).u8(0x0e, 16).bytes;
    expect(rowsOf(far)[1]).toBe('0x1010 rsp+16 same cfa-8');
  });

  it('count the pair that the PLT has pushed, which glibc leaves out where arm64 looks functions up', () => {
    const entry = { ra: 30, program: [0x0c, 31, 0] };
    // offset_extended_sf x30: CFA + 8; behind an instruction that makes room
    const program = [0x11, 30, 0x7f, 0x44, 0x0e, 0xd0, 1];
    expect(rowsOf(program, entry, 183)).toEqual(['0x1000 sp+16 same cfa-8', '0x1004 sp+224 same cfa-8', END]);
    // the caller's x29 is there, too: libffi's, as it says
    expect(rowsOf([0x11, 29, 0, ...program.slice(0, 3)], entry, 183)).toEqual([
      '0x1000 sp+0 cfa+0 cfa+8',
      END,
    ]);
  });

  it('set_loc is an address in the encoding of the FDE', () => {
    const program = op()
      .u8(0x01)
      .uint(CODE_AT + 0x20, 8)
      .u8(0x0e, 16).bytes;
    expect(rowsOf(program, { encoding: 0 })).toEqual([
      '0x1000 rsp+8 same cfa-8',
      '0x1020 rsp+16 same cfa-8',
      END,
    ]);
  });

  it('a row behind the end of the function is left out', () => {
    expect(rowsOf([0x03, 0, 2, 0x0e, 16])).toEqual(['0x1000 rsp+8 same cfa-8', END]);
  });

  it.each([
    ['plus_uconst', [0x77, 0x10, 0x06, 0x23, 8], '*(rsp+16)+8 same cfa-8'],
    ['lit; plus', [0x76, 0x78, 0x06, 0x38, 0x22], '*(rbp-8)+8 same cfa-8'],
    ['deref', [0x76, 0x78, 0x06], '*(rbp-8) same cfa-8'],
    ['a register', [0x76, 16], 'rbp+16 same cfa-8'],
    [
      'the PLT, lazy',
      [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22],
      'rsp+8+((rip&15)>=11?8:0) same cfa-8',
    ],
    [
      'the PLT with IBT',
      [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x39, 0x2a, 0x33, 0x24, 0x22],
      'rsp+8+((rip&15)>=9?8:0) same cfa-8',
    ],
    ['an array', [0x77, 8, 0x79, 0, 0x38, 0x1e, 0x22, 0x06, 0x23, 8], 'invalid'],
    ['nothing', [], 'invalid'],
    ['half an operand', [0x77], 'invalid'],
    ['half of the PLT', [0x77, 8, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80], 'invalid'],
  ])('CFA by expression: %s', (_, block, text) => {
    expect(effectOf(0x0f, block.length, ...block)).toBe(text);
  });

  it('def_cfa_register behind an expression returns to the last plain offset', () => {
    const program = [0x0e, 56, 0x41, 0x0f, 2, 0x76, 4, 0x41, 0x0d, SP, 0x41, 0x0e, 48];
    expect(rowsOf(program)).toEqual([
      '0x1000 rsp+56 same cfa-8',
      '0x1001 rbp+4 same cfa-8',
      '0x1002 rsp+56 same cfa-8',
      '0x1003 rsp+48 same cfa-8',
      END,
    ]);
  });

  it('remembers 64 states and no more', () => {
    const nested = (n: number): number[] => [
      ...Array<number>(n).fill(0x0a),
      0x0e,
      99,
      ...Array<number>(n).fill(0x0b),
    ];
    expect(rowsOf(nested(64))).toEqual(['0x1000 rsp+8 same cfa-8', END]);
    expect(rowsOf(nested(65))).toEqual([]);
  });

  it.each([
    ['an unknown instruction', [0x3e]],
    ['restore_state without a remembered one', [0x0b]],
    // without padding behind it
    ['half an operand', [0, 0x0e, 0x80]],
    ['a block that is too long', [0x0f, 0x7f, 0x77]],
    ['set_loc backwards', op().u8(0x42, 0x01).uint(-0x4000, 4).bytes],
  ])('%s costs the function', (_, program) => {
    const deltas = deltasOf({
      eh: [{}, { start: 0x1000, size: 0x100, program }, { start: 0x1200, size: 1 }],
    });
    expect(deltas.stats.ehFrame).toMatchObject({ badFdes: 1, fdes: 2 });
    expect([ruleTextAt(deltas, 0x1000), ruleTextAt(deltas, 0x1200)]).toEqual(['invalid', 'rsp+8 same cfa-8']);
  });

  it('counts what it cannot express', () => {
    const program = [
      0x0c,
      17,
      8,
      0x41,
      0x0c,
      7,
      8,
      0x80 | SP,
      1,
      0x41,
      0x08,
      SP,
      0x0f,
      0,
      0x41,
      0x0c,
      7,
      8,
      0x09,
      FP,
      3,
      0x41,
      0x08,
      RA,
    ];
    const deltas = deltasOf({ eh: [{}, { start: 0x1000, size: 0x100, program }] });
    expect(deltas.stats.unsupportedCfi).toEqual({
      cfaRegister: 1,
      stackPointer: 1,
      cfaExpression: 1,
      fp: 1,
      returnAddress: 1,
      offsetRange: 0,
    });
  });
});

describe('arm64', () => {
  const cie = { ra: 30, program: [0x0c, 31, 0], codeAlign: 4 };
  it('has its return address in the link register until it is saved', () => {
    // stp x29, x30, [sp, #-32]!; mov x29, sp; autiasp
    const program = [
      0x2d, 0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x41, 0x0d, 29, 0x41, 0x0c, 31, 0, 0xdd, 0xde, 0x2d,
    ];
    expect(rowsOf(program, cie, 183)).toEqual([
      '0x1000 sp+0 same x30',
      '0x1004 sp+32 cfa-32 cfa-24',
      '0x1008 x29+32 cfa-32 cfa-24',
      '0x100c sp+0 same x30',
      END,
    ]);
  });

  // breg31 0; bregx 46 (VG) 0; lit8; mul; plus_uconst 176; plus: as gcc says it
  const vectors = [0x8f, 0, 0x92, 46, 0, 0x38, 0x1e, 0x23, 0xb0, 1, 0x22];
  it.each([
    ['as gcc says it', vectors, 'sp+176+8*vg'],
    ['with a larger factor', [0x8f, 16, 0x92, 46, 0, 0x08, 0x90, 0x1e, 0x22], 'sp+16+144*vg'],
    ['as clang says it', [0x8f, 0, 0x11, 16, 0x22, 0x11, 0x78, 0x92, 46, 0, 0x1e, 0x22], 'sp+16-8*vg'],
    ['shifted', [0x8d, 32, 0x92, 46, 0, 0x33, 0x24, 0x22], 'x29+32+8*vg'],
    ['taken away', [0x8d, 32, 0x92, 46, 0, 0x33, 0x24, 0x1c], 'x29+32-8*vg'],
    ['the register last', [0x92, 46, 2, 0x34, 0x1e, 0x8d, 0, 0x22], 'x29+8+4*vg'],
    ['loaded', [0x8f, 0, 0x92, 46, 0, 0x22, 0x06], undefined],
    ['without a register', [0x92, 46, 0, 0x38, 0x1e], undefined],
    ['two registers', [0x8f, 0, 0x8d, 0, 0x22], undefined],
    ['a register twice', [0x8f, 0, 0x32, 0x1e], undefined],
    ['two values', [0x8f, 0, 0x92, 46, 0], undefined],
    ['too little', [0x8f, 0, 0x22], undefined],
    ['too many values', [...Array(9).fill(0x30), ...Array(9).fill(0x22)], undefined],
    ['too large', [0x8f, 0, 0x92, 46, 0, 0x0e, 0, 0, 0, 0, 1, 0, 0, 0, 0x1e, 0x22], undefined],
  ])('counts a CFA in vector lengths: %s', (_, block, cfa) => {
    const rows = rowsOf([0x41, 0x0f, block.length, ...block, 0x9e, 1], cie, 183);
    expect(rows[1]).toBe(cfa === undefined ? '0x1004 invalid' : `0x1004 ${cfa} same cfa-8`);
  });

  it('finds fp and return address above the stack pointer, below vectors', () => {
    const saved = [0x10, 29, 2, 0x8f, 0, 0x10, 30, 2, 0x8f, 8];
    expect(rowsOf([0x41, 0x0f, vectors.length, ...vectors, 0x41, ...saved], cie, 183)).toEqual([
      '0x1000 sp+0 same x30',
      '0x1004 sp+176+8*vg same x30',
      '0x1008 sp+176+8*vg *(sp+0) *(sp+8)',
      END,
    ]);
  });

  it('has it in another register where the CIE says so, also where an instruction goes back to that', () => {
    // mov x15, x30 before; str x15, [sp, #-16]!; ldr x15, [sp], #16
    const program = [0x41, 0x0e, 16, 0x8f, 2, 0x41, 0x0e, 0, 0xcf];
    expect(rowsOf(program, { ...cie, ra: 15 }, 183)).toEqual([
      '0x1000 sp+0 same x15',
      '0x1004 sp+16 same cfa-16',
      '0x1008 sp+0 same x15',
      END,
    ]);
  });
});

/** The model: a function's state is a plain value; an instruction makes the next one. */
interface State {
  cfa: [string, number];
  fp: string;
  ra: string;
}
interface Op {
  bytes: number[];
  /** Bytes of code to move on by. */
  advance?: number;
  stack?: 'push' | 'pop';
  apply?: (s: State, initial: State) => State;
}

const NAMES = [
  'rax',
  'rdx',
  'rcx',
  'rbx',
  'rsi',
  'rdi',
  'rbp',
  'rsp',
  'r8',
  'r9',
  'r10',
  'r11',
  'r12',
  'r13',
  'r14',
  'r15',
];
const signed = (n: number): string => (n < 0 ? `${n}` : `+${n}`);
const offset = fc.integer({ min: -200, max: 200 });
const positive = fc.nat(5000);
const register = fc.nat(15);
const opArbitrary = fc.oneof(
  fc.integer({ min: 1, max: 63 }).map((n) => ({ bytes: [0x40 | n], advance: n })),
  fc.nat(255).map((n) => ({ bytes: [0x02, n], advance: n })),
  fc.nat(300).map((n) => ({ bytes: op().u8(0x03).uint(n, 2).bytes, advance: n })),
  fc.nat(300).map((n) => ({ bytes: op().u8(0x04).uint(n, 4).bytes, advance: n })),
  fc.tuple(register, positive).map(([r, o]) => ({
    bytes: op().u8(0x0c).uleb(r).uleb(o).bytes,
    apply: (s: State) => ({ ...s, cfa: [NAMES[r]!, o] as [string, number] }),
  })),
  fc.tuple(register, offset).map(([r, o]) => ({
    bytes: op().u8(0x12).uleb(r).sleb(o).bytes,
    apply: (s: State) => ({ ...s, cfa: [NAMES[r]!, o * -8] as [string, number] }),
  })),
  register.map((r) => ({
    bytes: [0x0d, r],
    apply: (s: State) => ({ ...s, cfa: [NAMES[r]!, s.cfa[1]] as [string, number] }),
  })),
  positive.map((o) => ({
    bytes: op().u8(0x0e).uleb(o).bytes,
    apply: (s: State) => ({ ...s, cfa: [s.cfa[0], o] as [string, number] }),
  })),
  fc.nat(100).map((o) => ({
    bytes: op().u8(0x86).uleb(o).bytes,
    apply: (s: State) => ({ ...s, fp: `cfa${signed(o * -8)}` }),
  })),
  offset.map((o) => ({
    bytes: op().u8(0x11, FP).sleb(o).bytes,
    apply: (s: State) => ({ ...s, fp: `cfa${signed(o * -8)}` }),
  })),
  fc.constant({ bytes: [0xc6], apply: (s: State, i: State) => ({ ...s, fp: i.fp }) }),
  fc.constant({ bytes: [0x07, FP], apply: (s: State) => ({ ...s, fp: 'undefined' }) }),
  fc.constant({ bytes: [0x08, FP], apply: (s: State) => ({ ...s, fp: 'same' }) }),
  fc.constant({ bytes: [0x07, RA], apply: (s: State) => ({ ...s, ra: 'undefined' }) }),
  register.map((r) => ({ bytes: [0x09, RA, r], apply: (s: State) => ({ ...s, ra: NAMES[r]! }) })),
  fc.constant({ bytes: [0xc0 | 16], apply: (s: State, i: State) => ({ ...s, ra: i.ra }) }),
  fc.constant({ bytes: [0x0a], stack: 'push' as const }),
  fc.constant({ bytes: [0x0b], stack: 'pop' as const }),
  fc
    .tuple(fc.integer({ min: 8, max: 12 }), positive)
    .map(([r, o]) => ({ bytes: op().u8(0x05).uleb(r).uleb(o).bytes })),
);

const textOfState = (s: State): string =>
  s.ra === 'undefined' ? 'stop' : `${s.cfa[0]}${signed(s.cfa[1])} ${s.fp} ${s.ra}`;

/** Rows by the model, of a program whose states are balanced; (address, text). */
function interpret(ops: readonly Op[]): { bytes: number[]; rows: [number, string][] } {
  const initial: State = { cfa: ['rsp', 8], fp: 'same', ra: 'cfa-8' };
  const rows: [number, string][] = [];
  const remembered: State[] = [];
  const bytes: number[] = [];
  let state = initial;
  let at = 0;
  for (const each of ops) {
    if (each.stack === 'pop' && remembered.length === 0) continue;
    bytes.push(...each.bytes);
    if (each.advance !== undefined) rows.push([at, textOfState(state)]);
    at += each.advance ?? 0;
    if (each.stack === 'push') remembered.push(state);
    if (each.stack === 'pop') state = remembered.pop()!;
    state = each.apply?.(state, initial) ?? state;
  }
  rows.push([at, textOfState(state)]);
  return { bytes, rows };
}

describe('random programs', () => {
  it('have the rows that a plain model of DWARF gives them', () => {
    fc.assert(
      fc.property(
        fc.array(opArbitrary as fc.Arbitrary<Op>, { maxLength: 40 }),
        fc.integer({ min: 1, max: 0x1000 }),
        (ops, size) => {
          const { bytes, rows } = interpret(ops);
          const deltas = deltasOf({ eh: [{}, { start: CODE_AT, size, program: bytes }] });
          expect(deltas.stats.ehFrame).toMatchObject({ badFdes: 0, fdes: 1 });
          for (const [at] of rows) {
            for (const probe of [at, at + 1].filter((a) => a < size)) {
              const expected = rows.findLast(([address]) => address <= probe)![1];
              expect(ruleTextAt(deltas, CODE_AT + probe)).toBe(expected);
            }
          }
          expect(ruleTextAt(deltas, CODE_AT + size)).toBe('invalid');
          expect(ruleTextAt(deltas, CODE_AT - 1)).toBe('invalid');
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe('the register that a CFA counts from past the leaf', () => {
  const RBX = 3;
  /** Offset 2 of the rule that holds at 0x1001, in a file with or without a CFA that counts from rbx. */
  const calleeSavedAfter = (isNeeded: boolean, ...bytes: number[]): number => {
    const needs = { start: 0x1800, size: 0x100, program: [0x41, 0x0d, RBX] };
    const asked = { start: CODE_AT, size: 0x100, program: [0x41, 0x0e, 24, ...bytes] };
    const deltas = deltasOf({ eh: [{}, asked, ...(isNeeded ? [needs] : [])] });
    return deltas.rules[deltas.ruleIds[1]!]!.cfaOffset2;
  };

  it.each([
    ['is as in this frame', [], CalleeSaved.SAME],
    ['was saved', [0x80 | RBX, 3], -24],
    ['was saved and restored', [0x80 | RBX, 3, 0xc0 | RBX], CalleeSaved.SAME],
    ['is lost', [0x07, RBX], CalleeSaved.UNKNOWN],
    ['is in another register', [0x09, RBX, 12], CalleeSaved.UNKNOWN],
    ['lies above the frame', [0x2f, RBX, 3], CalleeSaved.UNKNOWN],
  ])('%s', (_, bytes, calleeSaved) => expect(calleeSavedAfter(true, ...bytes)).toBe(calleeSaved));

  it('is left out of files without such a CFA', () => {
    expect(calleeSavedAfter(false, 0x80 | RBX, 3)).toBe(CalleeSaved.UNKNOWN);
    expect(calleeSavedAfter(false)).toBe(CalleeSaved.UNKNOWN);
  });

  it.each([
    ['is told by BEAM for arm64', 1, -16],
    ['is left out of what only calls BEAM', 0, CalleeSaved.UNKNOWN],
  ])('%s', (_, section, calleeSaved) => {
    const symbol = Buffer.alloc(24);
    symbol.writeUInt32LE(1);
    symbol.writeUInt16LE(section, 6);
    const sections = [
      { name: '.dynstr', type: 3, bytes: Buffer.from('\0enif_thread_type\0') },
      { name: '.dynsym', type: 11, bytes: symbol, link: 3 },
    ];
    const program = [0x41, 0x0e, 32, 0x80 | 29, 4, 0x80 | 30, 3, 0x80 | 20, 2];
    const cie = { program: [0x0c, 31, 0], raRegister: 30 };
    const deltas = deltasOf({ machine: 183, sections, eh: [cie, { start: CODE_AT, size: 0x100, program }] });
    expect(deltas.rules[deltas.ruleIds[1]!]!.cfaOffset2).toBe(calleeSaved);
  });
});
