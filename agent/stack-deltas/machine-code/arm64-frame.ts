/**
 * Where a function's frame is on arm64. Unlike on x86-64 the return address comes in a register, x30; what calls others
 * saves it, mostly together with the caller's frame pointer.
 */
import { RuleKind, ValueKind } from '../../records/records.gen.ts';
import { REGISTERS } from '../rules/cfi-state.ts';
import { newRule, type Rule } from '../rules/rules.ts';
import { Arm64Reader } from './arm64-instruction.ts';
import { Effect, type FrameTracker, type Processor } from './code-reader.ts';

const STACK_ALIGNMENT = 16;
/** A key is one number: 16 bits for where sp is, 13 for x29, 12 for each of the others. */
const MAX_OFFSET = 1 << 19;
const MAX_SAVED = 32_760;
const SLOT_BYTES = 8;
const SLOTS = 2 ** 12;
const UNKNOWN = -1;

/** Offsets are counted down from the CFA, which is sp at the function's entry. */
class Arm64Frame implements FrameTracker {
  /** Not known while sp is moved by a variable amount. */
  #sp = 0;
  /** Where x29 points while it is the frame pointer. */
  #fp = UNKNOWN;
  /** Where the caller's x29 and the return address are saved; 0: still in x29, x30. */
  #savedFp = 0;
  #savedLink = 0;

  get key(): number {
    const slots = [this.#fp === UNKNOWN ? 0 : this.#fp / SLOT_BYTES + 1, this.#savedFp, this.#savedLink];
    const [fp, savedFp, savedLink] = [slots[0]!, slots[1]! / SLOT_BYTES, slots[2]! / SLOT_BYTES];
    const sp = this.#sp === UNKNOWN ? 0 : this.#sp / STACK_ALIGNMENT + 1;
    return ((sp * 2 * SLOTS + fp) * SLOTS + savedFp) * SLOTS + savedLink;
  }

  set key(key: number) {
    this.#savedLink = (key % SLOTS) * SLOT_BYTES;
    this.#savedFp = (Math.floor(key / SLOTS) % SLOTS) * SLOT_BYTES;
    const fp = Math.floor(key / SLOTS ** 2) % (2 * SLOTS);
    this.#fp = fp === 0 ? UNKNOWN : (fp - 1) * SLOT_BYTES;
    const sp = Math.floor(key / (2 * SLOTS ** 3));
    this.#sp = sp === 0 ? UNKNOWN : (sp - 1) * STACK_ALIGNMENT;
  }

  get framePointer(): number {
    return this.#fp;
  }

  get isAsAtEntry(): boolean {
    return this.#sp === 0 && this.#savedFp === 0 && this.#savedLink === 0;
  }

  get isSafeFromCalls(): boolean {
    return this.#savedLink !== 0;
  }

  toRule(): Rule {
    const { fp, sp, ra } = REGISTERS.aarch64;
    const isFramePointer = this.#sp === UNKNOWN;
    const [isFpSaved, isLinkSaved] = [this.#savedFp !== 0, this.#savedLink !== 0];
    return newRule({
      kind: RuleKind.CFA,
      cfaReg: isFramePointer ? fp : sp,
      cfaOffset: isFramePointer ? this.#fp : this.#sp,
      fpKind: isFpSaved ? ValueKind.CFA : ValueKind.SAME,
      fpOffset: isFpSaved ? -this.#savedFp : 0,
      raKind: isLinkSaved ? ValueKind.CFA : ValueKind.REGISTER,
      raOffset: isLinkSaved ? -this.#savedLink : ra,
    });
  }

  apply(reader: Arm64Reader): boolean {
    const { effect, value } = reader;
    switch (effect) {
      case Effect.MOVE_SP:
        return this.#moveSp(value);
      case Effect.STACK_ACCESS:
        return this.#moveSp(-reader.before) && this.#access(reader) && this.#moveSp(-reader.after);
      case Effect.SET_FP:
        return this.#setFp(value);
      case Effect.SP_FROM_FP:
        return this.#fp !== UNKNOWN && this.#setSp(this.#fp - value);
      case Effect.LOSE_SP:
        this.#sp = UNKNOWN;
        return this.#fp !== UNKNOWN;
      case Effect.LOSE_FP:
        this.#fp = UNKNOWN;
        return this.#savedFp !== 0 && this.#sp !== UNKNOWN;
      case Effect.LOSE_LINK:
        return this.#savedLink !== 0;
      default:
        return true;
    }
  }

  #moveSp(bytes: number): boolean {
    if (this.#sp === UNKNOWN) return this.#fp !== UNKNOWN;
    return this.#setSp(this.#sp + bytes);
  }

  #setSp(sp: number): boolean {
    this.#sp = sp;
    return sp >= 0 && sp <= MAX_OFFSET && sp % STACK_ALIGNMENT === 0;
  }

  #setFp(value: number): boolean {
    if (this.#sp === UNKNOWN || this.#savedFp === 0) return false;
    this.#fp = this.#sp - value;
    return this.#fp >= SLOT_BYTES && this.#fp <= MAX_SAVED && this.#fp % SLOT_BYTES === 0;
  }

  #access({ isLoad, fpAt, linkAt }: Arm64Reader): boolean {
    if (fpAt < 0 && linkAt < 0) return true;
    if (this.#sp === UNKNOWN) return false;
    const [fp, link] = [this.#sp - fpAt, this.#sp - linkAt];
    return isLoad
      ? (fpAt < 0 || this.#restoreFp(fp)) && (linkAt < 0 || this.#restoreLink(link))
      : (fpAt < 0 || this.#saveFp(fp)) && (linkAt < 0 || this.#saveLink(link));
  }

  /** The first time: later it is a value of this function that is passed on. */
  #saveFp(at: number): boolean {
    if (this.#savedFp !== 0 || this.#fp !== UNKNOWN) return true;
    this.#savedFp = at;
    return isSlot(at);
  }

  #saveLink(at: number): boolean {
    if (this.#savedLink !== 0) return true;
    this.#savedLink = at;
    return isSlot(at);
  }

  /** From where it was saved: what follows relies on it. */
  #restoreFp(at: number): boolean {
    if (at !== this.#savedFp) return false;
    this.#savedFp = 0;
    this.#fp = UNKNOWN;
    return true;
  }

  #restoreLink(at: number): boolean {
    if (at !== this.#savedLink) return false;
    this.#savedLink = 0;
    return true;
  }
}

const isSlot = (at: number): boolean => at >= SLOT_BYTES && at <= MAX_SAVED && at % SLOT_BYTES === 0;

export const AARCH64: Processor = {
  newReader: (code, base) => new Arm64Reader(code, base),
  newFrame: () => new Arm64Frame(),
  // by a pair of instructions that is used for nothing else in code: -Os aligns no function
  loadedAlignment: 4,
  // ret, br and nop, udf, and b over less than 64 MiB, forwards and backwards
  lastBytes: new Set([0xd6, 0xd5, 0x00, 0x14, 0x17]),
};
