import fc from 'fast-check';
import { expect, test } from 'vitest';
import { bufferSource } from '../elf/source.ts';
import { packColumns, unpackColumns } from './scratch.ts';

test('columns come back as they were packed', () => {
  fc.assert(
    fc.property(fc.float64Array(), fc.uint32Array(), fc.int32Array(), fc.uint16Array(), (a, b, c, d) => {
      const packed = bufferSource(packColumns([a, b, c, d]));
      const back = unpackColumns(packed, [Float64Array, Uint32Array, Int32Array, Uint16Array]);
      expect(back.map((column) => [...column])).toEqual([[...a], [...b], [...c], [...d]]);
    }),
  );
});
