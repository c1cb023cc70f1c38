/**
 * Stack deltas of an ELF file: sorted rows (address, rule), each valid up to the next. Sources, best first:
 * .eh_frame, .debug_frame for what that leaves out, Go's own table of functions, SFrame, .debug_frame of the separate
 * file with its debug information, and what is known of a few functions that have none of these.
 */

import { bytesAt, codeSegmentAt } from '../../common/elf/bytes-at.ts';
import type { ElfFile, Machine } from '../../common/elf/elf.ts';
import { isGo } from '../../common/elf/go-module.ts';
import { findGoPclntab } from '../../common/elf/go-pclntab.ts';
import { findNamedSymbols } from '../../common/symbols/named-symbols.ts';
import { EF_RULE_INTERRUPTED, RuleKind } from '../records/records.gen.ts';
import { addCode } from './machine-code/add-code.ts';
import { lacksCfi } from './rules/cfi-coverage.ts';
import {
  CALLEE_SAVED,
  newUnsupportedCfi,
  REGISTERS,
  type Registers,
  type UnsupportedCfi,
} from './rules/cfi-state.ts';
import { coverage, flattenFunctions } from './rules/flatten-functions.ts';
import { gapsToSearch } from './rules/gaps.ts';
import { FunctionRows } from './rules/rows.ts';
import { type Rule, RuleTable, STOP_RULE } from './rules/rules.ts';
import { type DecodeTarget, decodeFrameSection } from './sources/frame-section.ts';
import { findDebugFrame, findEhFrame, findSframe } from './sources/frame-sources.ts';
import type { FrameSectionStats } from './sources/frame-stats.ts';
import { type GoFrames, readGoFrames } from './sources/go-frames.ts';
import { findKnownFunctions, findKnownIn, type KnownFunctions } from './sources/known-functions.ts';
import { addPlt } from './sources/plt.ts';
import { decodeSframe } from './sources/sframe.ts';

export interface StackDeltaStats {
  ehFrame: FrameSectionStats | undefined;
  debugFrame: FrameSectionStats | undefined;
  sframe: FrameSectionStats | undefined;
  /** Of the file with its debug information. */
  separateFrame: FrameSectionStats | undefined;
  /** Whose rules come from Go's table. */
  goFunctions: number;
  unsupportedCfi: UnsupportedCfi;
  /** Rules beyond the 65,535 that fit. */
  ruleOverflow: number;
  /** Functions that begin inside another one. */
  overlaps: number;
  /** Code whose rules come from elsewhere than .eh_frame, unsorted. */
  beyondEhFrame: CodeRanges;
}

