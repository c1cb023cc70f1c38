import { expect, it } from 'vitest';
import { symbolText } from './symbol-text.ts';

const frame = { function: 'work', systemName: '', file: 'a.c', line: 3, column: 0, inlined: false };
const text = { json: false, path: '/usr/lib/libfoo.so' };

it('prints the function and its place', () => {
  expect(symbolText(0x1234, [frame], text)).toBe('0x1234             work at a.c:3\n');
});

it('prints file and address, as in a profile, where nothing has a name there', () => {
  expect(symbolText(0x1234, [], text)).toBe('0x1234             libfoo.so+0x1234\n');
  expect(symbolText(0x1234, [{ ...frame, function: '' }], text)).toBe(
    '0x1234             libfoo.so+0x1234 at a.c:3\n',
  );
  expect(JSON.parse(symbolText(0x1234, [], { ...text, json: true }))).toEqual({
    address: '0x1234',
    frames: [],
  });
});
