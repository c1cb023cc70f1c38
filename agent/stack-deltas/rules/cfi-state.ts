/** What a call frame program has established at one point: the CFA and where fp and return address are saved. */
import { CalleeSaved, EF_RULE_INTERRUPTED, RuleKind, ValueKind } from '../../records/records.gen.ts';
import { INVALID_RULE, type Rule, SIGNAL_RULE, STOP_RULE } from './rules.ts';

export interface Registers {
  fp: number;
  sp: number;
  ra: number;
  /** VG, the number of 8-byte units in a vector, which is the thread's; where CFAs may count in it. */
  vg?: number;
  /** The callee-saved register (ebpf/records.h), where the rules say what becomes of it. */
  calleeSaved?: number;
}

/** DWARF register numbers: System V ABI of amd64 (figure 3.36), of arm64 (AADWARF64). */
export const REGISTERS: Readonly<Record<'x86_64' | 'aarch64', Registers>> = {
  x86_64: { fp: 6, sp: 7, ra: 16 },
  aarch64: { fp: 29, sp: 31, ra: 30, vg: 46 },
};

/** Where it lies above the stack pointer: struct rt_sigframe of each architecture's kernel, as in ebpf/arch-*.h. */
const SIGNAL_PC_AT: Readonly<Record<'x86_64' | 'aarch64', number>> = { x86_64: 168, aarch64: 568 };

/** The callee-saved register that CFAs may count from, or in which BEAM has the Erlang stack. */
export const CALLEE_SAVED: Readonly<Record<'x86_64' | 'aarch64', number>> = {
  x86_64: 3,
  aarch64: 20,
};

/** Beside the rule kinds: a CFA that cannot be expressed. */
export const CFA_UNSUPPORTED = 0xff;
/** Beside the value kinds: a place that cannot be expressed. */
export const VALUE_UNSUPPORTED = 0xff;

/** Reasons for which a row says less than its input, by kind; each is one row. */
export interface UnsupportedCfi {
  cfaExpression: number;
  cfaRegister: number;
  fp: number;
  returnAddress: number;
  /** The caller's stack pointer is something else than the CFA, as in setcontext(). */
  stackPointer: number;
  offsetRange: number;
}

export const newUnsupportedCfi = (): UnsupportedCfi => ({
  cfaExpression: 0,
  cfaRegister: 0,
  fp: 0,
  returnAddress: 0,
  stackPointer: 0,
  offsetRange: 0,
});

/**
 * What the PLT of arm64 has pushed where a function is looked up at its first call: x16 and x30. The unwind information of
 * glibc's `_dl_runtime_resolve` says that x30 lies there, 8 bytes above a CFA that it takes for the stack pointer at its own
 * entry, as if the caller had none of it: sysdeps/aarch64/dl-trampoline.S, up to 2.41 at least.
 */
const PLT_PAIR_BYTES = 16;
const PLT_LINK_AT = 8;

const fits16 = (offset: number): boolean => offset >= -32768 && offset <= 32767;
const fits32 = (offset: number): boolean => offset >= -0x8000_0000 && offset <= 0x7fff_ffff;
/** Highest general register: the unwinder keeps them all for the leaf frame. */
const lastRegister = (isX86: boolean): number => (isX86 ? 15 : 31);

export class CfiState {
  cfaKind: number = CFA_UNSUPPORTED;
  cfaReg = 0;
  cfaOffset = 0;
  cfaOffset2 = 0;
  fpKind: number = ValueKind.SAME;
  fpOffset = 0;
  raKind: number = ValueKind.SAME;
  raOffset = 0;
  /** Of the callee-saved register: as in the rule. */
  calleeSaved: number = CalleeSaved.SAME;
  /** The stack pointer has a rule of its own. */
  spMoved = false;
  #isExpression = false;
  /** Offset of the last CFA that was not an expression. */
  #plainOffset = 0;

  copyFrom(other: CfiState): void {
    this.cfaKind = other.cfaKind;
    this.cfaReg = other.cfaReg;
    this.cfaOffset = other.cfaOffset;
    this.cfaOffset2 = other.cfaOffset2;
    this.fpKind = other.fpKind;
    this.fpOffset = other.fpOffset;
    this.raKind = other.raKind;
    this.raOffset = other.raOffset;
    this.calleeSaved = other.calleeSaved;
    this.spMoved = other.spMoved;
    this.#isExpression = other.#isExpression;
    this.#plainOffset = other.#plainOffset;
  }

  setCfa(reg: number, offset: number): void {
    this.setCfaExpression(RuleKind.CFA, reg, offset, 0);
    this.#isExpression = false;
    this.#plainOffset = offset;
  }

  setCfaExpression(kind: number, reg: number, offset: number, offset2: number): void {
    this.cfaKind = kind;
    this.cfaReg = reg;
    this.cfaOffset = offset;
    this.cfaOffset2 = offset2;
    this.#isExpression = true;
  }

