import { expect, it } from 'vitest';
import type { ArgumentPlace } from './event-field.ts';
import { parseEvent, type UsdtSpec } from './event-spec.ts';
import { fieldsOf } from './probe-fields.ts';

const PLACES: ArgumentPlace[] = [
  { kind: 'register', register: 5, lowestBit: 0, bytes: 8, isSigned: true },
  { kind: 'memory', base: 6, offset: -20, index: 0, scale: 0, bytes: 4, isSigned: false },
  { kind: 'unreadable', text: '8@%xmm0' },
];

const fieldOf = (field: string) =>
  fieldsOf(parseEvent(`usdt:shop:shop:sold,value=${field}`) as UsdtSpec, PLACES)?.value;

it('are where the place has its arguments, or parts of them', () => {
  expect(fieldOf('arg0')).toEqual(PLACES[0]);
  expect(fieldOf('arg0:u16')).toEqual({ ...PLACES[0], bytes: 2, isSigned: false });
  expect(fieldOf('arg1:I32')).toEqual({ ...PLACES[1], isSigned: true });
});

it('are never more than the argument: what stands beside it is another variable', () => {
  expect(fieldOf('arg1:i64')).toEqual(PLACES[1]);
});

it('are told where they are not', () => {
  expect(() => fieldOf('arg2')).toThrow('arg2 is "8@%xmm0" there, which can\'t be read');
  expect(() => fieldOf('arg3')).toThrow('there is no arg3: its arguments are arg0 to arg2');
});
