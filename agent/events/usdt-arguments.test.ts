import { describe, expect, test } from 'vitest';
import { parseUsdtArguments } from './usdt-arguments.ts';

const none = (): undefined => undefined;
const x86 = (text: string, distanceTo: (symbol: string) => number | undefined = none): unknown[] =>
  parseUsdtArguments(text, 'x86_64', distanceTo);
const register = (number: number, bytes: number, isSigned = false, lowestBit = 0): unknown => ({
  ...{ kind: 'register', register: number, lowestBit, bytes, isSigned },
});
const memory = (
  bytes: number,
  isSigned: boolean,
  base: number,
  offset: number,
  index = 0,
  scale = 0,
): unknown => ({
  ...{ kind: 'memory', base, offset, index, scale, bytes, isSigned },
});

describe('on x86-64', () => {
  test.each<[string, unknown[]]>([
    ['8@%rdi', [register(5, 8)]],
    [
      '-4@%r12d -2@%ax 1@%r9b 1@%ah',
      [register(12, 4, true), register(0, 2, true), register(9, 1), register(0, 1, false, 8)],
    ],
    [
      '-4@%eax 4@$5 -8@$-1 4@$0x10',
      [
        register(0, 4, true),
        ...[
          [5, 4, false],
          [-1, 8, true],
          [16, 4, false],
        ].map(([value, bytes, isSigned]) => ({ kind: 'constant', value, bytes, isSigned })),
      ],
    ],
    [
      '-4@-20(%rbp) 8@(%rax) 8@16(%rbx,%rcx,8) 2@(%rsi, %rdi)',
      [
        memory(4, true, 6, -20),
        memory(8, false, 0, 0),
        memory(8, false, 3, 16, 2, 8),
        memory(2, false, 4, 0, 5, 1),
      ],
    ],
    ['%edi', [register(5, 4, true)]],
    ['', []],
  ])('%s', (text, places) => {
    expect(x86(text)).toEqual(places);
  });

  test('what a symbol names is at a distance from the probe', () => {
    const distanceTo = (symbol: string): number | undefined => (symbol === 'stats' ? 4096 : undefined);
    expect(x86('-4@52+stats(%rip) 4@stats-8(%rip)', distanceTo)).toEqual([
      memory(4, true, 16, 4148),
      memory(4, false, 16, 4088),
    ]);
    expect(x86('4@other(%rip)', distanceTo)).toEqual([{ kind: 'unreadable', text: '4@other(%rip)' }]);
  });
});

test.each<[string, unknown[]]>([
  [
    '8@x0 -4@w19 8@sp 4@wzr',
    [
      register(0, 8),
      register(19, 4, true),
      register(31, 8),
      { kind: 'constant', value: 0, bytes: 4, isSigned: false },
    ],
  ],
  [
    '-4@[sp, 16] 8@[x1] 8@[x2, x3, lsl 3] 1@[x29,-1]',
    [memory(4, true, 31, 16), memory(8, false, 1, 0), memory(8, false, 2, 0, 3, 8), memory(1, false, 29, -1)],
  ],
  [
    '4@5 -8@-1',
    [
      { kind: 'constant', value: 5, bytes: 4, isSigned: false },
      { kind: 'constant', value: -1, bytes: 8, isSigned: true },
    ],
  ],
])('on arm64: %s', (text, places) => {
  expect(parseUsdtArguments(text, 'aarch64', none)).toEqual(places);
});

test.each([
  '8f@%xmm0',
  '16@%rax',
  '4@%fs:8',
  '8@%rax@',
  '8@(%eax)',
  '8@8(,%rax,4)',
  '8@$99999999999999999999',
  '@',
  '8@',
  '4@1(%rbp,%rcx,3)',
])('what can not be read is told, and costs no other: %s', (text) => {
  expect(x86(`${text} 8@%rdi`)).toEqual([{ kind: 'unreadable', text }, register(5, 8)]);
});

test('long texts and many arguments are cut', () => {
  expect(x86('8@%rax '.repeat(100_000))).toHaveLength(12);
  expect(x86('('.repeat(1_000_000)).length).toBeLessThanOrEqual(12);
  expect(x86(`8@${'1+'.repeat(500_000)}(%rip)`).length).toBeLessThanOrEqual(12);
});
