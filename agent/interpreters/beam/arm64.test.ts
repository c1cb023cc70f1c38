/** What is read out of arm64's machine code: where the process and the active table are. Files and VMs of Debian: test/runtimes, test/kernels. */
import { expect, test } from 'vitest';
import { bufferSource } from '../../../common/base/byte-source.ts';
import { buildElf } from '../../../common/elf/build-elf.ts';
import { PF_X, PT_LOAD, parseElf } from '../../../common/elf/elf.ts';
import { RuntimeMemory } from '../runtime-memory.ts';
import { layoutOf } from './layout.ts';
import { findSchedulerThread } from './scheduler-thread.ts';
import { findActiveIndex, findSwitch, readSharedCode, type SharedCode } from './shared-code.ts';

const CODE_AT = 0x1000;

/** Instructions, where each begins from the code's start on. */
function code(length: number, parts: Readonly<Record<number, readonly number[]>>): Buffer {
  const bytes = Buffer.alloc(length);
  for (const [at, instructions] of Object.entries(parts))
    for (const [i, instruction] of instructions.entries())
      bytes.writeUInt32LE(instruction, Number(at) + i * 4);
  return bytes;
}

const threadOf = (bytes: Buffer): ReturnType<typeof findSchedulerThread> =>
  findSchedulerThread(
    parseElf(
      bufferSource(
        buildElf({
          machine: 183,
          segments: [{ type: PT_LOAD, flags: PF_X | 4, offset: CODE_AT, filesz: bytes.length }],
          sections: [{ name: '.text', addr: CODE_AT, flags: 6, bytes }],
        }),
      ),
    ),
    CODE_AT + 0x100,
  );

/** stp x29,x30,[sp,#-16]!; mov x29,sp; bl; cbz x0; ldr w0,[x0,#176] */
const asking = (call: number): number[] => [0xa9bf7bfd, 0x910003fd, call, 0xb40000e0, 0xb940b000];

test.each([
  ['in front of it', 0x97ffffe6, 0xa0],
  ['behind it', 0x9400003e, 0x200],
])('the function that asks for the key is %s', (_, call, callee) => {
  // bti c; adrp x0, 3 pages on; ldr w0,[x0,#256]; b
  const bytes = code(0x400, {
    256: asking(call),
    [callee]: [0xd503245f, 0xf0000000, 0xb9410000, 0x14000001],
  });
  expect(threadOf(bytes)).toEqual({ key: 0x4100, currentProcess: 168 });
});

test.each([
  ['calls nothing', { 256: [0xd503201f] }],
  ['asks for no key', { 256: asking(0x9400003e) }],
])('what %s has none', (_, parts) => expect(threadOf(code(0x400, parts))).toBeUndefined());

const PAGE_AT = 0x7000_0000_0000;
const VARIABLES = { start: 0x5555_1234_0000, end: 0x5555_1235_0000 };

/** Of two pages, in front of which nothing can be read: the code stands in the first one, the first module in the second. */
function sharedCodeOf(instructions: readonly number[]): SharedCode {
  const pages = code(0x2000, { 4088: instructions });
  const ranges = Buffer.alloc(0x1000);
  ranges.writeBigUInt64LE(0x2010n, 0);
  ranges.writeBigUInt64LE(BigInt(PAGE_AT + 0x1800), 0x10);
  const memory = new RuntimeMemory({
    read(address, length) {
      const [bytes, start] = address > 0x10000 ? [pages, PAGE_AT] : [ranges, 0x2000];
      const at = address - start;
      return at >= 0 && at + length <= bytes.length ? bytes.subarray(at, at + length) : undefined;
    },
  });
  return readSharedCode(memory, 0x2000);
}

/** ldr w14,[x14]; cmp x24,#3 */
const USE = [0xb94001ce, 0xf1000f1f];

test.each([
  ['three pieces', [0xd280800e, 0xf2a2468e, 0xf2caaaae], 0x5555_1234_0400],
  ['two pieces, since one is 0', [0xd2a2468e, 0xf2caaaae], 0x5555_1234_0000],
  ['no first piece', [0xf2a2468e, 0xf2caaaae], 0],
  ['an address that is no variable', [0xd280800e, 0xf2a2466e], 0],
])('the active table by %s', (_, pieces, address) =>
  expect(findActiveIndex(sharedCodeOf([0xd503201f, ...pieces, ...USE]), 'aarch64', VARIABLES)).toBe(address),
);

const NOP = 0xd503201f;
/** str x2,[x21,#240] */
const PUTS_ASIDE = 0xf9007aa2;
/** blr x8; mov x21,x0 */
const NEXT = [0xd63f0100, 0xaa0003f5];
const GOES_ON = 0xd61f0000;

test('processes are changed from when a place was put aside to when one is gone on at', () => {
  const shared = sharedCodeOf([PUTS_ASIDE, NOP, PUTS_ASIDE, NOP, ...NEXT, NOP, GOES_ON, GOES_ON]);
  expect(findSwitch(shared, 240)).toEqual({ start: PAGE_AT + 0xff8 + 12, length: 20 });
});

test.each([
  ['the next process', [PUTS_ASIDE, NOP, GOES_ON]],
  ['where a place is put aside', [NOP, ...NEXT, GOES_ON]],
  ['where one is gone on at', [PUTS_ASIDE, ...NEXT, NOP]],
])('without %s that is not known', (_, instructions) =>
  expect(findSwitch(sharedCodeOf(instructions), 240)).toEqual({ start: 0, length: 0 }),
);

test.each([25, 27, 29])('a process of OTP %i has no frame pointer', (release) => {
  const [amd64, arm64] = [layoutOf(release, 'x86_64'), layoutOf(release, 'aarch64')];
  expect(arm64).toEqual({ ...amd64, resumed: amd64.resumed - 8 });
});
