/**
 * Unwind rules: how to get from a frame to its caller. The fields are those of struct ef_rule (ebpf/records.h).
 * Rules are interned, because a file of a million rows has only some hundred different ones.
 */
import { RuleKind, ValueKind } from '../../records/records.gen.ts';

export interface Rule {
  kind: number;
  /** DWARF register number. */
  cfaReg: number;
  fpKind: number;
  raKind: number;
  cfaOffset: number;
  /** By kind (ebpf/records.h); of a plain CFA rule: what becomes of the callee-saved register (enum ef_callee_saved). */
  cfaOffset2: number;
  fpOffset: number;
  raOffset: number;
}

/**
 * The one place where rules are made: objects that get their fields in different ways are of different kinds to V8,
 * and what looks at a million of them is slow then.
 */
export const newRule = (fields: Partial<Rule>): Rule => ({
  kind: fields.kind ?? RuleKind.INVALID,
  cfaReg: fields.cfaReg ?? 0,
  fpKind: fields.fpKind ?? ValueKind.UNDEFINED,
  raKind: fields.raKind ?? ValueKind.UNDEFINED,
  cfaOffset: fields.cfaOffset ?? 0,
  cfaOffset2: fields.cfaOffset2 ?? 0,
  fpOffset: fields.fpOffset ?? 0,
  raOffset: fields.raOffset ?? 0,
});

export const INVALID_RULE: Readonly<Rule> = newRule({});
export const STOP_RULE: Readonly<Rule> = newRule({ kind: RuleKind.STOP });
export const UNKNOWN_RULE: Readonly<Rule> = newRule({ kind: RuleKind.UNKNOWN });
export const SIGNAL_RULE: Readonly<Rule> = newRule({ kind: RuleKind.SIGNAL });

/**
 * The frame pointer points at the caller's, above which the return address lies, `bytes` below the CFA: where nothing
 * else is in between, 8. What the stack pointer says doesn't matter, it may be that of another stack.
 */
export const framePointerRule = (fp: number, bytes = 8): Readonly<Rule> =>
  newRule({
    kind: RuleKind.FRAME_POINTER,
    cfaReg: fp,
    fpKind: ValueKind.CFA,
    raKind: ValueKind.CFA,
    cfaOffset: 8 + bytes,
    fpOffset: -8 - bytes,
    raOffset: -bytes,
  });

/** Row ids are 16 bits wide; the last one is never given out. */
export const MAX_RULES = 65_535;

const hashOf = (rule: Readonly<Rule>): number => {
  let hash = Math.imul(rule.cfaOffset ^ (rule.cfaReg << 24) ^ (rule.kind << 29), 0x9e3779b1);
  hash = Math.imul(hash ^ (hash >>> 15) ^ rule.cfaOffset2, 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13) ^ (rule.fpOffset << 8) ^ rule.fpKind, 0xc2b2ae35);
  hash = Math.imul(hash ^ (hash >>> 16) ^ (rule.raOffset << 8) ^ rule.raKind, 0x9e3779b1);
  return (hash ^ (hash >>> 15)) >>> 0;
};

const isSame = (a: Readonly<Rule>, b: Readonly<Rule>): boolean =>
  a.cfaOffset === b.cfaOffset &&
  a.cfaReg === b.cfaReg &&
  a.fpOffset === b.fpOffset &&
  a.fpKind === b.fpKind &&
  a.kind === b.kind &&
  a.raOffset === b.raOffset &&
  a.raKind === b.raKind &&
  a.cfaOffset2 === b.cfaOffset2;

/** A hash table with open addressing: it is asked once a row, and nothing is allocated for a rule that is known. */
export class RuleTable {
  /** Rule 0 is the invalid one. */
  readonly rules: Rule[] = [];
  /** Rows whose rule did not fit; they are invalid. */
  overflow = 0;
  /** Id + 1 of a rule by its hash; 0: free. Never more than half full. */
  #slots = new Uint32Array(512);

  constructor() {
    this.intern(INVALID_RULE);
  }

  /** Id of an equal rule; the argument is copied, so a caller may go on changing it. */
  intern(rule: Readonly<Rule>): number {
    const mask = this.#slots.length - 1;
    let slot = hashOf(rule) & mask;
    for (let taken = this.#slots[slot]!; taken !== 0; taken = this.#slots[slot]!) {
      if (isSame(this.rules[taken - 1]!, rule)) return taken - 1;
      slot = (slot + 1) & mask;
    }
    if (this.rules.length >= MAX_RULES) {
      this.overflow++;
      return 0;
    }
    const count = this.rules.push(newRule(rule));
    this.#slots[slot] = count;
    if (count * 2 > this.#slots.length) this.#grow();
    return count - 1;
  }

  #grow(): void {
    const slots = new Uint32Array(this.#slots.length * 2);
    for (const [id, rule] of this.rules.entries()) {
      let slot = hashOf(rule) & (slots.length - 1);
      while (slots[slot] !== 0) slot = (slot + 1) & (slots.length - 1);
      slots[slot] = id + 1;
    }
    this.#slots = slots;
  }
}
