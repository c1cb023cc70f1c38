/** What binutils wrote into one file as .eh_frame and as .sframe, and what nobody would write. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { bufferSource } from '../../../common/base/byte-source.ts';
import { lastAtOrBelow } from '../../../common/base/search.ts';
import { type Machine, parseElf } from '../../../common/elf/elf.ts';
import { ByteWriter } from '../build-frames.ts';
import { CODE_AT, deltasOf, ruleTextAt, textOf } from '../fixture.ts';
import { newUnsupportedCfi, REGISTERS } from '../rules/cfi-state.ts';
import { describeRule } from '../rules/describe.ts';
import { flattenFunctions } from '../rules/flatten-functions.ts';
import { FunctionRows } from '../rules/rows.ts';
import { RuleTable } from '../rules/rules.ts';
import { decodeFrameSection, type FrameSection } from './frame-section.ts';
import { findEhFrame, findSframe } from './frame-sources.ts';
import type { FrameSectionStats } from './frame-stats.ts';
import { decodeSframe } from './sframe.ts';

interface Decoded {
  stats: FrameSectionStats;
  starts: Float64Array;
  ends: Float64Array;
  addresses: Float64Array;
  textAt(address: number): string;
}

function decode(section: FrameSection, machine: Machine, read = decodeSframe): Decoded {
  const rows = new FunctionRows();
  const rules = new RuleTable();
  const stats = read(section, {
    rows,
    rules,
    registers: REGISTERS[machine],
    isX86: machine === 'x86_64',
    unsupportedCfi: newUnsupportedCfi(),
    savesFpBelowReturnAddress: false,
    accepts: () => true,
  });
  const { addresses, ruleIds } = flattenFunctions(rows);
  const textAt = (address: number): string => {
    const row = lastAtOrBelow(addresses, address);
    const { kind, cfa, fp, ra } = describeRule(rules.rules[row < 0 ? 0 : ruleIds[row]!]!, machine);
    return cfa === undefined ? kind : `${cfa} ${fp} ${ra}`;
  };
  const [starts, ends] = [rows.starts.slice(0, rows.count), rows.ends.slice(0, rows.count)];
  return { stats, starts, ends, addresses, textAt };
}

const realFile = (machine: Machine) =>
  parseElf(
    bufferSource(
      readFileSync(join(import.meta.dirname, `../../../test/fixtures/sframe/sframe-${machine}.so`)),
    ),
  );

describe.each<Machine>(['x86_64', 'aarch64'])('of %s', (machine) => {
  const elf = realFile(machine);
  const [eh, sframe] = [findEhFrame(elf)!, findSframe(elf)!];

  test('says at each byte of each function what .eh_frame says', () => {
    const [expected, found] = [decode(eh, machine, decodeFrameSection), decode(sframe, machine)];
    expect(found.stats).toMatchObject({ badFdes: 0 });
    expect(found.starts.length).toBeGreaterThan(5);
    const said = (text: string): string => text.replace('rsp+8+((rip&15)>=11?8:0)', 'plt');
    let compared = 0;
    for (const [i, start] of found.starts.entries()) {
      // of the procedure linkage table the one has an expression, the other rows that repeat
      if (said(expected.textAt(start)).startsWith('plt')) continue;
      for (let at = start; at < found.ends[i]!; at++, compared++)
        expect(`0x${at.toString(16)} ${found.textAt(at)}`).toBe(
          `0x${at.toString(16)} ${expected.textAt(at)}`,
        );
    }
    expect(compared).toBeGreaterThan(500);
  });

  test('is found by its segment where there are no section headers', () => {
    const bytes = Buffer.from(elf.source.read(0, elf.source.size));
    bytes.writeBigUInt64LE(0n, 40);
    bytes.writeUInt16LE(0, 60);
    bytes.writeUInt16LE(0, 62);
    expect(findSframe(parseElf(bufferSource(bytes)))?.address).toBe(sframe.address);
  });

  test('with bytes changed ends without an error, with ordered rows', () => {
    const change = fc.tuple(fc.nat(sframe.bytes.length - 1), fc.nat(255));
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 6 }), (changes) => {
        const bytes = sframe.bytes.slice();
        for (const [at, value] of changes) bytes[at] = value;
        const { addresses } = decode({ ...sframe, bytes }, machine);
        for (let i = 1; i < addresses.length; i++) expect(addresses[i]).toBeGreaterThan(addresses[i - 1]!);
      }),
      { numRuns: 500 },
    );
  });

  test('cut anywhere ends without an error', () => {
    for (let length = 0; length < sframe.bytes.length; length++)
      decode({ ...sframe, bytes: sframe.bytes.slice(0, length) }, machine);
  });
});

interface Row {
  at: number;
  sp: boolean;
  offsets: number[];
}
interface Func {
  start: number;
  size: number;
  rows: Row[];
  repeat?: number;
}
const AT = 0x4000;

/** As an assembler writes it: starts of two bytes, offsets of four. */
function build(
  functions: readonly Func[],
  { pcRelative = false, fixedRa = -8, fixedFp = 0, abi = 3 } = {},
): Uint8Array {
  const fres = new ByteWriter();
  const fdes = new ByteWriter();
  for (const [i, { start, size, rows, repeat = 0 }] of functions.entries()) {
    const field = 28 + i * 20;
    fdes.uint(start - AT - (pcRelative ? field : 0), 4).uint(size, 4);
    fdes.uint(fres.bytes.length, 4).uint(rows.length, 4);
    fdes.u8(1 | (repeat > 0 ? 16 : 0), repeat, 0, 0);
    for (const { at, sp, offsets } of rows) {
      fres.uint(at, 2).u8((sp ? 1 : 0) | (offsets.length << 1) | (2 << 5));
      for (const offset of offsets) fres.uint(offset, 4);
    }
  }
  const head = new ByteWriter().uint(0xdee2, 2).u8(2, pcRelative ? 5 : 1, abi, fixedFp, fixedRa, 0);
  head.uint(functions.length, 4).uint(0, 4).uint(fres.bytes.length, 4).uint(0, 4).uint(fdes.bytes.length, 4);
  return Uint8Array.from([...head.bytes, ...fdes.bytes, ...fres.bytes]);
}

