/**
 * Functions around a program's start that have no unwind information. musl has none, so in a static program the
 * functions between `_start` and `main` lack it; in every other file `_init` and `_fini` do, which the linker puts
 * together from crti.o and crtn.o (sections .init and .fini). They are few and simple: push some registers, make
 * room, call. They are read instruction by instruction; each rule holds up to the next change, and nothing is said
 * past the first instruction that is not understood. A stripped musl program has no names, and its stacks end there
 * with a marker.
 */

import { Cursor } from '../../common/base/cursor.ts';
import { ElfError, type ElfFile, SHF_EXECINSTR, SHT_SYMTAB } from '../../common/elf/elf.ts';
import { OutOfBounds } from '../../common/elf/source.ts';
import { RuleKind, ValueKind } from '../tracer/records.gen.ts';
import { REGISTERS } from './cfi-state.ts';
import { isStaticProgram } from './known-functions.ts';
import type { FunctionRows } from './rows.ts';
import { INVALID_RULE, type Rule, type RuleTable } from './rules.ts';

const START_FUNCTIONS: ReadonlySet<string> = new Set([
  'libc_start_main_stage2',
  '__libc_start_main',
  '_start_c',
]);
const SYMBOL_BYTES = 24;
const MAX_SYMBOLS_BYTES = 16 << 20;
const MAX_FUNCTION_BYTES = 512;
const RBP = 5;

/** Adds rows for those that `covered` says nothing about. */
export function addStartFunctions(
  elf: ElfFile,
  rows: FunctionRows,
  rules: RuleTable,
  covered: (address: number) => boolean,
): void {
  if (elf.machine !== 'x86_64') return;
  try {
    for (const { start, size } of [
      ...findSections(elf),
      ...(isStaticProgram(elf) ? findFunctions(elf) : []),
    ]) {
      const offset = elf.addressToFileOffset(start);
      if (offset === undefined || covered(start)) continue;
      addPrologue(elf.source.read(offset, size), start, rows, rules);
    }
  } catch (error) {
    // cut short, or not to be decompressed: these functions stay without rules
    if (!(error instanceof OutOfBounds || error instanceof ElfError)) throw error;
    rows.dropFunction();
  }
}

interface Place {
  start: number;
  size: number;
}

const findSections = (elf: ElfFile): Place[] =>
  ['.init', '.fini']
    .map((name) => elf.section(name))
    .filter((section) => section !== undefined)
    .filter(({ flags, size }) => flags & SHF_EXECINSTR && size > 0 && size <= MAX_FUNCTION_BYTES)
    .map(({ addr, size }) => ({ start: addr, size }));

function findFunctions(elf: ElfFile): Place[] {
  const section = elf.sections.find((s) => s.type === SHT_SYMTAB);
  const strings = section && elf.sections[section.link];
  if (!strings || section.size > MAX_SYMBOLS_BYTES) return [];
  const [symbols, names] = [elf.sectionData(section), elf.sectionData(strings)];
  const found: Place[] = [];
  const cursor = new Cursor(symbols);
  const text = Buffer.from(names.buffer, names.byteOffset, names.length);
  const offsets = new Set(
    [...START_FUNCTIONS].map((name) => text.indexOf(`\0${name}\0`, 0, 'latin1') + 1).filter((at) => at > 0),
  );
  if (offsets.size === 0) return found;
  for (let at = 0; at + SYMBOL_BYTES <= symbols.length; at += SYMBOL_BYTES) {
    cursor.at = at;
    if (!offsets.has(cursor.u32())) continue;
    cursor.skip(4);
    const start = cursor.u64();
    const size = cursor.u64();
    if (start > 0 && size > 0 && size <= MAX_FUNCTION_BYTES) found.push({ start, size });
  }
  return found;
}

