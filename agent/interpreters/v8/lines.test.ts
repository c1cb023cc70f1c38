import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Heap } from './heap.ts';
import type { V8Layout } from './layout.ts';
import { Lines } from './lines.ts';

/** Past the length up to which each end of a line is kept, so that blocks are; the lines are of any length. */
const LONG = 300_000;

function placesIn(text: string, isTwoByte: boolean, offsets: readonly number[]) {
  const bytes = Buffer.from(text, isTwoByte ? 'utf16le' : 'latin1');
  const base = 0x1000;
  const read = (address: number, length: number) => bytes.subarray(address - base, address - base + length);
  const heap = new Heap({ pid: 1, read } as never, {} as V8Layout);
  const source = { data: base, length: text.length, isTwoByte };
  const index = new Lines().of(heap, 'file', source)!;
  return offsets.map((offset) => index.placeOf(offset, heap, () => source));
}

const expected = (text: string, offset: number) => {
  const before = text.slice(0, offset).split('\n');
  return { line: before.length, column: before.at(-1)!.length + 1 };
};

it.each([
  ['short', 0],
  ['long', LONG],
])('shows line and column of each offset of a %s text', (_, padding) => {
  const lengths = fc.array(fc.oneof(fc.nat(3), fc.nat(200), fc.constantFrom(2046, 2047, 2048, 65_535)), {
    maxLength: 60,
  });
  const position = fc.double({ min: 0, max: 1, noNaN: true });
  fc.assert(
    fc.property(
      lengths,
      fc.boolean(),
      fc.array(position, { minLength: 1, maxLength: 20 }),
      (lines, two, at) => {
        const text = `${lines.map((length) => 'x'.repeat(length)).join('\n')}\n${'y'.repeat(padding)}`;
        const ends = lines.flatMap((_, i) => {
          const end = lines.slice(0, i + 1).reduce((sum, length) => sum + length + 1, 0);
          return [end - 1, end, end + 1].filter((offset) => offset < text.length);
        });
        const offsets = [...at.map((share) => Math.floor(share * (text.length - 1))), ...ends];
        expect(placesIn(text, two, offsets)).toEqual(offsets.map((offset) => expected(text, offset)));
      },
    ),
    { numRuns: padding > 0 ? 15 : 100 },
  );
});
