import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CannotRead } from '../runtime-memory.ts';
import { encodeUnsigned5 } from './fake-jvm.ts';
import { Unsigned5 } from './unsigned5.ts';

it.each([
  [17, [0x00], 0],
  [17, [0xbf], 191],
  [17, [0xc0, 0x00], 192],
  [17, [0xc1, 0x02], 193 + (2 << 6)],
  [17, [0xff, 0xff, 0xff, 0xff, 0xff], (255 * (1 + 64 + 4096 + 262_144) + 255 * 2 ** 24) % 2 ** 32],
  [21, [0x01], 0],
  [21, [0xbf], 190],
  [21, [0xc0, 0x01], 191],
])('of JDK %i, %j is %i', (major, bytes, value) => {
  const numbers = new Unsigned5(Uint8Array.from(bytes), 0, major);
  expect(numbers.unsigned()).toBe(value);
  expect(numbers.at).toBe(bytes.length);
});

it('reads back what was written', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 2 ** 32 - 1 })),
      fc.constantFrom(8, 25),
      (values, major) => {
        const bytes = values.flatMap((value) => encodeUnsigned5(value, major));
        const numbers = new Unsigned5(Uint8Array.from(bytes), 0, major);
        expect(values.map(() => numbers.unsigned())).toEqual(values);
      },
    ),
  );
});

it('has the sign in the lowest bit', () => {
  const numbers = new Unsigned5(Uint8Array.from([0, 1, 2, 3]), 0, 11);
  expect([0, 1, 2, 3].map(() => numbers.signed())).toEqual([0, -1, 1, -2]);
});

it('is malformed where the bytes end, and where one is 0 that can not be', () => {
  const read = (bytes: number[], major: number) => () =>
    new Unsigned5(Uint8Array.from(bytes), 0, major).unsigned();
  expect(read([], 17)).toThrow(CannotRead);
  expect(read([0xc0], 17)).toThrow(CannotRead);
  expect(read([0], 20)).toThrow(CannotRead);
  expect(read([0xc0, 0], 20)).toThrow(CannotRead);
});
