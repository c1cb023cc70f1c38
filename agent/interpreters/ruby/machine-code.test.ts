import { describe, expect, test } from 'vitest';
import { amd64 } from './machine-code-amd64.ts';
import { arm64 } from './machine-code-arm64.ts';

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
  expect(amd64.readsCollector({ address: 0x1000, bytes: bytes(code) })).toEqual({ space, flags });
});

test.each([
  ['calls another function', 'f30f1efa 4883ec08 e8c30df3ff 0fb64014 c3'],
  ['reads the flags of something else', '488b8040040000 0fb64110 c0e805 83e001 c3'],
  ['is cut', '488b8040040000 0fb6'],
  ['is empty', ''],
])('one that %s says nothing', (_, code) => {
  expect(amd64.readsCollector({ address: 0x1000, bytes: bytes(code) })).toBeUndefined();
});

/** Instructions as objdump prints them. */
const words = (text: string): Uint8Array =>
  Buffer.concat(text.split(' ').map((word) => Buffer.from(word, 'hex').reverse()));

describe('code for arm64 of 3.3 (Debian)', () => {
  const DURING_GC = 'f0001ac0 f945d000 f9400000 b40000a0 f9429800 f9400800 53051400 d65f03c0';
  const CURRENT_CONTEXT =
    'd503233f d53bd041 a9bf7bfd 910003fd d0000f60 f9416c02 910b6000 d63f0040 f8606820 a8c17bfd d50323bf d65f03c0';

  test('finds the flags of the collector, and not what the global offset table leads to', () => {
    const code = { address: 0xf41c0, bytes: words(DURING_GC) };
    expect(arm64.readsCollector(code)).toEqual({ space: 1328, flags: 16 });
    expect(arm64.readsCollector({ ...code, bytes: code.bytes.subarray(0, 5 * 4) })).toBeUndefined();
  });

  test('finds the variable of the thread by its descriptor', () => {
    const code = { address: 0x261344, bytes: words(CURRENT_CONTEXT) };
    expect(arm64.firstThreadLocal(code)).toEqual({ kind: 'descriptor', got: 0x44f2d8, add: 0 });
    expect(arm64.firstThreadLocal({ ...code, bytes: code.bytes.subarray(0, 8 * 4) })).toBeUndefined();
  });

  test('finds what an ID is compared with', () => {
    expect(arm64.firstCompared({ address: 0x2201ec, bytes: words('90001180 b9414801 6b01027f') })).toBe(
      0x450148,
    );
    expect(arm64.firstCompared({ address: 0x2201ec, bytes: words('6b01027f') })).toBeUndefined();
  });

  test('finds calls and jumps that leave it', () => {
    // bl +8, b +8, bl -4
    const code = { address: 0x1000, bytes: words('94000002 14000002 97ffffff') };
    expect(arm64.targetsOf(code, ['call'])).toEqual([]);
    expect(arm64.targetsOf(code, ['jump'])).toEqual([0x100c]);
  });
});
