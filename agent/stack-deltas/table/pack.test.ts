import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { lastAtOrBelow } from '../../../common/base/search.ts';
import { PF_X, PT_LOAD, type Segment } from '../../../common/elf/elf.ts';
import { EF_BLOCK_BITS, PAGE, RULE } from '../../records/records.gen.ts';
import { INVALID_RULE, type Rule } from '../rules/rules.ts';
import { TableTooLarge } from '../rules/table-limits.ts';
import type { StackDeltas } from '../stack-deltas.ts';
import { findPackedRule, type PackedTable, packTable } from './pack.ts';

const BLOCK = 1 << EF_BLOCK_BITS;
const RULES: Rule[] = Array.from({ length: 40 }, (_, i) => ({
  ...INVALID_RULE,
  kind: i === 0 ? 0 : 1,
  cfaOffset: i * 8,
}));

function deltasOf(rows: readonly (readonly [number, number])[]): StackDeltas {
  return {
    machine: 'x86_64',
    addresses: Float64Array.from(rows, ([address]) => address),
    ruleIds: Uint16Array.from(rows, ([, rule]) => rule),
    rules: RULES,
  } as unknown as StackDeltas;
}

const code = (offset: number, vaddr: number, filesz: number): Segment => ({
  type: PT_LOAD,
  flags: PF_X,
  offset,
  vaddr,
  filesz,
  memsz: filesz,
  align: 4096,
});
const pack = (rows: readonly (readonly [number, number])[], ...segments: Segment[]): PackedTable =>
  packTable(deltasOf(rows), segments)!;
const ruleOf = (deltas: StackDeltas, address: number): number => {
  const row = lastAtOrBelow(deltas.addresses, address);
  return row < 0 ? 0 : deltas.ruleIds[row]!;
};

const rowsArbitrary = (from: number, to: number): fc.Arbitrary<[number, number][]> =>
  fc
    .uniqueArray(fc.tuple(fc.integer({ min: from, max: to - 1 }), fc.nat(39)), {
      selector: ([a]) => a,
      maxLength: 120,
    })
    .map((rows) => rows.sort((a, b) => a[0] - b[0]));

/** Lookup on the image equals lookup in the deltas, at every row and around it, and at both ends of each page. */
function expectSame(deltas: StackDeltas, table: PackedTable, segments: readonly Segment[]): void {
  for (const s of segments) {
    const probes = [...deltas.addresses].flatMap((a) => [a - 1, a, a + 1]);
    for (let a = s.vaddr; a < s.vaddr + s.filesz; a += 4096 - (a % 4096))
      probes.push(a, a + 4095 - (a % 4096));
    for (const address of probes.filter((a) => a >= s.vaddr && a < s.vaddr + s.filesz))
      expect(findPackedRule(table, address - s.vaddr + s.offset), `0x${address.toString(16)}`).toBe(
        ruleOf(deltas, address),
      );
  }
}

describe('packTable', () => {
  it('says by file offset what the deltas say by address', () => {
    const segment = code(0x3000, 0x403000, 0x9234);
    fc.assert(
      fc.property(rowsArbitrary(0x402000, 0x40e000), (rows) => {
        const table = packTable(deltasOf(rows), [segment]);
        if (rows.length === 0) expect(table).toBeUndefined();
        else expectSame(deltasOf(rows), table!, [segment]);
      }),
      { numRuns: 200 },
    );
  });

  it('keeps apart two segments that share a page of the file', () => {
    fc.assert(
      fc.property(rowsArbitrary(0x1000, 0x3000), rowsArbitrary(0x12000, 0x15000), (first, second) => {
        const segments = [code(0x1000, 0x1000, 0x1800), code(0x2800, 0x12800, 0x1900)];
        const rows = [...first, ...second];
        if (rows.length === 0) return;
        const deltas = deltasOf(rows);
        expectSame(deltas, packTable(deltas, segments)!, segments);
        expectSame(deltas, packTable(deltas, segments.toReversed())!, segments);
      }),
      { numRuns: 200 },
    );
  });

  it('fills whole blocks, and no page straddles two of them', () => {
    // 4,000 rows a page: one page to a block, with room left over
    const rows = Array.from(
      { length: 4000 * 5 },
      (_, i) => [0x1000 + Math.floor(i / 4000) * 4096 + (i % 4000), 1 + (i % 39)] as const,
    );
    const segment = code(0x1000, 0x1000, 5 * 4096);
    const table = pack(rows, segment);
    expect(table.image.length % BLOCK).toBe(0);
    expect([table.firstPage, table.pageCount, table.ruleCount]).toEqual([1, 5, RULES.length]);
    // findPackedRule throws where rows of a page straddle blocks
    expectSame(deltasOf(rows), table, [segment]);
  });

  it('takes a row for each byte of a page', () => {
    const rows = Array.from({ length: 4096 }, (_, i) => [0x1000 + i, 1 + (i % 39)] as const);
    const segment = code(0x1000, 0x1000, 0x2000);
    expectSame(deltasOf(rows), pack(rows, segment), [segment]);
  });

  it('has the layout of ebpf/records.h', () => {
    const table = pack(
      [
        [0x1004, 3],
        [0x1010, 0],
        [0x3000, 5],
      ],
      code(0x1000, 0x1000, 0x3000),
    );
    const view = new DataView(table.image.buffer);
    const page = (n: number): number[] => [
      view.getUint32(n * PAGE.bytes + PAGE.firstRow, true),
      view.getUint16(n * PAGE.bytes + PAGE.rows, true),
    ];
    const row = (n: number): number[] => {
      const word = view.getUint32(table.rowsAt + n * 4, true);
      return [word & 0xffff, word >>> 16];
    };
    expect([page(0)[1], page(1)[1], page(2)[1]]).toEqual([3, 0, 1]);
    const first = page(0)[0]!;
    expect([0, 1, 2].map((i) => row(first + i))).toEqual([
      [0, 0],
      [4, 3],
      [16, 0],
    ]);
    expect(row(page(2)[0]!)).toEqual([0, 5]);
    expect(view.getInt32(table.rulesAt + 3 * RULE.bytes + RULE.cfaOffset, true)).toBe(24);
    expect(table.rulesAt % 16).toBe(0);
    expect(findPackedRule(table, 0)).toBe(0);
    expect(findPackedRule(table, 0x10000)).toBe(0);
  });

  it('is nothing where no code is described', () => {
    expect(packTable(deltasOf([]), [code(0, 0, 4096)])).toBeUndefined();
    expect(packTable(deltasOf([[1, 1]]), [{ ...code(0, 0, 4096), flags: 4 }])).toBeUndefined();
  });

  it('refuses what would not fit', () => {
    expect(() => packTable(deltasOf([[1, 1]]), [code(0, 0, 2 ** 40)])).toThrow(TableTooLarge);
    expect(() => packTable(deltasOf([[1, 1]]), [code(0, 0, 16), code(2 ** 50, 2 ** 50, 16)])).toThrow(
      TableTooLarge,
    );
    const overlapping = Array.from({ length: 1000 }, () => code(0, 0, 2 ** 30));
    expect(() => packTable(deltasOf([[1, 1]]), overlapping)).toThrow(TableTooLarge);
  });
});
