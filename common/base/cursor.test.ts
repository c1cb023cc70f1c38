import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OutOfBounds } from './byte-source.ts';
import { Cursor } from './cursor.ts';

const uleb = (value: bigint): number[] => {
  const out: number[] = [];
  do {
    const byte = Number(value & 0x7fn);
    value >>= 7n;
    out.push(value === 0n ? byte : byte | 0x80);
  } while (value !== 0n);
  return out;
};
const sleb = (value: bigint): number[] => {
  const out: number[] = [];
  for (;;) {
    const byte = Number(value & 0x7fn);
    value >>= 7n;
    const isLast = (value === 0n && !(byte & 0x40)) || (value === -1n && byte & 0x40);
    out.push(isLast ? byte : byte | 0x80);
    if (isLast) return out;
  }
};

describe('Cursor', () => {
  it('reads what was written as LEB128', () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), (n) => {
        expect(new Cursor(Uint8Array.from(sleb(BigInt(n)))).sleb()).toBe(n);
        if (n >= 0) expect(new Cursor(Uint8Array.from(uleb(BigInt(n)))).uleb()).toBe(n);
      }),
    );
  });

  it('reads integers of every size, at any alignment', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 9, maxLength: 16 }), fc.nat(1), (bytes, at) => {
        const view = Buffer.from(bytes);
        const cursor = () => new Cursor(bytes, at);
        expect(cursor().u8()).toBe(view.readUInt8(at));
        expect(cursor().i8()).toBe(view.readInt8(at));
        expect(cursor().u16()).toBe(view.readUInt16LE(at));
        expect(cursor().i16()).toBe(view.readInt16LE(at));
        expect(cursor().u32()).toBe(view.readUInt32LE(at));
        expect(cursor().i32()).toBe(view.readInt32LE(at));
        expect(cursor().u64()).toBe(Number(view.readBigUInt64LE(at)));
        expect(cursor().i64()).toBe(Number(view.readBigInt64LE(at)));
      }),
    );
  });

  it('sees a part of a larger buffer only', () => {
    const part = Uint8Array.from([1, 2, 3, 4, 5]).subarray(1, 3);
    expect(new Cursor(part).u16()).toBe(0x0302);
    expect(() => new Cursor(part).u32()).toThrow(OutOfBounds);
  });

  it('never passes its end, whatever is read', () => {
    const reads = ['u8', 'i8', 'u16', 'i16', 'u32', 'i32', 'u64', 'i64', 'uleb', 'sleb', 'cstring'] as const;
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 24 }),
        fc.array(fc.constantFrom(...reads)),
        fc.integer({ min: -2, max: 30 }),
        (bytes, list, end) => {
          const cursor = new Cursor(bytes, 0, end);
          try {
            for (const read of list) cursor[read]();
          } catch (error) {
            expect(error).toBeInstanceOf(OutOfBounds);
          }
          expect(cursor.at).toBeLessThanOrEqual(Math.max(0, Math.min(end, bytes.length)));
        },
      ),
    );
  });

  it('refuses to skip backwards, and by what is not a number', () => {
    const cursor = new Cursor(new Uint8Array(8), 4);
    for (const n of [-1, Number.NaN, 5, Number.POSITIVE_INFINITY])
      expect(() => cursor.skip(n)).toThrow(OutOfBounds);
    expect(cursor.at).toBe(4);
  });

  it('reads strings up to their NUL', () => {
    const cursor = new Cursor(Uint8Array.from([0x7a, 0x52, 0, 0, 0x61]));
    expect([cursor.cstring(), cursor.cstring()]).toEqual(['zR', '']);
    expect(() => cursor.cstring()).toThrow(OutOfBounds);
  });
});
