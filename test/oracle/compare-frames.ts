/** Compares our stack deltas with readelf's rows, at every boundary of a row and one byte to either side. */

import { EF_RULE_INTERRUPTED, RuleKind, ValueKind } from '../../agent/records/records.gen.ts';
import { REGISTERS } from '../../agent/stack-deltas/rules/cfi-state.ts';
import { describeRule, type RuleText } from '../../agent/stack-deltas/rules/describe.ts';
import type { Rule } from '../../agent/stack-deltas/rules/rules.ts';
import type { StackDeltas } from '../../agent/stack-deltas/stack-deltas.ts';
import { lastAtOrBelow } from '../../common/base/search.ts';
import { evaluate, MadeUpProcess } from './readelf-expressions.ts';
import type { ReadelfFrames, ReadelfRule } from './readelf-frames.ts';

export interface Comparison {
  /** Addresses. */
  compared: number;
  /** Bytes that an FDE covers. */
  coveredBytes: number;
  /** What our rules cannot say, by kind: bytes of rows. */
  unsupportedCfi: Map<string, number>;
  /** What readelf's text does not say, by kind: bytes of rows that are not compared. */
  unsaid: Map<string, number>;
  differenceCount: number;
  /** The first few. */
  differences: string[];
}

/** 'same', a difference, or, after `?` what our rules can't say, after `~` what readelf's text doesn't. */
type Verdict = string;

const MAX_DIFFERENCES = 20;
const NO_FDE = -1;
const SIGNAL_EDGE = -2;

export const compareFrames = (deltas: StackDeltas, frames: ReadelfFrames): Comparison =>
  new Comparer(deltas, frames).compare();