/** ELF virtual addresses: range i is [starts[i], ends[i]). */
export interface CodeRanges {
  starts: Float64Array;
  ends: Float64Array;
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

const COUNTS_FROM_REGISTER: ReadonlySet<number> = new Set([
  RuleKind.CFA,
  RuleKind.CFA_DEREF,
  RuleKind.CFA_DEREF_TWICE,
]);
/** What every BEAM exports (agent/interpreters/beam/detect-beam.ts). */
const BEAM_MARKER = 'enif_thread_type';
/**
 * Longest start-up code that has no unwind information of its own. On arm64 older C libraries make each of three addresses by
 * four instructions (Node's builds).
 */
const ENTRY_STUB_BYTES: Readonly<Record<Machine, number>> = { x86_64: 64, aarch64: 80 };
/** How start-up code ends, up to the distance that it jumps by, which has four bytes. */
const ALIGN_AND_CALL: Readonly<Record<Machine, Buffer>> = {
  // and $-16, %rsp; call
  x86_64: Buffer.from('4883e4f0e8', 'hex'),
  // and sp, x0, #-16; b: distance and operation are one word
  aarch64: Buffer.from('1fec7c92', 'hex'),
};

/** Finds the file that has the debug information of this one; it is asked where much code has no rules yet. */
export type FindSeparate = () => ElfFile | undefined;

export function extractStackDeltas(elf: ElfFile, findSeparate: FindSeparate = () => undefined): StackDeltas {
  const deltas = extract(elf, findSeparate, REGISTERS[elf.machine]);
  const calleeSaved = CALLEE_SAVED[elf.machine];
  // few files need it, so the others have neither the longer dictionary nor its cost
  const isNeeded = deltas.rules.some(
    ({ kind, cfaReg }) => COUNTS_FROM_REGISTER.has(kind) && (cfaReg & ~EF_RULE_INTERRUPTED) === calleeSaved,
  );
  if (!isNeeded && !keepsStackInRegister(elf)) return deltas;
  return extract(elf, findSeparate, { ...REGISTERS[elf.machine], calleeSaved });
}

/** BEAM for arm64: functions of C are called with the Erlang stack in that register (docs/interpreters/beam.md). */
function keepsStackInRegister(elf: ElfFile): boolean {
  return elf.machine === 'aarch64' && findNamedSymbols(elf, BEAM_MARKER, [BEAM_MARKER]).size > 0;
}

function extract(elf: ElfFile, findSeparate: FindSeparate, registers: Registers): StackDeltas {
  const rows = new FunctionRows();
  const rules = new RuleTable();
  const unsupportedCfi = newUnsupportedCfi();
  const known = findKnownFunctions(elf);
  const go = findGoFrames(elf);
  const target: DecodeTarget = {
    rows,
    rules,
    registers,
    isX86: elf.machine === 'x86_64',
    unsupportedCfi,
    savesFpBelowReturnAddress: false,
    accepts: known.size === 0 && !go ? () => true : (start) => !known.has(start) && !go?.isSpecial(start),
  };
  const ehFrame = decodeEhFrame(elf, target);
  const described = rows.count;
  const debugFrame = decodeDebugFrame(elf, target);
  addKnownFunctions(known, rows, rules);
  const goFunctions = go?.addRows(rows, rules, coverage(rows)) ?? 0;
  const sframe = addSframe(elf, target);
  const separate = lacksCfi(elf, rows) ? findSeparate() : undefined;
  const separateFrame = separate && decodeDebugFrame(separate, target);
  addPlt(elf, rows, rules, coverage(rows));
  addEntryStub(elf, rows, rules);
  // Go's own table leaves out what has no frame like others
  if (!go) {
    const gaps = gapsToSearch(elf, rows, lacksCfi(elf, rows));
    addKnownFunctions(findKnownIn(elf, gaps), rows, rules);
    addCode(elf, rows, rules, gaps);
  }
  const { addresses, ruleIds, overlaps } = flattenFunctions(rows);
  const ruleOverflow = rules.overflow;
  const sources = { ehFrame, debugFrame, sframe, separateFrame, goFunctions };
  const beyondEhFrame = {
    starts: rows.starts.slice(described, rows.count),
    ends: rows.ends.slice(described, rows.count),
  };
  const stats = { ...sources, unsupportedCfi, ruleOverflow, overlaps, beyondEhFrame };
  return { machine: elf.machine, addresses, ruleIds, rules: rules.rules, stats };
}

function findGoFrames(elf: ElfFile): GoFrames | undefined {
  const table = findGoPclntab(elf);
  return table && readGoFrames(table, elf.machine, (start, size) => bytesAt(elf, start, size));
}

function decodeEhFrame(elf: ElfFile, target: DecodeTarget): FrameSectionStats | undefined {
  const section = findEhFrame(elf);
  return section && decodeFrameSection(section, target);
}

/** Functions that .eh_frame leaves out. */
function decodeDebugFrame(elf: ElfFile, target: DecodeTarget): FrameSectionStats | undefined {
  const section = findDebugFrame(elf);
  if (!section) return undefined;
  const covered = coverage(target.rows);
  return decodeFrameSection(section, {
    ...target,
    savesFpBelowReturnAddress: isGo(elf),
    accepts: (start) => target.accepts(start) && !covered(start),
  });
}

/** Functions that neither .eh_frame nor .debug_frame describes. */
function addSframe(elf: ElfFile, target: DecodeTarget): FrameSectionStats | undefined {
  const section = findSframe(elf);
  if (!section) return undefined;
  const covered = coverage(target.rows);
  return decodeSframe(section, {
    ...target,
    accepts: (start) => target.accepts(start) && !covered(start),
  });
}

/** Their own unwind information was left out; where another function's covers them, that is better. */
function addKnownFunctions(known: KnownFunctions, rows: FunctionRows, rules: RuleTable): void {
  if (known.size === 0) return;
  const covered = coverage(rows);
  for (const [at, { start, end, rule }] of known)
    if (!covered(at)) addFunction(rows, start, end, rules.intern(rule));
}

function addFunction(rows: FunctionRows, start: number, end: number, rule: number): void {
  rows.beginFunction(start, end);
  rows.addRow(start, rule);
  rows.endFunction();
}

/** The entry point of static programs of musl and others has no unwind information; it is a root all the same. */
function addEntryStub(elf: ElfFile, rows: FunctionRows, rules: RuleTable): void {
  const { entry } = elf;
  const code = codeSegmentAt(elf, entry);
  if (!code) return;
  let end = Math.min(entry + ENTRY_STUB_BYTES[elf.machine], code.vaddr + code.filesz);
  for (let i = 0; i < rows.count; i++) {
    const start = rows.starts[i]!;
    if (start <= entry && rows.ends[i]! > entry) return;
    if (start > entry && start < end) end = start;
  }
  addFunction(rows, entry, endOfStub(elf, entry, end), rules.intern(STOP_RULE));
}

/** Past its call, which never returns, the next function begins. */
function endOfStub(elf: ElfFile, entry: number, end: number): number {
  const bytes = bytesAt(elf, entry, end - entry);
  if (!bytes) return end;
  const wanted = ALIGN_AND_CALL[elf.machine];
  const call = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).indexOf(wanted);
  return call < 0 ? end : Math.min(end, entry + call + wanted.length + 4);
}
