/**
 * Rules from Go's own table of functions, for what .eh_frame and .debug_frame leave out: all of a stripped program.
 * A few functions of the runtime are the root of a stack or go over to another one; their rules are known by name.
 * Facts: cmd/internal/obj/{x86,arm64} (frame layout), runtime/{asm,sys_linux}_{amd64,arm64}.s of Go 1.16 to 1.27.
 */

import { OutOfBounds } from '../../../common/base/byte-source.ts';
import type { Machine } from '../../../common/elf/elf.ts';
import { findInstructions } from '../../../common/elf/go-instructions.ts';
import type { GoFunction, GoPclntab } from '../../../common/elf/go-pclntab.ts';
import { RuleKind, ValueKind } from '../../records/records.gen.ts';
import { REGISTERS } from '../rules/cfi-state.ts';
import type { FunctionRows } from '../rules/rows.ts';
import {
  framePointerRule,
  INVALID_RULE,
  newRule,
  type Rule,
  type RuleTable,
  STOP_RULE,
  UNKNOWN_RULE,
} from '../rules/rules.ts';
import { readGoroutineRule, TAKES_SCHEDULER } from './go-goroutine.ts';

/**
 * `root`: nothing called it. `switch`: it goes over to another stack and keeps its frame pointer, or, where it has no
 * frame, its caller's. Where it has a frame, all but its prologue and epilogue does. `leave`: it takes up another stack
 * and jumps to where that was left, which no rule can tell from then on. `schedule`: it saves where its goroutine is and
 * takes up the scheduler's stack, on which the goroutine's is what comes next (go-goroutine.ts).
 */
type Special = 'root' | 'switch' | 'leave' | 'schedule';

const SPECIAL: ReadonlyMap<string, Special> = new Map([
  ['runtime.goexit', 'root'],
  ['runtime.mstart', 'root'],
  ['runtime.rt0_go', 'root'],
  ['_rt0_amd64', 'root'],
  ['_rt0_amd64_linux', 'root'],
  ['_rt0_arm64_linux', 'root'],
  ['runtime.mcall', 'schedule'],
  ['runtime.morestack', 'schedule'],
  ['runtime.systemstack', 'switch'],
  ['runtime.asmcgocall', 'switch'],
  ['runtime.cgocallback', 'switch'],
  ['runtime.nanotime1', 'switch'],
  ['runtime.walltime', 'switch'],
  ['time.now', 'switch'],
  ['runtime.gogo', 'leave'],
  // its second half, since Go 1.17
  ['gogo', 'leave'],
]);
/** The instruction that takes up the other stack: mov 0(%rbx), %rsp and mov sp, x0. */
const LEAVES: Readonly<Record<Machine, string>> = { x86_64: '488b23', aarch64: '1f000091' };
const MAX_LEAVING_BYTES = 256;
const MAX_FRAME_BYTES = 0x7fff_fff0;
const RETURN_ADDRESS_BYTES = 8;
/** Offsets of rules have 16 bits. */
const LARGEST_FRAME_BYTES = 32_768 - RETURN_ADDRESS_BYTES;

export interface GoFrames {
  /** What unwind information says of a function that begins there is disregarded. */
  isSpecial(start: number): boolean;
  /** Adds rows for those that `covered` says nothing about; how many these are. */
  addRows(rows: FunctionRows, rules: RuleTable, covered: (address: number) => boolean): number;
}

/** Bytes of code, undefined where the file has none there. */
export type ReadGoCode = (start: number, size: number) => Uint8Array | undefined;

export function readGoFrames(table: GoPclntab, machine: Machine, readCode: ReadGoCode): GoFrames {
  const names = table.placesOf(SPECIAL.keys());
  const special = new Map<number, Special>();
  let goroutine: Readonly<Rule> | undefined;
  for (const { start, end, nameAt } of table.functions()) {
    const kind = SPECIAL.get(names.get(nameAt) ?? '');
    if (kind) special.set(start, kind);
    if (kind === 'schedule' && machine === 'x86_64')
      goroutine ??= readGoroutineRule(readCode(start, Math.min(end - start, MAX_LEAVING_BYTES)));
  }
  return {
    isSpecial: (start) => special.has(start),
    addRows: (rows, rules, covered) => {
      const writer = new GoRows(table, machine, {
        ...{ rows, rules, readCode },
        goroutine: goroutine ?? UNKNOWN_RULE,
      });
      let added = 0;
      for (const f of table.functions()) {
        if (covered(f.start)) continue;
        writer.add(f, special.get(f.start));
        added++;
      }
      return added;
    },
  };
}

interface GoTarget {
  rows: FunctionRows;
  rules: RuleTable;
  readCode: ReadGoCode;
  /** Of what has taken up the scheduler's stack. */
  goroutine: Readonly<Rule>;
}

