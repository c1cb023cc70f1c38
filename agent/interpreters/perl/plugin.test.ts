import { describe, expect, test } from 'vitest';
import { PerlKind } from '../../records/records.gen.ts';
import { NameCache } from '../contract.ts';
import { AUX, FLAG, GP_EGV, HEK, layoutOf, OP, OP_FLAG, SV, TYPE, XPVGV, XPVHV } from './layout.ts';
import { perl } from './plugin.ts';

const [GV, BODY, GP, NAME, STASH, STASH_BODY, ARRAY, PACKAGE] = [
  0x1000, 0x1100, 0x1200, 0x1300, 0x1400, 0x1500, 0x1600, 0x1700,
];
const [ROOT, LIST, FIRST, SECOND, FILE] = [0x2000, 0x2100, 0x2200, 0x2300, 0x3000];
const [NEXTSTATE, LINESEQ, LEAVESUB] = [200, 201, 202];

/** A process with one symbol and a function of two statements. */
class Made {
  readonly bytes = Buffer.alloc(0x5000);

  constructor(version = 36) {
    this.hek(NAME, Buffer.from('spend'));
    this.hek(PACKAGE, Buffer.from('Shape'));
    this.sv(GV, TYPE.GV, BODY, 0);
    this.word(BODY + XPVGV.name, NAME);
    this.word(BODY + XPVGV.stash, STASH);
    this.sv(STASH, TYPE.HV | FLAG.hasAux, STASH_BODY, ARRAY);
    this.word(STASH_BODY + XPVHV.max, 7);
    this.word(this.aux(version) + AUX.name, PACKAGE);
    this.bytes.write('/srv/shape.pl', FILE);
    this.op(ROOT, LEAVESUB, { first: LIST, sibling: 0 });
    this.op(LIST, LINESEQ, { first: FIRST, sibling: ROOT });
    this.op(FIRST, NEXTSTATE, { line: 12, sibling: SECOND });
    this.op(SECOND, NEXTSTATE, { line: 14, sibling: LIST });
  }

  aux(version: number): number {
    return layoutOf(version)!.hasNameInBody ? STASH_BODY + XPVHV.bytes : ARRAY + 64;
  }

  word(at: number, value: number): void {
    this.bytes.writeBigUInt64LE(BigInt(value), at);
  }

  hek(at: number, text: Buffer, flags = 0): void {
    this.bytes.writeInt32LE(text.length, at + HEK.length);
    text.copy(this.bytes, at + HEK.text);
    this.bytes[at + HEK.text + text.length] = 0;
    this.bytes[at + HEK.text + text.length + 1] = flags;
  }

  sv(at: number, flags: number, body: number, value: number): void {
    this.word(at + SV.body, body);
    this.bytes.writeUInt32LE(flags, at + SV.flags);
    this.word(at + SV.value, value);
  }

  op(at: number, type: number, { first = 0, line = 0, sibling = 0 }): void {
    this.word(at + OP.function, 0x400000 + type * 16);
    this.bytes.writeUInt16LE(type, at + OP.type);
    this.word(at + OP.sibling, sibling);
    if (first > 0) this.word(at + OP.first, first);
    if (first > 0) this.bytes[at + OP.flags] = OP_FLAG.kids;
    if (line > 0) this.bytes.writeUInt32LE(line, at + OP.line);
    if (line > 0) this.word(at + OP.file, FILE);
  }

  read(address: number, length: number): Uint8Array {
    return this.bytes.subarray(address, address + length);
  }

  name({ kind = PerlKind.GV as number, address = GV, statement = SECOND, line = 14, version = 36 } = {}) {
    const words = (cookie: number) => ({
      operand: (cookie * 8 + kind) * 2 ** 45 + address / 8,
      low: ((statement / 8) % 2 ** 13) * 2 ** 19 + line,
      high: Math.floor(statement / 8 / 2 ** 13),
    });
    const facts = { layout: layoutOf(version)!, hasThreads: true };
    // what BPF saw is told apart by five bits: one of them is right
    const all = Array.from({ length: 32 }, (_, cookie) =>
      perl.nameFrame(words(cookie), facts, this, new NameCache()),
    );
    return all.find((frame) => frame !== 'replaced') ?? 'replaced';
  }
}

