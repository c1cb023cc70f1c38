import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findPlace, type LineTableKind, lineTableKind } from './line-table.ts';

const table = (...bytes: number[]): Uint8Array => Uint8Array.from(bytes, (byte) => byte & 0xff);
const lineOf = (kind: LineTableKind, bytes: Uint8Array, offset: number): number =>
  findPlace(kind, bytes, 10, offset).line;

describe('line tables', () => {
  it('go by version', () => {
    expect([6, 9, 10, 11, 15].map(lineTableKind)).toEqual([
      'lnotab',
      'lnotab',
      'linetable',
      'locations',
      'locations',
    ]);
  });

  it('of 3.9 hold from their entry on, backwards too', () => {
    const lnotab = table(0, 1, 6, 2, 4, -1);
    expect([0, 5, 6, 9, 10, 99].map((at) => lineOf('lnotab', lnotab, at))).toEqual([11, 11, 13, 13, 12, 12]);
  });

  it('of 3.10 describe the code that they add, or say that it has no line', () => {
    const linetable = table(4, 1, 2, -128, 4, 3);
    expect([0, 3, 4, 6, 9, 10].map((at) => lineOf('linetable', linetable, at))).toEqual([
      11, 11, 0, 14, 14, 0,
    ]);
  });

  it('of 3.11 have every kind of entry', () => {
    const locations = table(
      0x80 | (3 << 3) | 1, // short: 2 units, column 3 * 8 + 2
      (2 << 4) | 5,
      0x80 | (11 << 3) | 0, // one line: 1 unit, next line, columns 7 to 9
      7,
      9,
      0x80 | (15 << 3) | 0, // no line: 1 unit
      0x80 | (13 << 3) | 0, // no columns: 1 unit, 3 lines back
      (3 << 1) | 1,
      0x80 | (14 << 3) | 7, // long: 8 units, 100 lines on, column 70
      0x40 | ((200 & 0x3f) | 0),
      200 >> 6,
      0,
      0x40 | ((71 & 0x3f) | 0),
      71 >> 6,
      0,
    );
    const places = [0, 3, 4, 6, 8, 10, 25, 26].map((at) => findPlace('locations', locations, 10, at));
    expect(places.map(({ line, column }) => `${line}:${column}`)).toEqual([
      '10:27',
      '10:27',
      '11:8',
      '0:0',
      '8:0',
      '108:71',
      '108:71',
      '0:0',
    ]);
  });

  it('put a frame that has not begun on the first line of its function', () => {
    expect(findPlace('locations', table(), 10, -1)).toEqual({ line: 10, column: 0 });
  });

  it('end with their bytes, whatever they are', () => {
    fc.assert(
      fc.property(
        fc.constantFrom<LineTableKind>('lnotab', 'linetable', 'locations'),
        fc.uint8Array({ maxLength: 64 }),
        fc.integer({ min: -2, max: 2 ** 31 - 1 }),
        (kind, bytes, offset) => {
          const { line, column } = findPlace(kind, bytes, 10, offset);
          expect(Number.isSafeInteger(line) && Number.isSafeInteger(column)).toBe(true);
        },
      ),
    );
  });
});