class GoRows {
  readonly #table: GoPclntab;
  readonly #machine: Machine;
  readonly #rows: FunctionRows;
  readonly #rules: RuleTable;
  readonly #readCode: ReadGoCode;
  readonly #rule: Rule = newRule({ kind: RuleKind.CFA });
  readonly #goroutine: Readonly<Rule>;

  constructor(table: GoPclntab, machine: Machine, { rows, rules, readCode, goroutine }: GoTarget) {
    this.#table = table;
    this.#machine = machine;
    this.#rows = rows;
    this.#rules = rules;
    this.#readCode = readCode;
    this.#goroutine = goroutine;
    this.#rule.cfaReg = REGISTERS[machine].sp;
  }

  add(f: GoFunction, special: Special | undefined): void {
    const rows = this.#rows;
    rows.beginFunction(f.start, f.end);
    if (special === 'root') rows.addRow(f.start, this.#rules.intern(STOP_RULE));
    else if (!this.#tryAddBySize(f, special)) {
      rows.dropFunction();
      return;
    }
    rows.endFunction();
  }

  /** Behind the instruction; nothing where there is none. */
  #findLeaving({ start, end }: GoFunction, leaves: string): number | undefined {
    const bytes = this.#readCode(start, Math.min(end - start, MAX_LEAVING_BYTES));
    const found = bytes && findInstructions(bytes, leaves);
    return found && start + found.end;
  }

  /** A program that is broken costs its own function only. */
  #tryAddBySize(f: GoFunction, special: Special | undefined): boolean {
    try {
      if (special === 'leave') return this.#addLeaving(f, LEAVES[this.#machine], UNKNOWN_RULE);
      if (special === 'schedule') return this.#addLeaving(f, TAKES_SCHEDULER[this.#machine], this.#goroutine);
      return this.#addBySize(f, special === 'switch' ? this.#largest(f) : undefined);
    } catch (error) {
      if (error instanceof OutOfBounds) return false;
      throw error;
    }
  }

  /** Up to the instruction that takes up the other stack by its own, from then on by another rule. */
  #addLeaving(f: GoFunction, leaves: string, rule: Readonly<Rule>): boolean {
    const left = this.#findLeaving(f, leaves);
    if (!this.#addBySize(f, undefined, left)) return false;
    if (left !== undefined) this.#rows.addRow(left, this.#rules.intern(rule));
    return true;
  }

  /** `switched`: with a stack of that size, the frame pointer is what counts. */
  #addBySize(f: GoFunction, switched: number | undefined, before = Infinity): boolean {
    return this.#table.stackSizes(f, (address, bytes) => {
      if (address >= before) return;
      const rule = bytes === switched ? this.#switched(bytes) : this.#ruleFor(bytes);
      this.#rows.addRow(address, rule === INVALID_RULE ? 0 : this.#rules.intern(rule));
    });
  }

  #switched(bytes: number): Readonly<Rule> {
    const { fp } = REGISTERS[this.#machine];
    const isBelowFrame = this.#machine === 'aarch64' && bytes >= 16 && bytes <= LARGEST_FRAME_BYTES;
    return framePointerRule(fp, isBelowFrame ? bytes : RETURN_ADDRESS_BYTES);
  }

  #largest(f: GoFunction): number {
    let largest = 0;
    this.#table.stackSizes(f, (_address, bytes) => {
      largest = Math.max(largest, bytes);
    });
    return largest;
  }

  #ruleFor(bytes: number): Readonly<Rule> {
    if (bytes < 0 || bytes > MAX_FRAME_BYTES) return INVALID_RULE;
    return this.#machine === 'x86_64' ? this.#amd64(bytes) : this.#arm64(bytes);
  }

  /** A frame of at least one word begins with the caller's frame pointer, below the return address. */
  #amd64(bytes: number): Readonly<Rule> {
    const rule = this.#rule;
    rule.cfaOffset = bytes + RETURN_ADDRESS_BYTES;
    rule.raKind = ValueKind.CFA;
    rule.raOffset = -RETURN_ADDRESS_BYTES;
    rule.fpKind = bytes >= 8 ? ValueKind.CFA : ValueKind.SAME;
    rule.fpOffset = bytes >= 8 ? -2 * RETURN_ADDRESS_BYTES : 0;
    return rule;
  }

  /** The return address lies at the stack pointer, the caller's frame pointer below that. */
  #arm64(bytes: number): Readonly<Rule> {
    const rule = this.#rule;
    if (bytes > LARGEST_FRAME_BYTES) return framePointerRule(REGISTERS.aarch64.fp);
    rule.cfaOffset = bytes;
    rule.raKind = bytes === 0 ? ValueKind.REGISTER : ValueKind.CFA;
    rule.raOffset = bytes === 0 ? REGISTERS.aarch64.ra : -bytes;
    rule.fpKind = bytes === 0 ? ValueKind.SAME : ValueKind.CFA;
    rule.fpOffset = bytes === 0 ? 0 : -bytes - 8;
    return rule;
  }
}
