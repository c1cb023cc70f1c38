/** Where a function's frame is, instruction by instruction: what a compiler would have written as unwind information. */
import { RuleKind, ValueKind } from '../../records/records.gen.ts';
import { REGISTERS } from '../rules/cfi-state.ts';
import { newRule, type Rule } from '../rules/rules.ts';
import { Effect, type FrameTracker, type Processor } from './code-reader.ts';
import { InstructionReader } from './instruction.ts';

const MAX_OFFSET = 1 << 20;
const MAX_FP_OFFSET = 1 << 15;
const UNKNOWN = -1;

/** Offsets are counted down from the CFA: rsp = CFA - sp. */
class FrameState implements FrameTracker {
  /** Not known while rsp is aligned or moved by a variable amount. */
  sp = 8;
  /** Where rbp points while it is the frame pointer. */
  fp = UNKNOWN;
  /** Where the caller's rbp is saved; 0: it is still in rbp. */
  savedFp = 0;

  get key(): number {
    return (this.sp + 1) * 2 ** 32 + (this.fp + 1) * 2 ** 16 + this.savedFp;
  }

  set key(key: number) {
    this.sp = Math.floor(key / 2 ** 32) - 1;
    this.fp = (Math.floor(key / 2 ** 16) & 0xffff) - 1;
    this.savedFp = key % 2 ** 16;
  }

  get framePointer(): number {
    return this.fp;
  }

  /** It is on the stack. */
  readonly isSafeFromCalls = true;

  get isAsAtEntry(): boolean {
    return this.sp === 8 && this.savedFp === 0;
  }

  toRule(): Rule {
    const { fp, sp } = REGISTERS.x86_64;
    const isFramePointer = this.sp === UNKNOWN;
    return newRule({
      kind: RuleKind.CFA,
      cfaReg: isFramePointer ? fp : sp,
      cfaOffset: isFramePointer ? this.fp : this.sp,
      fpKind: this.savedFp === 0 ? ValueKind.SAME : ValueKind.CFA,
      fpOffset: this.savedFp === 0 ? 0 : -this.savedFp,
      raKind: ValueKind.CFA,
      raOffset: -8,
    });
  }

  apply({ effect, value }: InstructionReader): boolean {
    switch (effect) {
      case Effect.MOVE_SP:
        return this.#moveSp(value);
      case Effect.PUSH_FP:
        return this.#moveSp(8) && this.#saveFp();
      case Effect.POP_FP:
        return this.#popFp();
      case Effect.SET_FP:
        return this.#setFp(value);
      case Effect.SP_FROM_FP:
        return this.#setSp(this.fp === UNKNOWN ? UNKNOWN : this.fp - value);
      case Effect.LEAVE:
        return this.#setSp(this.fp) && this.#popFp();
      case Effect.LOSE_SP:
        this.sp = UNKNOWN;
        return this.fp !== UNKNOWN;
      case Effect.LOSE_FP:
        this.fp = UNKNOWN;
        return this.savedFp !== 0 && this.sp !== UNKNOWN;
      default:
        return true;
    }
  }

  #moveSp(bytes: number): boolean {
    if (this.sp === UNKNOWN) return this.fp !== UNKNOWN;
    return this.#setSp(this.sp + bytes);
  }

  #setSp(sp: number): boolean {
    this.sp = sp;
    return sp >= 8 && sp <= MAX_OFFSET;
  }

  /** The first push saves it; later ones pass on a value of this function. */
  #saveFp(): boolean {
    if (this.savedFp !== 0 || this.fp !== UNKNOWN) return true;
    if (this.sp === UNKNOWN || this.sp > MAX_FP_OFFSET) return false;
    this.savedFp = this.sp;
    return true;
  }

  /** From where it was saved: what follows relies on it. */
  #popFp(): boolean {
    if (this.sp === UNKNOWN || this.sp !== this.savedFp) return false;
    this.savedFp = 0;
    this.fp = UNKNOWN;
    return this.#setSp(this.sp - 8);
  }

  #setFp(value: number): boolean {
    if (this.sp === UNKNOWN || this.savedFp === 0) return false;
    this.fp = this.sp - value;
    return this.fp >= 8 && this.fp <= MAX_FP_OFFSET;
  }
}

export const X86_64: Processor = {
  newReader: (code, base) => new InstructionReader(code, base),
  newFrame: () => new FrameState(),
  // other places in code are loaded, too
  loadedAlignment: 16,
  // ret, nop, int3, and the last byte of longer nops and of jumps that are not far
  lastBytes: new Set([0xc3, 0x90, 0xcc, 0x00, 0xff]),
};
