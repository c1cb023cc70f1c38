/**
 * Unwind rules: how to get from a frame to its caller. The fields are those of struct ef_rule (ebpf/records.h).
 * Rules are interned, because a file of a million rows has only some hundred different ones.
 */
import { RuleKind, ValueKind } from '../tracer/records.gen.ts';

export interface Rule {
  kind: number;
  /** DWARF register number. */
  cfaReg: number;
  fpKind: number;
  raKind: number;
  cfaOffset: number;
  cfaOffset2: number;
  fpOffset: number;
  raOffset: number;
}

const plain = (kind: number): Rule => ({
  kind,
  cfaReg: 0,
  fpKind: ValueKind.UNDEFINED,
  raKind: ValueKind.UNDEFINED,
  cfaOffset: 0,
  cfaOffset2: 0,
  fpOffset: 0,
  raOffset: 0,
});

export const INVALID_RULE: Readonly<Rule> = plain(RuleKind.INVALID);
export const STOP_RULE: Readonly<Rule> = plain(RuleKind.STOP);
export const SIGNAL_RULE: Readonly<Rule> = plain(RuleKind.SIGNAL);
export const FRAME_POINTER_RULE: Readonly<Rule> = plain(RuleKind.FRAME_POINTER);

/** Row ids are 16 bits wide; the last one is never given out. */
export const MAX_RULES = 65_535;

export class RuleTable {
  /** Rule 0 is the invalid one. */
  readonly rules: Rule[] = [];
  /** Rules that did not fit; their rows are invalid. */
  overflow = 0;
  readonly #ids = new Map<number, Map<number, number[]>>();

  constructor() {
    this.intern(INVALID_RULE);
  }

  /** Id of an equal rule; the argument is copied, so a caller may go on changing it. */
  intern(rule: Readonly<Rule>): number {
    const outer = ((rule.cfaOffset + 0x8000_0000) * 32 + rule.cfaReg) * 8 + rule.kind;
    const inner =
      ((rule.fpOffset + 32768) * 65536 + rule.raOffset + 32768) * 64 + rule.fpKind * 8 + rule.raKind;
    let byFp = this.#ids.get(outer);
    if (!byFp) {
      byFp = new Map();
      this.#ids.set(outer, byFp);
    }
    let candidates = byFp.get(inner);
    if (!candidates) {
      candidates = [];
      byFp.set(inner, candidates);
    }
    // they differ in the second offset only, which is almost always 0
    for (const id of candidates) if (this.rules[id]!.cfaOffset2 === rule.cfaOffset2) return id;
    if (this.rules.length >= MAX_RULES) {
      this.overflow++;
      return 0;
    }
    const id = this.rules.push({ ...rule }) - 1;
    candidates.push(id);
    return id;
  }
}