const textsOf = (bytes: Uint8Array, addresses: readonly number[], machine: Machine = 'x86_64'): string[] => {
  const { textAt } = decode({ bytes, address: AT, isEhFrame: false }, machine);
  return addresses.map(textAt);
};
const reasonsOf = (bytes: Uint8Array): string[] => [
  ...decode({ bytes, address: AT, isEhFrame: false }, 'x86_64').stats.reasons.keys(),
];
const row = (at: number, sp: boolean, ...offsets: number[]): Row => ({ at, sp, offsets });

describe('rows that were written here', () => {
  const one: Func = {
    start: 0x1000,
    size: 64,
    rows: [row(4, true, 8), row(5, true, 16, -16), row(9, false, 16, -16)],
  };

  test.each([false, true])('are read, with starts relative to their field: %s', (pcRelative) => {
    expect(textsOf(build([one], { pcRelative }), [0xfff, 0x1000, 0x1004, 0x1005, 0x103f, 0x1040])).toEqual([
      'invalid',
      'invalid',
      'rsp+8 same cfa-8',
      'rsp+16 cfa-16 cfa-8',
      'rbp+16 cfa-16 cfa-8',
      'invalid',
    ]);
  });

  test('repeat, and may end a stack', () => {
    const plt: Func = { start: 0x1000, size: 40, rows: [row(0, true, 8), row(11, true, 16)], repeat: 16 };
    const last: Func = { start: 0x2000, size: 8, rows: [row(0, true)] };
    expect(textsOf(build([plt, last]), [0x1000, 0x100b, 0x1010, 0x1023, 0x1027, 0x1028, 0x2001])).toEqual([
      'rsp+8 same cfa-8',
      'rsp+16 same cfa-8',
      'rsp+8 same cfa-8',
      'rsp+8 same cfa-8',
      'rsp+8 same cfa-8',
      'invalid',
      'stop',
    ]);
  });

  test('tell of the return address where nothing is fixed', () => {
    const arm: Func = {
      start: 0x1000,
      size: 16,
      rows: [row(0, true, 0), row(4, true, 32, -24), row(8, false, 48, -40, -48)],
    };
    expect(textsOf(build([arm], { fixedRa: 0, abi: 2 }), [0x1000, 0x1004, 0x1008], 'aarch64')).toEqual([
      'sp+0 same x30',
      'sp+32 same cfa-24',
      'x29+48 cfa-48 cfa-40',
    ]);
    expect(reasonsOf(build([arm], { fixedRa: 0 }))).toEqual(['no return address']);
  });

  test.each<[string, Uint8Array]>([
    ['no SFrame section', new Uint8Array(40)],
    ['SFrame version 3', build([one]).fill(3, 2, 3)],
    ['SFrame ABI 2', build([one], { abi: 2 })],
    ['reads past its end', build([one]).subarray(0, 60)],
    ['its index of 1 functions ends behind the section', build([one]).subarray(0, 40)],
    ['rows out of order', build([{ ...one, rows: [...one.rows, one.rows[0]!] }])],
    ['rows that repeat every 0 bytes', build([one]).fill(17, 44, 45)],
    ['too many rows that repeat', build([{ ...one, size: 0xffff_ffff, rows: [one.rows[0]!], repeat: 8 }])],
    ['4 offsets in a row', build([{ ...one, rows: [row(0, true, 1, 2, 3, 4)] }])],
  ])('are refused: %s', (reason, bytes) => {
    expect(reasonsOf(bytes)).toEqual([reason]);
  });

  test('that many functions share cost no more than the section has room for', () => {
    const rows = Array.from({ length: 100 }, (_, at) => row(at, true, 8));
    const bytes = build([
      ...Array.from({ length: 400 }, (_, i) => ({ ...one, start: 0x1000 + i, rows: [] })),
      { ...one, rows },
    ]);
    const view = new DataView(bytes.buffer);
    for (let i = 0; i < 400; i++) view.setUint32(28 + i * 20 + 12, 100, true);
    expect(reasonsOf(bytes)).toContain('more rows than the section has room for');
  });

  test('are used where .eh_frame and .debug_frame say nothing', () => {
    const sections = [{ name: '.sframe', addr: AT, flags: 2, bytes: build([one]) }];
    expect(textOf(deltasOf({ sections }))).toEqual([
      `0x${(CODE_AT + 4).toString(16)} rsp+8 same cfa-8`,
      `0x${(CODE_AT + 5).toString(16)} rsp+16 cfa-16 cfa-8`,
      `0x${(CODE_AT + 9).toString(16)} rbp+16 cfa-16 cfa-8`,
      `0x${(CODE_AT + 64).toString(16)} invalid`,
    ]);
    const debug = [{}, { start: CODE_AT, size: 64, program: [0x0e, 80] }];
    expect(ruleTextAt(deltasOf({ sections, debug }), CODE_AT + 9)).toBe('rsp+80 same cfa-8');
  });
});

test('random bytes behind a good start end without an error', () => {
  const head = [...build([]).subarray(0, 8)];
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (rest) => {
      decode({ bytes: Uint8Array.from([...head, ...rest]), address: AT, isEhFrame: false }, 'x86_64');
    }),
    { numRuns: 1000 },
  );
});
