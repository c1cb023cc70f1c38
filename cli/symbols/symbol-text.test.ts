import { expect, it } from 'vitest';
import { symbolText } from './symbol-text.ts';

const frame = { function: 'work', systemName: '', file: 'a.c', line: 3, column: 0, inlined: false };
const text = { json: false, path: '/usr/lib/libfoo.so' };

it('prints the function and its place', () => {
  expect(symbolText(0x1234, [frame], text)).toBe('0x1234             work at a.c:3\n');
});

it('lets no control character of a file reach the terminal', () => {
  const hostile = { ...frame, function: 'wo\x1b]0;title\x07rk', file: 'a\n\x9b2J.c' };
  expect(symbolText(0x1234, [hostile], text)).toBe('0x1234             wo?]0;title?rk at a??2J.c:3\n');
  expect(symbolText(0x1234, [], { ...text, path: 'a\x1bb' })).toBe('0x1234             a?b+0x1234\n');
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
