import { describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import type { ThreadLocal } from '../../common/symbols/thread-local.ts';
import type { ForeignFiles } from '../processes/foreign-files.ts';
import { placeVariable, type VariablePlace } from './place-variable.ts';

const BIAS = 0x7f00_0000_0000;
const ENOENT = -2;

/** Of a process whose memory has two words at each of these addresses. */
function place(
  variable: Partial<ThreadLocal>,
  memory: Readonly<Record<number, [bigint, bigint]>> = {},
): Promise<VariablePlace | undefined> {
  const files = {
    newSession: () => 1,
    readMemory: async (_pid: number, address: number) => {
      const words = memory[address];
      return words ? Buffer.from(BigInt64Array.from(words).buffer) : ENOENT;
    },
  } as unknown as ForeignFiles;
  const found = { variable: { size: 8, ...variable } as ThreadLocal, codeAddress: 0, isMusl: false };
  return placeVariable(toPid(1), found, BIAS, files);
}

const RESOLVER = 0x7f00_dead_0000n;

describe('threads have the variable', () => {
  it.each([
    ['where its program has it', { kind: 'static', offset: -40 }, {}, { module: 0, offset: -40n }],
    [
      'at the offset of its slot',
      { kind: 'offset', slot: 16 },
      { 16: [-80n, 0n] },
      { module: 0, offset: -80n },
    ],
    [
      'in its module',
      { kind: 'module', slot: 16, offset: undefined },
      { 16: [3n, 96n] },
      { module: 3, offset: 96n },
    ],
    [
      'in its module, at a known offset',
      { kind: 'module', slot: 16, offset: 8 },
      { 16: [3n, 0n] },
      { module: 3, offset: 8n },
    ],
    [
      'by a descriptor, at an offset',
      { kind: 'descriptor', slot: 16 },
      { 16: [RESOLVER, -640n] },
      { module: 0, offset: -640n },
    ],
    [
      'by a descriptor, in a module',
      { kind: 'descriptor', slot: 16 },
      { 16: [RESOLVER, 0x7f11_0000_0000n], [0x7f11_0000_0000 - BIAS]: [2n, 24n] },
      { module: 2, offset: 24n },
    ],
  ] as [string, Partial<ThreadLocal>, Record<number, [bigint, bigint]>, object][])(
    '%s',
    async (_, variable, memory, expected) => {
      const at = Object.fromEntries(
        Object.entries(memory).map(([slot, words]) => [BIAS + Number(slot), words]),
      );
      expect(await place(variable, at)).toEqual({ ...expected, isMusl: false });
    },
  );

  it.each([
    ['its memory is gone', { kind: 'offset', slot: 16 }, {}],
    ['the loader has not come to its descriptor', { kind: 'descriptor', slot: 16 }, { 16: [0n, 0n] }],
    ['a descriptor leads nowhere', { kind: 'descriptor', slot: 16 }, { 16: [RESOLVER, 0x7f11_0000_0000n] }],
    ['its module has no number', { kind: 'module', slot: 16, offset: 0 }, { 16: [0n, 0n] }],
    ['its module has no such number', { kind: 'module', slot: 16, offset: 0 }, { 16: [1n << 40n, 0n] }],
  ] as [string, Partial<ThreadLocal>, Record<number, [bigint, bigint]>][])(
    'not where %s',
    async (_, variable, memory) => {
      const at = Object.fromEntries(
        Object.entries(memory).map(([slot, words]) => [BIAS + Number(slot), words]),
      );
      expect(await place(variable, at)).toBeUndefined();
    },
  );
});
