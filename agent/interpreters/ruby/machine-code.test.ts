import { expect, test } from 'vitest';
import { readsCollector } from './machine-code.ts';

const bytes = (text: string): Uint8Array => Buffer.from(text.replaceAll(' ', ''), 'hex');

test.each([
  ['3.0 (Ubuntu)', 'f30f1efa 488b05958b2a00 488b00 488b8040040000 0fb64010 c0e805 83e001 c3', 1088, 16],
  ['3.2 (Ubuntu)', 'f30f1efa 488b059d982d00 488b00 488b8070040000 0fb64010 c0e805 83e001 c3', 1136, 16],
  [
    '3.4 (Debian)',
    'f30f1efa 488d0585c33d00 488b00 4885c0 7415 488b8010050000 0fb64014 c0e805 83e001 c3',
    1296,
    20,
  ],
  ['one whose flags are read as a word', '488b8f50040000 8b4110 c1e805 83e001 c3', 1104, 16],
])('where rb_during_gc of %s finds the flags of the collector', (_, code, space, flags) => {
  expect(readsCollector({ address: 0x1000, bytes: bytes(code) })).toEqual({ space, flags });
});

test.each([
  ['calls another function', 'f30f1efa 4883ec08 e8c30df3ff 0fb64014 c3'],
  ['reads the flags of something else', '488b8040040000 0fb64110 c0e805 83e001 c3'],
  ['is cut', '488b8040040000 0fb6'],
  ['is empty', ''],
])('one that %s says nothing', (_, code) => {
  expect(readsCollector({ address: 0x1000, bytes: bytes(code) })).toBeUndefined();
});