  /**
   * DW_CFA_def_cfa_register. Not valid while the CFA is an expression (DWARF 5, section 6.4.2.2), but assembly
   * code does it (libgcrypt's), because GCC's and GNU's unwinders then return to the last plain offset.
   */
  setCfaRegister(reg: number): void {
    if (this.cfaKind === CFA_UNSUPPORTED && !this.#isExpression) return;
    this.setCfa(reg, this.#plainOffset);
  }

  /** DW_CFA_def_cfa_offset; while the CFA is an expression, it is kept for what comes after. */
  setCfaOffset(offset: number): void {
    this.#plainOffset = offset;
    if (this.cfaKind === RuleKind.CFA && !this.#isExpression) this.cfaOffset = offset;
  }

  /**
   * Writes the rule into `out`. `isSignal`: the CIE has the letter `S`, which says no more than that the caller's
   * program counter is not a return address; runtimes mark their own switches of stacks so (OCaml 5). What cannot be expressed
   * is counted. `out` is returned, or a constant rule.
   */
  toRule(
    isSignal: boolean,
    isX86: boolean,
    tellsCalleeSaved: boolean,
    out: Rule,
    counts: UnsupportedCfi,
  ): Readonly<Rule> {
    if (isSignal && this.#isKernelFrame(isX86)) return SIGNAL_RULE;
    if (this.raKind === ValueKind.UNDEFINED) return STOP_RULE;
    if (this.cfaKind === CFA_UNSUPPORTED) {
      counts.cfaExpression++;
      return INVALID_RULE;
    }
    if (this.cfaReg > lastRegister(isX86)) {
      counts.cfaRegister++;
      return INVALID_RULE;
    }
    if (this.spMoved) {
      counts.stackPointer++;
      return INVALID_RULE;
    }
    if (!this.#hasReturnAddress(isX86)) {
      counts.returnAddress++;
      return INVALID_RULE;
    }
    if (!fits32(this.cfaOffset) || !fits32(this.cfaOffset2) || !fits16(this.raOffset)) {
      counts.offsetRange++;
      return INVALID_RULE;
    }
    out.kind = this.cfaKind;
    out.cfaReg = isSignal ? this.cfaReg | EF_RULE_INTERRUPTED : this.cfaReg;
    out.cfaOffset = this.cfaOffset;
    out.cfaOffset2 = tellsCalleeSaved && this.cfaKind === RuleKind.CFA ? this.calleeSaved : this.cfaOffset2;
    // arm64: it is still in the link register
    const isInLink = this.raKind === ValueKind.SAME;
    out.raKind = isInLink ? ValueKind.REGISTER : this.raKind;
    out.raOffset = isInLink ? REGISTERS.aarch64.ra : this.raOffset;
    out.fpKind = this.fpKind;
    out.fpOffset = this.fpOffset;
    if (this.fpKind === VALUE_UNSUPPORTED || !fits16(this.fpOffset)) {
      // the caller's frame pointer is lost, its stack pointer and return address are not
      counts.fp++;
      out.fpKind = ValueKind.UNDEFINED;
      out.fpOffset = 0;
    }
    if (!isX86 && this.#isBehindPltPair()) {
      out.cfaOffset += PLT_PAIR_BYTES;
      out.raOffset -= PLT_PAIR_BYTES;
    }
    return out;
  }

  #isBehindPltPair(): boolean {
    const isFromSp = this.cfaKind === RuleKind.CFA && this.cfaReg === REGISTERS.aarch64.sp;
    const isLinkAbove = this.raKind === ValueKind.CFA && this.raOffset === PLT_LINK_AT;
    // who keeps x29, too, has room of the caller's for both (libffi)
    return isFromSp && isLinkAbove && this.fpKind === ValueKind.SAME;
  }

  /** The caller's program counter is where the kernel puts that of the code that a signal interrupts. */
  #isKernelFrame(isX86: boolean): boolean {
    const { sp } = isX86 ? REGISTERS.x86_64 : REGISTERS.aarch64;
    const at = isX86 ? SIGNAL_PC_AT.x86_64 : SIGNAL_PC_AT.aarch64;
    if (this.raKind === ValueKind.STACK) return this.raOffset === at;
    const isFromSp = this.cfaKind === RuleKind.CFA && this.cfaReg === sp;
    return isFromSp && this.raKind === ValueKind.CFA && this.cfaOffset + this.raOffset === at;
  }

  #hasReturnAddress(isX86: boolean): boolean {
    if (this.raKind === ValueKind.REGISTER) return this.raOffset <= lastRegister(isX86);
    // amd64 has no link register: "the same" says nothing
    if (this.raKind === ValueKind.SAME) return !isX86;
    return this.raKind !== ValueKind.UNDEFINED && this.raKind !== VALUE_UNSUPPORTED;
  }
}
