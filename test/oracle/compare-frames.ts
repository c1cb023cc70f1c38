/** Compares our stack deltas with readelf's rows, at every boundary of a row and one byte to either side. */
import { describeRule, type RuleText } from '../../agent/stack-deltas/describe.ts';
import { lastAtOrBelow } from '../../agent/stack-deltas/sorted.ts';
import type { StackDeltas } from '../../agent/stack-deltas/stack-deltas.ts';
import type { ReadelfFde, ReadelfRow } from './readelf-frames.ts';

export interface Comparison {
  compared: number;
  /** Of these, by what keeps them from being compared: what one of the two cannot say. */
  inexpressible: Map<string, number>;
  differences: string[];
}

interface Expected {
  fde: ReadelfFde;
  row: ReadelfRow;
}

const MAX_DIFFERENCES = 20;

export function compareFrames(deltas: StackDeltas, fdes: readonly ReadelfFde[]): Comparison {
  const comparison: Comparison = { compared: 0, inexpressible: new Map(), differences: [] };
  const index = new FdeIndex(fdes);
  const fp = deltas.machine === 'x86_64' ? 'rbp' : 'x29';
  const sp = deltas.machine === 'x86_64' ? 'rsp' : 'sp';
  const texts = deltas.rules.map((rule) => describeRule(rule, deltas.machine));
  for (const address of boundaries(fdes)) {
    const row = lastAtOrBelow(deltas.addresses, address);
    const ours = row < 0 ? texts[0]! : texts[deltas.ruleIds[row]!]!;
    comparison.compared++;
    const verdict = judge(ours, index.at(address), { fp, sp });
    if (verdict === 'same') continue;
    if (verdict.startsWith('?'))
      comparison.inexpressible.set(verdict, (comparison.inexpressible.get(verdict) ?? 0) + 1);
    else if (comparison.differences.length < MAX_DIFFERENCES)
      comparison.differences.push(`0x${address.toString(16)}: ${JSON.stringify(ours)} but ${verdict}`);
  }
  return comparison;
}

function boundaries(fdes: readonly ReadelfFde[]): Float64Array {
  const found = new Set<number>();
  for (const fde of fdes) {
    for (const at of [fde.start, fde.end, ...fde.rows.map((row) => row.address)])
      for (const near of [at - 1, at, at + 1]) found.add(near);
  }
  return Float64Array.from(found).sort();
}

class FdeIndex {
  readonly #fdes: ReadelfFde[];
  readonly #starts: Float64Array;

  constructor(fdes: readonly ReadelfFde[]) {
    this.#fdes = fdes.filter((f) => f.start > 0 && f.end > f.start).sort((a, b) => a.start - b.start);
    this.#starts = Float64Array.from(this.#fdes, (f) => f.start);
  }

  /** The row that holds at an address, and its function: the one that begins last. */
  at(address: number): Expected | 'signal-entry' | undefined {
    const i = lastAtOrBelow(this.#starts, address);
    const fde = this.#fdes[i];
    if (fde && address < fde.end) {
      let row = fde.rows[0]!;
      for (const next of fde.rows) if (next.address <= address) row = next;
      return { fde, row };
    }
    return this.#fdes[i + 1]?.isSignal && this.#starts[i + 1] === address + 1 ? 'signal-entry' : undefined;
  }
}

function judge(
  ours: RuleText,
  expected: Expected | 'signal-entry' | undefined,
  names: { fp: string; sp: string },
): string {
  if (expected === undefined) {
    if (ours.kind === 'invalid') return 'same';
    return ours.kind === 'stop' ? '?known root without an FDE' : 'no FDE covers it';
  }
  if (expected === 'signal-entry') return ours.kind === 'signal' ? 'same' : 'a signal trampoline follows';
  const { fde, row } = expected;
  if (fde.isSignal) return ours.kind === 'signal' ? 'same' : 'it is a signal frame';
  const ra = row.registers.get('ra') ?? row.registers.get('x30') ?? 'u';
  if (ra === 'u' && names.fp === 'rbp')
    return ours.kind === 'stop' ? 'same' : 'the return address is undefined';
  if (ours.kind === 'stop') return 'readelf has a rule';
  const text = `readelf says ${row.cfa} ${names.fp}=${row.registers.get(names.fp)} ra=${ra}`;
  if (row.registers.has(names.sp) && row.registers.get(names.sp) !== 'u')
    return ours.kind === 'invalid' ? '?the stack pointer is not the CFA' : text;
  if (row.cfa === 'exp') return `?CFA by expression, ours ${ours.kind}`;
  if (/exp|v[+-]/.test(ra)) return ours.kind === 'invalid' ? '?return address by expression' : text;
  if (ours.kind !== 'rule' || ours.cfa !== row.cfa || ours.ra !== saved(ra)) return text;
  return judgeFp(ours.fp ?? '', row.registers.get(names.fp) ?? 'u', text);
}

const saved = (column: string): string => column.replace(/^c(?=[+-])/, 'cfa');

function judgeFp(ours: string, column: string, text: string): string {
  if (column === 'u' || column === 's') return ours === 'same' || ours === 'undefined' ? 'same' : text;
  if (column === 'exp') return `?frame pointer by expression, ours ${ours}`;
  if (/^c[+-]/.test(column)) return ours === saved(column) ? 'same' : text;
  return ours === 'undefined' ? `?frame pointer ${column.replace(/[+-].*/, '')}` : text;
}
