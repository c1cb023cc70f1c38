import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CannotRead } from '../runtime-memory.ts';
import { encodeUnsigned5 } from './fake-jvm.ts';
import { decodeLines, lineAt } from './methods.ts';

const zigzag = (value: number): number => (value < 0 ? -2 * value - 1 : 2 * value);

function encodeLines(pairs: readonly (readonly [number, number])[], major: number): Uint8Array {
  let [lastIndex, lastLine] = [0, 0];
  const bytes = pairs.flatMap(([index, line]) => {
    const [byIndex, byLine] = [index - lastIndex, line - lastLine];
    [lastIndex, lastLine] = [index, line];
    const isShort = byIndex >= 0 && byIndex < 31 && byLine >= 0 && byLine < 8 && byIndex + byLine > 0;
    if (isShort) return [byIndex * 8 + byLine];
    return [0xff, ...encodeUnsigned5(zigzag(byIndex), major), ...encodeUnsigned5(zigzag(byLine), major)];
  });
  return Uint8Array.from([...bytes, 0]);
}

const pair = fc.tuple(fc.nat(65_000), fc.nat(65_535));

it('reads the lines that were written, in both encodings', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(pair, { selector: ([index]) => index }),
      fc.constantFrom(8, 25),
      (pairs, major) => {
        const table = decodeLines(encodeLines(pairs, major), major)!;
        for (const [index, line] of pairs) expect(lineAt(table, index)).toBe(line);
      },
    ),
  );
});

it('needs more bytes where the end is not among them', () => {
  const bytes = encodeLines(
    [
      [0, 5],
      [300, 1000],
    ],
    17,
  );
  for (let length = 0; length < bytes.length; length++)
    expect(decodeLines(bytes.subarray(0, length), 17)).toBeUndefined();
});

it('is malformed, and nothing else, where the bytes are anything', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), fc.constantFrom(8, 25), (bytes, major) => {
      try {
        const table = decodeLines(bytes, major);
        expect(table === undefined || table.indices.length === table.lines.length).toBe(true);
      } catch (error) {
        expect(error).toBeInstanceOf(CannotRead);
      }
    }),
  );
});
