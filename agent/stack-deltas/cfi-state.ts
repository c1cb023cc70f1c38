/** What a call frame program has established at one point: the CFA and where fp and return address are saved. */
import { RuleKind, ValueKind } from '../tracer/records.gen.ts';
import { INVALID_RULE, type Rule, SIGNAL_RULE, STOP_RULE } from './rules.ts';

export interface Registers {
  fp: number;
  sp: number;
  ra: number;
}

/** DWARF register numbers: System V ABI of amd64 (figure 3.36), of arm64 (AADWARF64). */
export const REGISTERS: Readonly<Record<'x86_64' | 'aarch64', Registers>> = {
  x86_64: { fp: 6, sp: 7, ra: 16 },
  aarch64: { fp: 29, sp: 31, ra: 30 },
};

/** Beside the rule kinds: a CFA that cannot be expressed. */
export const CFA_UNSUPPORTED = 7;
/** Beside the value kinds: a place that cannot be expressed. */
export const VALUE_UNSUPPORTED = 7;

/** Reasons for which a row says less than its input, by kind; each is one row. */
export interface Inexpressible {
  cfaExpression: number;
  cfaRegister: number;
  fp: number;
  returnAddress: number;
  offsetRange: number;
}

const fits16 = (offset: number): boolean => offset >= -32768 && offset <= 32767;
const fits32 = (offset: number): boolean => offset >= -0x8000_0000 && offset <= 0x7fff_ffff;
/** Registers that the unwinder keeps in the leaf frame: all general ones. */
const MAX_REGISTER = 31;

export class CfiState {
  cfaKind: number = CFA_UNSUPPORTED;
  cfaReg = 0;
  cfaOffset = 0;
  cfaOffset2 = 0;
  fpKind: number = ValueKind.SAME;
  fpOffset = 0;
  raKind: number = ValueKind.SAME;
  raOffset = 0;

  copyFrom(other: CfiState): void {
    this.cfaKind = other.cfaKind;
    this.cfaReg = other.cfaReg;
    this.cfaOffset = other.cfaOffset;
    this.cfaOffset2 = other.cfaOffset2;
    this.fpKind = other.fpKind;
    this.fpOffset = other.fpOffset;
    this.raKind = other.raKind;
    this.raOffset = other.raOffset;
  }

  setCfa(reg: number, offset: number): void {
    this.cfaKind = RuleKind.CFA;
    this.cfaReg = reg;
    this.cfaOffset = offset;
    this.cfaOffset2 = 0;
  }

  /** Writes the rule into `out`; what cannot be expressed is counted. `out` is returned, or a constant rule. */
  toRule(isSignal: boolean, isX86: boolean, out: Rule, counts: Inexpressible): Readonly<Rule> {
    if (isSignal) return SIGNAL_RULE;
    if (this.raKind === ValueKind.UNDEFINED) return STOP_RULE;
    if (this.cfaKind === CFA_UNSUPPORTED) {
      counts.cfaExpression++;
      return INVALID_RULE;
    }
    if (this.cfaReg > MAX_REGISTER || (isX86 && this.cfaReg > 15)) {
      counts.cfaRegister++;
      return INVALID_RULE;
    }
    // on amd64 the return address is never left in a register of its own
    if (this.raKind === VALUE_UNSUPPORTED || (isX86 && this.raKind === ValueKind.SAME)) {
      counts.returnAddress++;
      return INVALID_RULE;
    }
    if (!fits32(this.cfaOffset) || !fits32(this.cfaOffset2) || !fits16(this.raOffset)) {
      counts.offsetRange++;
      return INVALID_RULE;
    }
    out.kind = this.cfaKind;
    out.cfaReg = this.cfaReg;
    out.cfaOffset = this.cfaOffset;
    out.cfaOffset2 = this.cfaOffset2;
    out.raKind = this.raKind;
    out.raOffset = this.raOffset;
    out.fpKind = this.fpKind;
    out.fpOffset = this.fpOffset;
    if (this.fpKind === VALUE_UNSUPPORTED || !fits16(this.fpOffset)) {
      // the caller's frame pointer is lost, its stack pointer and return address are not
      counts.fp++;
      out.fpKind = ValueKind.UNDEFINED;
      out.fpOffset = 0;
    }
    return out;
  }
}
