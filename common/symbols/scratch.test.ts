import fc from 'fast-check';
import { expect, test } from 'vitest';
import { bufferSource, OutOfBounds } from '../base/byte-source.ts';
import { packColumns, packParts, unpackColumns, unpackParts } from './scratch.ts';

test('columns come back as they were packed', () => {
  fc.assert(
    fc.property(fc.float64Array(), fc.uint32Array(), fc.int32Array(), fc.uint16Array(), (a, b, c, d) => {
      const packed = bufferSource(packColumns([a, b, c, d]));
      const back = unpackColumns(packed, [Float64Array, Uint32Array, Int32Array, Uint16Array]);
      expect(back.map((column) => [...column])).toEqual([[...a], [...b], [...c], [...d]]);
    }),
  );
});

test('parts come back as they were packed, each aligned to 8 bytes', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array()), (parts) => {
      const packed = bufferSource(packParts(parts));
      const back = unpackParts(packed).map((part) => part.read(0, part.size));
      expect(back.map((bytes) => [...bytes])).toEqual(parts.map((bytes) => [...bytes]));
      expect(back.every(({ byteOffset, length }) => length === 0 || byteOffset % 8 === 0)).toBe(true);
    }),
  );
});

test('no part leads into the next one', () => {
  const [first] = unpackParts(bufferSource(packParts([new Uint8Array(3), new Uint8Array(8)])));
  expect(() => first!.read(2, 2)).toThrow(OutOfBounds);
});
