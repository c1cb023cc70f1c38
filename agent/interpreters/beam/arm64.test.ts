/** What is read out of arm64's machine code: where the process and the active table are. Files and VMs of Debian: test/runtimes, test/kernels. */
import { expect, test } from 'vitest';
import { bufferSource } from '../../../common/base/byte-source.ts';
import { buildElf } from '../../../common/elf/build-elf.ts';
import { PF_X, PT_LOAD, parseElf } from '../../../common/elf/elf.ts';
import { RuntimeMemory } from '../runtime-memory.ts';
import { findActiveIndex } from './active-index.ts';
import { layoutOf } from './layout.ts';
import { findSchedulerThread } from './scheduler-thread.ts';

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
  // bti c; adrp x0, 3 pages on; ldr w0,[x0,#256]
  const bytes = code(0x400, { 256: asking(call), [callee]: [0xd503245f, 0xf0000000, 0xb9410000] });
  expect(threadOf(bytes)).toEqual({ key: 0x4100, currentProcess: 168 });
});

test.each([
  ['calls nothing', { 256: [0xd503201f] }],
  ['asks for no key', { 256: asking(0x9400003e) }],
])('what %s has none', (_, parts) => expect(threadOf(code(0x400, parts))).toBeUndefined());

const PAGE_AT = 0x7000_0000_0000;
const VARIABLES = { start: 0x5555_1234_0000, end: 0x5555_1235_0000 };

function activeIndexIn(instructions: number[]): number {
  const page = code(0x1000, { 64: instructions });
  const ranges = Buffer.alloc(0x1000);
  ranges.writeBigUInt64LE(0x2010n, 0);
  ranges.writeBigUInt64LE(BigInt(PAGE_AT + 0x800), 0x10);
  const memory = new RuntimeMemory({
    read(address, length) {
      const [bytes, start] = address >= PAGE_AT ? [page, PAGE_AT] : [ranges, 0x2000];
      const at = address - start;
      return at >= 0 && at + length <= bytes.length ? bytes.subarray(at, at + length) : undefined;
    },
  });
  return findActiveIndex(memory, 0x2000, 'aarch64', VARIABLES);
}

/** ldr w14,[x14]; cmp x24,#3 */
const USE = [0xb94001ce, 0xf1000f1f];

test.each([
  ['three pieces', [0xd280800e, 0xf2a2468e, 0xf2caaaae], 0x5555_1234_0400],
  ['two pieces, since one is 0', [0xd2a2468e, 0xf2caaaae], 0x5555_1234_0000],
  ['no first piece', [0xf2a2468e, 0xf2caaaae], 0],
  ['an address that is no variable', [0xd280800e, 0xf2a2466e], 0],
])('the active table by %s', (_, pieces, address) =>
  expect(activeIndexIn([0xd503201f, ...pieces, ...USE])).toBe(address),
);

test.each([25, 27, 29])('a process of OTP %i has no frame pointer', (release) => {
  const [amd64, arm64] = [layoutOf(release, 'x86_64'), layoutOf(release, 'aarch64')];
  expect(arm64).toEqual({ ...amd64, resumed: amd64.resumed - 8 });
});