class Comparer {
  readonly #deltas: StackDeltas;
  readonly #frames: ReadelfFrames;
  readonly #rowAddresses: Float64Array;
  /** FDEs by start; of two that begin at once the first in the file. */
  readonly #order: number[];
  readonly #starts: Float64Array;
  readonly #texts: RuleText[];
  readonly #verdicts = new Map<number, Verdict>();
  readonly #result: Comparison = {
    compared: 0,
    coveredBytes: 0,
    unsupportedCfi: new Map(),
    unsaid: new Map(),
    differenceCount: 0,
    differences: [],
  };

  constructor(deltas: StackDeltas, frames: ReadelfFrames) {
    this.#deltas = deltas;
    this.#frames = frames;
    this.#rowAddresses = Float64Array.from(frames.addresses);
    const { starts, ends } = frames;
    this.#order = starts
      .map((_, i) => i)
      .filter((i) => starts[i]! > 0 && ends[i]! > starts[i]!)
      .sort((a, b) => starts[a]! - starts[b]! || a - b)
      .filter((f, i, all) => i === 0 || starts[all[i - 1]!] !== starts[f]);
    this.#starts = Float64Array.from(this.#order, (i) => starts[i]!);
    this.#texts = deltas.rules.map((rule) => describeRule(rule, deltas.machine));
  }

  compare(): Comparison {
    let [a, b, c] = [NaN, NaN, NaN];
    for (const [i, fde] of this.#order.entries()) {
      for (const address of this.#boundaries(fde)) {
        // neighbours share their boundary
        if (address === a || address === b || address === c) continue;
        [a, b, c] = [b, c, address];
        this.#compareAt(address);
      }
      this.#addBytes(fde, i);
    }
    return this.#result;
  }

  *#boundaries(fde: number): Iterable<number> {
    const { starts, ends, firstRow, addresses } = this.#frames;
    const [start, end] = [starts[fde]!, ends[fde]!];
    yield* [start - 1, start, start + 1];
    const last = firstRow[fde + 1] ?? addresses.length;
    for (let row = firstRow[fde]!; row < last; row++) {
      const at = addresses[row]!;
      if (at > start && at < end) yield* [at - 1, at, at + 1];
    }
    yield* [end - 1, end, end + 1];
  }

  #compareAt(address: number): void {
    const result = this.#result;
    result.compared++;
    const ours = this.#ourRule(address);
    const expected = this.#ruleAt(address);
    const verdict = this.#verdict(ours, expected);
    if (verdict === 'same' || verdict[0] === '?' || verdict[0] === '~') return;
    if (expected === NO_FDE && this.#isKnownWithoutFde(address)) return;
    // a handler returns to the first byte of the trampoline, and is looked up one byte before: also where another function
    // ends there (valgrind's, on arm64, have no FDE)
    if (this.#texts[ours]!.kind === 'signal' && this.#isKnownWithoutFde(address + 1)) return;
    result.differenceCount++;
    if (result.differences.length < MAX_DIFFERENCES)
      result.differences.push(
        `0x${address.toString(16)}: ${JSON.stringify(this.#texts[ours])} but ${verdict}`,
      );
  }

  /** Bytes of each row, by what is said of it. */
  #addBytes(fde: number, index: number): void {
    const { ends, firstRow, addresses } = this.#frames;
    const end = Math.min(ends[fde]!, this.#starts[index + 1] ?? Infinity);
    const last = firstRow[fde + 1] ?? addresses.length;
    for (let row = firstRow[fde]!; row < last; row++) {
      const at = addresses[row]!;
      const bytes = Math.min(row + 1 < last ? addresses[row + 1]! : end, end) - at;
      if (bytes <= 0) continue;
      this.#result.coveredBytes += bytes;
      const verdict = this.#verdict(this.#ourRule(at), this.#frames.ruleIds[row]!);
      const kinds =
        verdict[0] === '?'
          ? this.#result.unsupportedCfi
          : verdict[0] === '~'
            ? this.#result.unsaid
            : undefined;
      const kind = verdict.slice(1);
      kinds?.set(kind, (kinds.get(kind) ?? 0) + bytes);
    }
  }

  #ourRule(address: number): number {
    const row = lastAtOrBelow(this.#deltas.addresses, address);
    return row < 0 ? 0 : this.#deltas.ruleIds[row]!;
  }

  /** The row that holds at an address is that of the function that begins last and has not ended. */
  #ruleAt(address: number): number {
    const { ends, firstRow, addresses, ruleIds } = this.#frames;
    const i = lastAtOrBelow(this.#starts, address);
    let isBehindSignal = false;
    for (let at = i; at >= 0 && at > i - 8; at--) {
      const fde = this.#order[at]!;
      if (address >= ends[fde]!) {
        if (address === ends[fde]! && this.#isSignal(fde)) isBehindSignal = true;
        continue;
      }
      const first = firstRow[fde]!;
      const rows = this.#rowAddresses.subarray(first, firstRow[fde + 1] ?? addresses.length);
      return ruleIds[first + Math.max(0, lastAtOrBelow(rows, address))]!;
    }
    if (isBehindSignal) return SIGNAL_EDGE;
    const next = this.#order[i + 1];
    if (next === undefined || this.#starts[i + 1] !== address + 1) return NO_FDE;
    return this.#isSignal(next) ? SIGNAL_EDGE : NO_FDE;
  }

  #isSignal(fde: number): boolean {
    const { firstRow, ruleIds, rules } = this.#frames;
    return rules[ruleIds[firstRow[fde]!]!]!.isSignal;
  }

  /** Another source than .eh_frame describes it: its PLT, its instructions. */
  #isKnownWithoutFde(address: number): boolean {
    const { starts, ends } = this.#deltas.stats.beyondEhFrame;
    return starts.some((start, i) => address >= start && address < ends[i]!);
  }

  #verdict(ours: number, expected: number): Verdict {
    const key = ours * 2 ** 32 + expected + 2;
    let verdict = this.#verdicts.get(key);
    if (verdict === undefined) {
      const { machine, rules } = this.#deltas;
      const rule: OurRule = { ...this.#texts[ours]!, rule: rules[ours]!, machine };
      verdict = judge(rule, expected, this.#frames.rules[expected]);
      this.#verdicts.set(key, verdict);
    }
    return verdict;
  }
}

interface OurRule extends RuleText {
  rule: Rule;
  machine: StackDeltas['machine'];
}

function judge(ours: OurRule, id: number, expected: ReadelfRule | undefined): Verdict {
  if (id === SIGNAL_EDGE)
    return ours.kind === 'signal' || ours.interrupted ? 'same' : 'a signal trampoline begins or ends here';
  if (!expected) return ours.kind === 'invalid' || ours.kind === 'stop' ? 'same' : 'no FDE covers it';
  if (ours.kind === 'signal') return expected.isSignal ? 'same' : 'it is not a signal frame';
  const isX86 = ours.machine === 'x86_64';
  const { cfa, registers } = expected;
  const column = registers.get('ra') ?? 'u';
  // "the same" is x30 on arm64, which is also what holds where nothing is said
  const ra = column === 's' && !isX86 ? 'u' : column;
  if (ra === 'u' && isX86) return ours.kind === 'stop' ? 'same' : 'the return address is undefined';
  // on arm64 "undefined" and "still in x30" are printed alike
  if (ra === 'u' && ours.kind === 'stop') return '~return address undefined or in x30';
  if (ours.kind === 'stop') return 'readelf has a rule';
  const [fp, sp] = isX86 ? ['rbp', 'rsp'] : ['x29', 'sp'];
  const text = `readelf says ${cfa} ${fp}=${registers.get(fp)} ra=${ra}`;
  // glibc's trampoline: agent/stack-deltas/rules/cfi-state.ts
  if (!isX86 && ra === 'c+8' && ours.ra === 'cfa-8' && ours.fp === 'same')
    return "~the PLT's pair is counted";
  const savedSp = registers.get(sp) ?? 'u';
  if (savedSp !== 'u' && savedSp !== 's')
    return ours.kind === 'invalid' ? '?the stack pointer is not the CFA' : text;
  if (ours.kind === 'invalid' && cfa === 'exp') return '?CFA by expression';
  if (ours.kind === 'invalid' && /exp|v[+-]/.test(ra)) return '?return address by expression';
  const ourRa = ours.ra === `x${expected.returnColumn}` ? 'u' : ours.ra;
  if (ours.kind === 'invalid' && isFar(ra)) return '?saved further than 32 KiB from the CFA';
  if (ours.kind !== 'rule' && ours.kind !== 'plt') return text;
  const { expressions } = expected;
  const isCfa = cfa === 'exp' ? matches(ours, 'cfa', expressions.cfa) : ours.cfa === cfa;
  const isRa = ra === 'exp' ? matches(ours, 'ra', expressions.ra) : ourRa === saved(ra);
  if (isCfa === undefined || isRa === undefined) return '~expressions that are not understood here';
  if (!isCfa || !isRa) return `${text} ${JSON.stringify(expressions)}`;
  return judgeFp(ours, registers.get(fp) ?? 'u', expressions.fp, text);
}

const VG = 46;
const RIP = 16;
/** The low bits of the instruction pointer take each value. */
const TRIALS = Array.from({ length: 16 }, (_, seed) => new MadeUpProcess(seed));

/** Whether our rule comes to the same as an expression, whatever is in registers and memory; undefined: who knows. */
function matches(ours: OurRule, what: 'cfa' | 'fp' | 'ra', text: string | undefined): boolean | undefined {
  if (text === undefined) return undefined;
  const values = TRIALS.map((process) => [evaluate(text, process), placeOf(ours, what, process)] as const);
  if (values.some(([expected]) => expected === undefined)) return undefined;
  return values.every(([expected, value]) => expected === value);
}

/** The CFA, or the address where the register is saved. */
function placeOf(
  { rule, machine }: OurRule,
  what: 'cfa' | 'fp' | 'ra',
  process: MadeUpProcess,
): bigint | undefined {
  const cfa = () => BigInt.asUintN(64, cfaOf(rule, process));
  if (what === 'cfa') return cfa();
  const [kind, offset] = what === 'fp' ? [rule.fpKind, rule.fpOffset] : [rule.raKind, rule.raOffset];
  const { fp, sp } = REGISTERS[machine];
  const base: Readonly<Record<number, () => bigint>> = {
    [ValueKind.CFA]: cfa,
    [ValueKind.FRAME]: () => process.register(fp),
    [ValueKind.STACK]: () => process.register(sp),
  };
  const from = base[kind]?.();
  return from === undefined ? undefined : BigInt.asUintN(64, from + BigInt(offset));
}

function cfaOf(rule: Rule, process: MadeUpProcess): bigint {
  const base = BigInt.asUintN(
    64,
    process.register(rule.cfaReg & ~EF_RULE_INTERRUPTED) + BigInt(rule.cfaOffset),
  );
  const second = BigInt(rule.cfaOffset2);
  switch (rule.kind) {
    case RuleKind.CFA_DEREF:
      return process.load(base) + second;
    case RuleKind.CFA_DEREF_TWICE:
      return process.load(process.load(base) + BigInt.asIntN(16, second)) + (second >> 16n);
    case RuleKind.CFA_VG:
      return base + process.register(VG) * second;
    case RuleKind.PLT:
      return base + ((process.register(RIP) & 15n) >= second ? 8n : 0n);
    default:
      return base;
  }
}

const saved = (column: string): string => column.replace(/^c(?=[+-])/, 'cfa');

/** Offsets in rules have 16 bits (ebpf/records.h): arm64 saves both registers at the far end of a frame. */
const isFar = (column: string): boolean => Math.abs(Number(/^c([+-]\d+)$/.exec(column)?.[1] ?? 0)) > 32_767;

function judgeFp(rule: OurRule, column: string, expression: string | undefined, text: string): Verdict {
  const ours = rule.fp ?? '';
  if (column === 'u' || column === 's') return ours === 'same' || ours === 'undefined' ? 'same' : text;
  if (column === 'exp' || column === 'vexp') {
    if (ours === 'undefined') return '?frame pointer by expression';
    const isSame = column === 'exp' && matches(rule, 'fp', expression);
    if (isSame === undefined) return '~expressions that are not understood here';
    return isSame ? 'same' : `${text} ${expression}`;
  }
  if (/^c[+-]/.test(column)) return ours === saved(column) ? 'same' : text;
  return ours === 'undefined' ? `?frame pointer ${column.replace(/[+-].*/, '')}` : text;
}
