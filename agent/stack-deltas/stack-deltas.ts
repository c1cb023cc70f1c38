/**
 * Stack deltas of an ELF file: sorted rows (address, rule), each valid up to the next. Sources, best first:
 * .eh_frame, .debug_frame for what that leaves out, and what is known of a few functions that have neither.
 */

import { Cursor } from '../../common/base/cursor.ts';
import { type ElfFile, type Machine, PF_X, PT_GNU_EH_FRAME, PT_LOAD } from '../../common/elf/elf.ts';
import { OutOfBounds } from '../../common/elf/source.ts';
import { type Inexpressible, newInexpressible, REGISTERS } from './cfi-state.ts';
import {
  type DecodeTarget,
  decodeFrameSection,
  type FrameSection,
  type FrameSectionStats,
} from './frame-section.ts';
import { findKnownFunctions } from './known-functions.ts';
import { FunctionRows } from './rows.ts';
import { type Rule, RuleTable, STOP_RULE } from './rules.ts';

export interface StackDeltaStats {
  ehFrame: FrameSectionStats | undefined;
  debugFrame: FrameSectionStats | undefined;
  inexpressible: Inexpressible;
  /** Rules beyond the 65,535 that fit. */
  ruleOverflow: number;
  /** Functions, or pieces of them, that another one covers already. */
  overlaps: number;
}

export interface StackDeltas {
  machine: Machine;
  /** ELF virtual addresses, ascending. */
  addresses: Float64Array;
  /** Index into `rules` of each row; 0: nothing is known from here on. */
  ruleIds: Uint16Array;
  rules: Rule[];
  stats: StackDeltaStats;
}

/** Longest start-up stub that has no unwind information of its own. */
const ENTRY_STUB_BYTES = 64;

export function extractStackDeltas(elf: ElfFile): StackDeltas {
  const rows = new FunctionRows();
  const rules = new RuleTable();
  const inexpressible = newInexpressible();
  const known = findKnownFunctions(elf);
  const target: DecodeTarget = {
    rows,
    rules,
    registers: REGISTERS[elf.machine],
    isX86: elf.machine === 'x86_64',
    inexpressible,
    accepts: (start) => !known.get(start)?.replaces,
  };
  const ehSection = findEhFrame(elf);
  const ehFrame = ehSection && decodeFrameSection(ehSection, target);
  const covered = coverage(rows);
  const debugSection = findDebugFrame(elf);
  const debugFrame =
    debugSection &&
    decodeFrameSection(debugSection, {
      ...target,
      accepts: (at) => !known.get(at)?.replaces && !covered(at),
    });
  const described = coverage(rows);
  for (const [start, { end, rule, replaces }] of known) {
    if (!replaces && described(start)) continue;
    rows.beginFunction(start, end);
    rows.addRow(start, rules.intern(rule));
    rows.endFunction();
  }
  addEntryStub(elf, rows, rules);
  const { addresses, ruleIds, overlaps } = joinFunctions(rows);
  const stats = { ehFrame, debugFrame, inexpressible, ruleOverflow: rules.overflow, overlaps };
  return { machine: elf.machine, addresses, ruleIds, rules: rules.rules, stats };
}

function findEhFrame(elf: ElfFile): FrameSection | undefined {
  const section = elf.section('.eh_frame');
  try {
    if (section) return { bytes: elf.sectionData(section), address: section.addr, isEhFrame: true };
    return findEhFrameBySegment(elf);
  } catch (error) {
    if (error instanceof OutOfBounds) return undefined;
    throw error;
  }
}

/** Without section headers: PT_GNU_EH_FRAME's table begins with a pointer to .eh_frame, which has no stated end. */
function findEhFrameBySegment(elf: ElfFile): FrameSection | undefined {
  const header = elf.segments.find((s) => s.type === PT_GNU_EH_FRAME);
  if (!header || header.filesz < 8) return undefined;
  const cursor = new Cursor(elf.source.read(header.offset, 8));
  if (cursor.u8() !== 1) return undefined;
  const encoding = cursor.u8();
  cursor.skip(2);
  // pcrel | sdata4, which every linker writes
  if (encoding !== 0x1b) return undefined;
  const address = header.vaddr + 4 + cursor.i32();
  const segment = elf.segments.find(
    (s) => s.type === PT_LOAD && address >= s.vaddr && address < s.vaddr + s.filesz,
  );
  if (!segment) return undefined;
  const offset = segment.offset + (address - segment.vaddr);
  const bytes = elf.source.read(offset, segment.offset + segment.filesz - offset);
  return { bytes, address, isEhFrame: true };
}