function addPrologue(code: Uint8Array, start: number, rows: FunctionRows, rules: RuleTable): void {
  const rule: Rule = {
    ...INVALID_RULE,
    kind: RuleKind.CFA,
    cfaReg: REGISTERS.x86_64.sp,
    cfaOffset: 8,
    fpKind: ValueKind.SAME,
    raKind: ValueKind.CFA,
    raOffset: -8,
  };
  rows.beginFunction(start, start + code.length);
  rows.addRow(start, rules.intern(rule));
  let at = 0;
  while (at < code.length) {
    const step = readInstruction(code, at);
    if (!step) {
      rows.addRow(start + at, 0);
      break;
    }
    at += step.bytes;
    rule.cfaOffset += step.pushes;
    if (step.pushesFp) [rule.fpKind, rule.fpOffset] = [ValueKind.CFA, -rule.cfaOffset];
    if (step.popsFp) [rule.fpKind, rule.fpOffset] = [ValueKind.SAME, 0];
    rows.addRow(start + at, rules.intern(rule));
  }
  rows.endFunction();
}

interface Instruction {
  bytes: number;
  /** What the stack grows by. */
  pushes: number;
  pushesFp?: boolean;
  popsFp?: boolean;
}

/** The instructions that occur there: Intel's manual, volume 2, appendix A. Undefined for any other. */
function readInstruction(code: Uint8Array, start: number): Instruction | undefined {
  let at = start;
  let extended = false;
  if ((code[at]! & 0xf0) === 0x40) extended = (code[at++]! & 1) === 1;
  const op = code[at++];
  const bytes = (n: number): number => at + n - start;
  if (op === undefined) return undefined;
  if (op === 0xf3 && code[at] === 0x0f && code[at + 1] === 0x1e && code[at + 2] === 0xfa)
    return { bytes: bytes(3), pushes: 0 }; // endbr64
  // ret; je and jne over a call, behind which the stack is as before
  if (op === 0xc3) return { bytes: bytes(0), pushes: 0 };
  if (op === 0x74 || op === 0x75) return { bytes: bytes(1), pushes: 0 };
  if (op >= 0x50 && op <= 0x57)
    return { bytes: bytes(0), pushes: 8, pushesFp: !extended && op === 0x50 + RBP };
  if (op >= 0x58 && op <= 0x5f)
    return { bytes: bytes(0), pushes: -8, popsFp: !extended && op === 0x58 + RBP };
  if (op === 0xe8) return { bytes: bytes(4), pushes: 0 };
  if (op >= 0xb8 && op <= 0xbf) return { bytes: bytes(4), pushes: 0 };
  const modrm = code[at];
  if (modrm === undefined) return undefined;
  const operand = operandBytes(code, at);
  // sub $n, %rsp and add $n, %rsp
  if ((op === 0x83 || op === 0x81) && (modrm === 0xec || modrm === 0xc4)) {
    const value = op === 0x83 ? code[at + 1]! : readU32(code, at + 1);
    return { bytes: bytes(op === 0x83 ? 2 : 5), pushes: modrm === 0xec ? value : -value };
  }
  // call through a register or memory
  if (op === 0xff && (modrm & 0x38) === 0x10) return { bytes: bytes(operand), pushes: 0 };
  // movslq, mov, lea, xor, test, and mov of a constant: none writes the stack pointer in these functions
  if ([0x63, 0x89, 0x8b, 0x8d, 0x31, 0x85].includes(op)) return { bytes: bytes(operand), pushes: 0 };
  if (op === 0xc7) return { bytes: bytes(operand + 4), pushes: 0 };
  return undefined;
}

/** Throws OutOfBounds at the end of the function. */
const readU32 = (code: Uint8Array, at: number): number => new Cursor(code, at).u32();

/** ModR/M, SIB and displacement. */
function operandBytes(code: Uint8Array, at: number): number {
  const mod = code[at]! >> 6;
  const rm = code[at]! & 7;
  if (mod === 3) return 1;
  const sib = rm === 4 ? 1 : 0;
  const base = sib === 1 ? (code[at + 1] ?? 0) & 7 : rm;
  if (mod === 1) return 2 + sib;
  return 1 + sib + (mod === 2 || base === 5 ? 4 : 0);
}
