import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OutOfBounds } from '../../../common/base/byte-source.ts';
import {
  buildGoPclntab,
  type GoFunctionSpec,
  type GoTableSpec,
} from '../../../common/elf/build-go-pclntab.ts';
import { ElfError } from '../../../common/elf/elf.ts';
import { GoPclntab } from '../../../common/elf/go-pclntab.ts';
import type { RecordSpec } from '../build-frames.ts';
import { CODE_AT, deltasOf, type FrameSpec, textOf } from '../fixture.ts';
import { describeRule } from '../rules/describe.ts';
import { FunctionRows } from '../rules/rows.ts';
import { RuleTable } from '../rules/rules.ts';
import { readGoFrames } from './go-frames.ts';

const FRAME: GoFunctionSpec['sizes'] = [
  [0, 0],
  [1, 8],
  [8, 32],
  [14, 0],
];
const spec = (functions: readonly GoFunctionSpec[], more: Partial<GoTableSpec> = {}): GoTableSpec => ({
  form: '1.20',
  textStart: CODE_AT,
  end: 0x1120,
  functions,
  ...more,
});
const rowsOf = (table: GoTableSpec, more: FrameSpec = {}): string[] =>
  textOf(deltasOf({ ...more, sections: [{ name: '.gopclntab', bytes: buildGoPclntab(table) }] }));
const work: GoFunctionSpec = { name: 'main.work', start: 0x1100, sizes: FRAME };
const ROWS = [
  '0x1100 rsp+8 same cfa-8',
  '0x1101 rsp+16 cfa-16 cfa-8',
  '0x1108 rsp+40 cfa-16 cfa-8',
  '0x110e rsp+8 same cfa-8',
  '0x1120 invalid',
];

describe("rules from Go's table", () => {
  it.each(['1.16', '1.18', '1.20'] as const)('of the form of Go %s', (form) => {
    expect(rowsOf(spec([work], { form }))).toEqual(ROWS);
  });

  it('on arm64: the return address lies at the stack pointer, fp below it', () => {
    const sizes = [
      [0, 0],
      [4, 48],
      [16, 0],
    ] as const;
    const table = spec([{ name: 'main.work', start: 0x1100, sizes }], { quantum: 4 });
    expect(rowsOf(table, { machine: 183 })).toEqual([
      '0x1100 sp+0 same x30',
      '0x1104 sp+48 cfa-56 cfa-48',
      '0x1110 sp+0 same x30',
      '0x1120 invalid',
    ]);
  });

  it('are second to .eh_frame and .debug_frame', () => {
    const debug: RecordSpec[] = [{}, { start: 0x1100, size: 0x20 }];
    expect(rowsOf(spec([work]), { debug })).toEqual(['0x1100 rsp+8 same cfa-8', '0x1120 invalid']);
  });

  it('make roots and functions that switch stacks by name, against their unwind information', () => {
    const debug: RecordSpec[] = [{}, { start: 0x1100, size: 0x10 }, { start: 0x1110, size: 0x10 }];
    const functions = [
      { name: 'runtime.goexit', start: 0x1100, sizes: [[0, 0]] as const },
      {
        name: 'runtime.systemstack',
        start: 0x1110,
        sizes: [
          [0, 0],
          [1, 8],
          [15, 0],
        ] as const,
      },
    ];
    expect(rowsOf(spec(functions), { debug })).toEqual([
      '0x1100 stop',
      '0x1110 rsp+8 same cfa-8',
      '0x1111 rbp+16 cfa-16 cfa-8',
      '0x111f rsp+8 same cfa-8',
      '0x1120 invalid',
    ]);
  });

  it.each([
    // mov 0(%rbx), %rsp
    ['x86_64', '4989d6 488b23 488b5318 ffe3', ['rsp+8 same cfa-8', 'unknown'], 6],
    // mov sp, x0
    ['aarch64', '850001a9 1f000091 a81c40f9', ['sp+0 same x30', 'unknown'], 8],
  ] as const)('end where gogo has gone over to another stack (%s)', (machine, code, expected, at) => {
    const bytes = Buffer.from(code.replaceAll(' ', ''), 'hex');
    // as padding begins, the table says something else
    const functions = [
      {
        name: 'gogo',
        start: 0x1100,
        sizes: [
          [0, 0],
          [16, -8],
        ] as const,
      },
    ];
    const table = new GoPclntab(buildGoPclntab(spec(functions)), () => CODE_AT);
    const [rows, rules] = [new FunctionRows(), new RuleTable()];
    const readCode = (start: number, size: number): Uint8Array =>
      bytes.subarray(start - 0x1100, start - 0x1100 + size);
    readGoFrames(table, machine, readCode).addRows(rows, rules, () => false);
    expect([...rows.offsets.subarray(0, rows.rowCount)]).toEqual([0, at]);
    const texts = [...rows.rules.subarray(0, rows.rowCount)].map((id) => {
      const { kind, cfa, fp, ra } = describeRule(rules.rules[id]!, machine);
      return kind === 'rule' ? `${cfa} ${fp} ${ra}` : kind;
    });
    expect(texts).toEqual(expected);
    readGoFrames(table, machine, () => undefined).addRows(rows, rules, () => false);
    expect([...rows.offsets.subarray(2, rows.rowCount)]).toEqual([0, 16]);
  });

  it("begin at runtime.moduledata's text where the table does not say it", () => {
    const module = new Uint8Array(600);
    new DataView(module.buffer).setBigUint64(176, BigInt(CODE_AT), true);
    const sections = [
      { name: '.gopclntab', bytes: buildGoPclntab(spec([work], { saysTextStart: 0 })) },
      { name: '.go.module', addr: 0x5000, bytes: module },
    ];
    const code = { type: 1, flags: 5, offset: CODE_AT, filesz: 0x2000 };
    const elf = { segments: [code, { type: 1, flags: 6, offset: 0x5000, filesz: 600 }] };
    expect(textOf(deltasOf({ sections, elf }))).toEqual(ROWS);
  });

  it('never run away, whatever bytes the table has', () => {
    const good = buildGoPclntab(spec([work, { ...work, start: 0x1110 }]));
    const change = fc.record({ at: fc.nat(good.length - 1), value: fc.nat(255) });
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 12 }), fc.nat(good.length), (changes, cut) => {
        const bytes = Uint8Array.from(good);
        for (const { at, value } of changes) bytes[at] = value;
        const rows = new FunctionRows();
        try {
          const table = new GoPclntab(bytes.subarray(0, cut % 3 === 0 ? cut : bytes.length), () => CODE_AT);
          readGoFrames(table, 'x86_64', () => undefined).addRows(rows, new RuleTable(), () => false);
        } catch (error) {
          expect(error instanceof ElfError || error instanceof OutOfBounds).toBe(true);
        }
        for (let i = 0; i < rows.count; i++) expect(rows.ends[i]!).toBeGreaterThan(rows.starts[i]!);
      }),
      { numRuns: 2000, seed: 4 },
    );
  });
});
