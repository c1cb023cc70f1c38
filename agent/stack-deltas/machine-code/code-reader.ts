/** What the walk through machine code knows of a processor: its instructions, and what they do to a frame. */
import type { Rule } from '../rules/rules.ts';

/** What an instruction means for the stack and for what runs next. */
export const Effect = {
  NONE: 0,
  /** rsp moves down by `value` bytes (up where it is negative). */
  MOVE_SP: 1,
  PUSH_FP: 2,
  POP_FP: 3,
  /** rbp = rsp + value. */
  SET_FP: 4,
  /** rsp = rbp + value. */
  SP_FROM_FP: 5,
  LEAVE: 6,
  /** rsp becomes something that is not followed: aligned, or of variable size. */
  LOSE_SP: 7,
  /** rbp becomes something else. */
  LOSE_FP: 8,
  /** `value` is the address that is called. */
  CALL: 9,
  JUMP: 10,
  /** A jump that may not be taken. */
  BRANCH: 11,
  /** To where a register or memory says. */
  JUMP_INDIRECT: 12,
  RETURN: 13,
  /** Nothing runs behind it. */
  END: 14,
  /** `value` is an address that is loaded. */
  LOAD_ADDRESS: 15,
  /** Fills up to the next function. */
  PADDING: 16,
  /** Not understood, or cut short by the end of the code. */
  UNKNOWN: 17,
  CALL_INDIRECT: 18,
  /** arm64: registers are saved to the stack or come back from there, and the stack pointer may move. */
  STACK_ACCESS: 19,
  /** arm64: x30 becomes something else. */
  LOSE_LINK: 20,
} as const;

/** Reads instructions one after the other; nothing is allocated for each. */
export interface CodeReader {
  /** Bytes of the instruction. */
  readonly length: number;
  readonly effect: number;
  readonly value: number;
  /** It saves a register that belongs to the caller: functions begin so. */
  readonly savesRegister: boolean;
  /** What has called another function does not do so: it is the first instruction of a function, or in its prologue. */
  readonly beginsFunction: boolean;
  /** A jump to where a word of the file's own data says, which a linker or loader fills in. */
  readonly isImported: boolean;
  /** A jump to where a word of a table says, counted from the table: that of a switch. */
  readonly usesTable: boolean;
  /** Zero bytes, which are not code. */
  readonly isZero: boolean;
  /** Of the instruction at `offset`: sets the fields above. */
  read(offset: number): void;
}

/** Where the frame is before an instruction. */
export interface FrameTracker {
  /** One number for each state. */
  key: number;
  /** How far below the CFA the frame pointer points; -1: that register has another value. */
  readonly framePointer: number;
  /** Whether a function may return, or go to another one, like this. */
  readonly isAsAtEntry: boolean;
  /** Whether what is called leaves the return address of this frame alone. */
  readonly isSafeFromCalls: boolean;
  toRule(): Rule;
  /** After the instruction; false where that can't be told. */
  apply(reader: CodeReader): boolean;
}

export interface Processor {
  newReader(code: Uint8Array, base: number): CodeReader;
  /** As at the entry of a function. */
  newFrame(): FrameTracker;
  /** Of the functions whose addresses are loaded. */
  loadedAlignment: number;
  /** Last byte of what ends a function, or fills up behind one. */
  lastBytes: ReadonlySet<number>;
}