const NAMED = { name: 'Shape::spend', file: '/srv/shape.pl', line: 14, column: 0, startLine: 12 };

describe('a function', () => {
  test.each([28, 32, 34, 36, 42])('of Perl 5.%i has its package, file, line and beginning', (version) => {
    expect(new Made(version).name({ version })).toEqual(NAMED);
  });

  test('without a name is called by its first statement', () => {
    const made = new Made();
    made.hek(NAME, Buffer.from('__ANON__'));
    expect(made.name()).toMatchObject({ name: 'Shape::__ANON__:12' });
  });

  test('that is called by another name has the one that it was defined by', () => {
    const made = new Made();
    const [other, body] = [0x4000, 0x4100];
    made.sv(other, TYPE.GV | FLAG.hasGp, body, GP);
    made.word(GP + GP_EGV, GV);
    expect(made.name({ address: other })).toEqual(NAMED);
  });

  test('has the first of the names of its package', () => {
    const made = new Made();
    made.word(made.aux(36) + AUX.name, 0x4000);
    made.bytes.writeInt32LE(2, made.aux(36) + AUX.count);
    made.word(0x4000, PACKAGE);
    expect(made.name()).toEqual(NAMED);
  });

  test('whose name is not ASCII has it in its own encoding', () => {
    const made = new Made();
    made.hek(NAME, Buffer.from('größe'), 1);
    expect(made.name()).toMatchObject({ name: 'Shape::größe' });
    made.hek(NAME, Buffer.from('größe', 'latin1'));
    expect(made.name()).toMatchObject({ name: 'Shape::größe' });
  });

  test('of no package has its name alone', () => {
    expect(new Made().name({ kind: PerlKind.LEXICAL, address: NAME })).toEqual({ ...NAMED, name: 'spend' });
  });
});

describe('what is gone', () => {
  test('a statement costs the file and the beginning', () => {
    const made = new Made();
    made.bytes.writeUInt32LE(99, SECOND + OP.line);
    expect(made.name()).toEqual({ ...NAMED, file: '', startLine: 0 });
  });

  test('a symbol costs the name', () => {
    const made = new Made();
    made.bytes.writeUInt32LE(5, GV + SV.flags);
    expect(made.name()).toBe('malformed');
  });

  test('a package costs itself', () => {
    const made = new Made();
    made.bytes.writeUInt32LE(5, STASH + SV.flags);
    expect(made.name()).toMatchObject({ name: 'spend' });
  });

  test.each([-1, 0, 0x10000, 0x7fffffff])('a name of %i bytes is none', (length) => {
    const made = new Made();
    made.bytes.writeInt32LE(length, NAME + HEK.length);
    expect(made.name()).toBe('malformed');
  });

  test('operations in a circle have no beginning', () => {
    const made = new Made();
    made.word(SECOND + OP.sibling, FIRST);
    expect(made.name()).toEqual({ ...NAMED, startLine: 0 });
    made.word(SECOND + OP.sibling, LIST);
    made.op(LIST, LINESEQ, { first: LIST, sibling: ROOT });
    expect(made.name()).toEqual({ ...NAMED, startLine: 0 });
  });
});

test('code outside of functions has its file and line; what is being compiled goes on', () => {
  const plain = { file: '/srv/shape.pl', line: 14, column: 0, startLine: 0 };
  const made = new Made();
  expect(made.name({ kind: PerlKind.MAIN, address: 0 })).toEqual({ name: '(main)', ...plain });
  expect(made.name({ kind: PerlKind.EVAL, address: 0 })).toEqual({ name: '(eval)', ...plain });
  expect(made.name({ kind: PerlKind.REQUIRED, address: 8, line: 13 })).toEqual({
    name: '(required)',
    ...plain,
    line: 13,
  });
});
