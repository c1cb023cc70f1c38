import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { lastAtOrBelow } from '../../../common/base/search.ts';
import { coverage, flattenFunctions } from './flatten-functions.ts';
import { FunctionRows } from './rows.ts';

interface Fn {
  start: number;
  size: number;
  margin: number;
  rows: [number, number][];
}

function rowsOf(functions: readonly Fn[]): FunctionRows {
  const rows = new FunctionRows();
  for (const { start, size, margin, rows: list } of functions) {
    rows.beginFunction(start, start + size, margin);
    for (const [offset, rule] of list) rows.addRow(start + offset, rule);
    rows.endFunction();
  }
  return rows;
}

const fnArbitrary: fc.Arbitrary<Fn> = fc
  .record({
    start: fc.integer({ min: 1, max: 120 }),
    size: fc.integer({ min: 1, max: 60 }),
    margin: fc.constant(0),
    offsets: fc.uniqueArray(fc.nat(59), { maxLength: 5 }),
    rules: fc.array(fc.nat(4), { minLength: 6, maxLength: 6 }),
  })
  .map(({ offsets, rules, ...fn }) => ({
    ...fn,
    rows: [0, ...offsets.filter((o) => o > 0).sort((a, b) => a - b)].map((o, i): [number, number] => [
      o,
      rules[i]!,
    ]),
  }));

/** The rule at an address by looking at every function. */
function ruleByHand(functions: readonly Fn[], address: number): number {
  let best: Fn | undefined;
  for (const fn of functions) {
    const covers = address >= fn.start && address < fn.start + fn.size;
    if (covers && (!best || fn.start > best.start)) best = fn;
  }
  return best?.rows.findLast(([offset]) => best.start + offset <= address)?.[1] ?? 0;
}

describe('flattenFunctions', () => {
  it('gives each address the rule of the function that begins last and covers it', () => {
    fc.assert(
      fc.property(fc.array(fnArbitrary, { maxLength: 8 }), (functions) => {
        const { addresses, ruleIds } = flattenFunctions(rowsOf(functions));
        for (let address = 0; address < 200; address++) {
          const row = lastAtOrBelow(addresses, address);
          expect(row < 0 ? 0 : ruleIds[row]).toBe(ruleByHand(functions, address));
        }
        for (let i = 1; i < addresses.length; i++) {
          expect(addresses[i]).toBeGreaterThan(addresses[i - 1]!);
          expect(ruleIds[i]).not.toBe(ruleIds[i - 1]);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('knows which addresses are covered', () => {
    fc.assert(
      fc.property(fc.array(fnArbitrary, { maxLength: 8 }), (functions) => {
        const covered = coverage(rowsOf(functions));
        for (let a = 0; a < 200; a++)
          expect(covered(a)).toBe(functions.some((f) => a >= f.start && a < f.start + f.size));
      }),
    );
  });

  it('counts functions that begin inside of others', () => {
    const fn = (start: number, size: number): Fn => ({ start, size, margin: 0, rows: [[0, 1]] });
    expect(flattenFunctions(rowsOf([fn(10, 10), fn(20, 10), fn(25, 1), fn(25, 1)])).overlaps).toBe(2);
  });

  it('joins functions without a gap between them, whatever their order', () => {
    const fn = (start: number, rule: number): Fn => ({ start, size: 10, margin: 0, rows: [[0, rule]] });
    const { addresses, ruleIds } = flattenFunctions(rowsOf([fn(30, 2), fn(10, 1), fn(20, 1)]));
    expect([[...addresses], [...ruleIds]]).toEqual([
      [10, 30, 40],
      [1, 2, 0],
    ]);
  });

  it('lets a row begin a byte early, and end a byte late, where nothing else holds', () => {
    const fn = (start: number, margin: number): Fn => ({ start, size: 10, margin, rows: [[0, 1 + margin]] });
    expect([...flattenFunctions(rowsOf([fn(11, 1)])).addresses]).toEqual([10, 22]);
    expect([...flattenFunctions(rowsOf([fn(10, 0), fn(20, 1)])).addresses]).toEqual([10, 20, 31]);
    expect([...flattenFunctions(rowsOf([fn(10, 1), fn(20, 0)])).addresses]).toEqual([9, 20, 30]);
  });

  it('takes ten thousand functions inside each other', () => {
    const nested = Array.from(
      { length: 10_000 },
      (_, i): Fn => ({ start: 1 + i, size: 40_000 - 2 * i, margin: 0, rows: [[0, 1 + (i % 2)]] }),
    );
    const { addresses, overlaps } = flattenFunctions(rowsOf(nested));
    expect([addresses.length, overlaps]).toEqual([20_000, 9999]);
  });
});
