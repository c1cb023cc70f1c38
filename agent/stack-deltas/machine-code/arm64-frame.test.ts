import { describe, expect, it } from 'vitest';
import { describeRule } from '../rules/describe.ts';
import { AARCH64 } from './arm64-frame.ts';
import { CodeWalk } from './walk.ts';

const START = 0x1000;
const RET = 0xd65f03c0;
const NOP = 0xd503201f;
const BL_NEXT_BUT_ONE = 0x94000002;
/** stp x29, x30, [sp, #-32]!, and back: ldp x29, x30, [sp], #32 */
const [PUSH, POP] = [0xa9be7bfd, 0xa8c27bfd];
const MOV_X29_SP = 0x910003fd;

/** `+0 sp+0 same x30`, a line an instruction: CFA, the caller's x29, the return address. */
function walkOf(words: readonly number[]): string[] {
  const bytes = Buffer.alloc(4 * words.length);
  for (const [i, word] of words.entries()) bytes.writeUInt32LE(word, 4 * i);
  const read = (at: number) =>
    at >= START && at < START + bytes.length ? { start: START, bytes } : undefined;
  const options = { covered: () => false, maxInstructions: 1000, maxGuesses: 1000, maxStarts: 100 };
  const walk = new CodeWalk(AARCH64, read, options);
  walk.addStart(START, true);
  walk.run();
  return Array.from(walk.instructions(), ({ address, state }) => {
    const { cfa, fp, ra } = describeRule(state.toRule(), 'aarch64');
    return `+${address - START} ${cfa} ${fp} ${ra}`;
  });
}

describe("arm64's machine code without unwind information", () => {
  it('keeps its return address in x30 until that is saved', () => {
    expect(walkOf([NOP, PUSH, MOV_X29_SP, POP, RET])).toEqual([
      '+0 sp+0 same x30',
      '+4 sp+0 same x30',
      '+8 sp+32 cfa-32 cfa-24',
      '+12 sp+32 cfa-32 cfa-24',
      '+16 sp+0 same x30',
    ]);
  });

  it('saves registers in room that was made before, and moves the stack pointer by two kinds of constants', () => {
    // sub sp, sp, #48; str x30, [sp, #40]; sub sp, sp, #1, lsl #12; add sp, sp, #1, lsl #12; ldr x30, [sp, #40]; add sp, sp, #48; ret
    expect(walkOf([0xd100c3ff, 0xf90017fe, 0xd14007ff, 0x914007ff, 0xf94017fe, 0x9100c3ff, RET])).toEqual([
      '+0 sp+0 same x30',
      '+4 sp+48 same x30',
      '+8 sp+48 same cfa-8',
      '+12 sp+4144 same cfa-8',
      '+16 sp+48 same cfa-8',
      '+20 sp+48 same x30',
      '+24 sp+0 same x30',
    ]);
  });

  it('has its frame at x29 while the stack pointer moves by a variable', () => {
    // sub sp, sp, x0; mov sp, x29
    expect(walkOf([PUSH, MOV_X29_SP, 0xcb2063ff, 0x910003bf, POP, RET])).toEqual([
      '+0 sp+0 same x30',
      '+4 sp+32 cfa-32 cfa-24',
      '+8 sp+32 cfa-32 cfa-24',
      '+12 x29+32 cfa-32 cfa-24',
      '+16 sp+32 cfa-32 cfa-24',
      '+20 sp+0 same x30',
    ]);
  });

  it('goes both ways at a branch', () => {
    // cbz x0, +8
    expect(walkOf([0xb4000040, RET, RET])).toHaveLength(3);
  });

  it('is not followed behind a call that overwrites its return address', () => {
    expect(walkOf([NOP, BL_NEXT_BUT_ONE, NOP, RET]).map((line) => line.split(' ')[0])).toEqual([
      '+0',
      '+4',
      // what is called
      '+12',
    ]);
  });

  it('ends where another function begins behind a call', () => {
    expect(walkOf([PUSH, BL_NEXT_BUT_ONE, PUSH, RET]).map((line) => line.split(' ')[0])).toEqual([
      '+0',
      '+4',
      '+12',
    ]);
  });

  it('says nothing of a function that returns with another stack than it was called with', () => {
    expect(walkOf([PUSH, RET])).toEqual([]);
  });
});