function findDebugFrame(elf: ElfFile): FrameSection | undefined {
  const section = elf.section('.debug_frame');
  if (!section) return undefined;
  try {
    return { bytes: elf.sectionData(section), address: section.addr, isEhFrame: false };
  } catch {
    // cut short, or compressed in a way that can't be read: it was a second source only
    return undefined;
  }
}

/** Whether an address lies in one of the functions so far. */
function coverage(rows: FunctionRows): (address: number) => boolean {
  const order = sortedFunctions(rows);
  const starts = Float64Array.from(order, (i) => rows.starts[i]!);
  const ends = Float64Array.from(order, (i) => rows.ends[i]!);
  return (address) => {
    const i = lastAtOrBelow(starts, address);
    return i >= 0 && address < ends[i]!;
  };
}

export function lastAtOrBelow(sorted: Float64Array, value: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

function sortedFunctions(rows: FunctionRows): Uint32Array {
  const order = new Uint32Array(rows.count);
  let sorted = true;
  for (let i = 0; i < order.length; i++) {
    order[i] = i;
    if (i > 0 && rows.starts[i]! < rows.starts[i - 1]!) sorted = false;
  }
  return sorted ? order : order.sort((a, b) => rows.starts[a]! - rows.starts[b]! || a - b);
}

/** The entry point of static programs of musl and others has no unwind information; it is a root all the same. */
function addEntryStub(elf: ElfFile, rows: FunctionRows, rules: RuleTable): void {
  const { entry } = elf;
  const isCode = elf.segments.some(
    (s) => s.type === PT_LOAD && s.flags & PF_X && entry >= s.vaddr && entry < s.vaddr + s.filesz,
  );
  if (!isCode || coverage(rows)(entry)) return;
  let end = entry + ENTRY_STUB_BYTES;
  for (let i = 0; i < rows.count; i++) {
    const start = rows.starts[i]!;
    if (start > entry && start < end) end = start;
  }
  rows.beginFunction(entry, end);
  rows.addRow(entry, rules.intern(STOP_RULE));
  rows.endFunction();
}

/** One sorted list: gaps become invalid rows, overlaps go to the function that begins first, repeats are dropped. */
function joinFunctions(rows: FunctionRows): {
  addresses: Float64Array;
  ruleIds: Uint16Array;
  overlaps: number;
} {
  const addresses = new Float64Array(rows.rowCount + 2 * rows.count + 1);
  const ruleIds = new Uint16Array(addresses.length);
  let n = 0;
  let coveredTo = 0;
  let overlaps = 0;
  const push = (address: number, rule: number): void => {
    if (n > 0 && addresses[n - 1] === address) n--;
    if (n > 0 ? ruleIds[n - 1] === rule : rule === 0) return;
    addresses[n] = address;
    ruleIds[n++] = rule;
  };
  for (const f of sortedFunctions(rows)) {
    const start = rows.starts[f]!;
    const end = rows.ends[f]!;
    if (start < coveredTo) overlaps++;
    if (end <= coveredTo) continue;
    if (start > coveredTo && coveredTo > 0) push(coveredTo, 0);
    const from = Math.max(start, coveredTo);
    const last = rows.firstRow[f + 1]!;
    for (let r = rows.firstRow[f]!; r < last; r++) {
      const next = r + 1 < last ? rows.addresses[r + 1]! : end;
      if (next > from) push(Math.max(rows.addresses[r]!, from), rows.rules[r]!);
    }
    coveredTo = end;
  }
  if (coveredTo > 0) push(coveredTo, 0);
  return { addresses: addresses.slice(0, n), ruleIds: ruleIds.slice(0, n), overlaps };
}
