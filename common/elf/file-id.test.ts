import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { bufferSource } from '../base/byte-source.ts';
import { computeFileId } from './file-id.ts';

it('hashes both ends and the length', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 10_000 }), fc.nat(255), (size, seed) => {
      const bytes = Buffer.from(Array.from({ length: size }, (_, i) => (i * 7 + seed) & 0xff));
      const length = Buffer.from(size.toString(16).padStart(16, '0'), 'hex');
      const hashed = Buffer.concat([
        bytes.subarray(0, 4096),
        bytes.subarray(Math.max(0, size - 4096)),
        length,
      ]);
      const expected = createHash('sha256').update(hashed).digest().subarray(0, 16).toString('hex');
      expect(computeFileId(bufferSource(bytes))).toBe(expected);
    }),
    { numRuns: 40 },
  );
});

it('reads both ends of a large file only', () => {
  const asked: number[][] = [];
  const source = {
    size: 1e15,
    read: (offset: number, length: number) => {
      asked.push([offset, length]);
      return new Uint8Array(length);
    },
  };
  expect(computeFileId(source)).toMatch(/^[0-9a-f]{32}$/);
  expect(asked).toEqual([
    [0, 4096],
    [1e15 - 4096, 4096],
  ]);
});
