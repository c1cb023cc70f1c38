/**
 * .eh_frame and .debug_frame: a list of records, each a CIE (what functions share) or an FDE (one function: its
 * range and its frame program). The list is walked from front to back; no search table is needed. Sources: DWARF
 * 5, section 6.4.1; Linux Standard Base, "Exception Frames", for the augmentations and the pointer encodings.
 */

import { OutOfBounds } from '../../../common/base/byte-source.ts';
import { Cursor } from '../../../common/base/cursor.ts';
import { ElfError } from '../../../common/elf/elf.ts';
import {
  DW_EH_PE_OMIT,
  DW_EH_PE_PCREL,
  readEncoded,
  skipEncoded,
} from '../../../common/elf/pointer-encodings.ts';
import { RuleKind, ValueKind } from '../../records/records.gen.ts';
import { CfiState, type Registers, type UnsupportedCfi } from '../rules/cfi-state.ts';
import type { FunctionRows } from '../rules/rows.ts';
import { INVALID_RULE, newRule, type Rule, type RuleTable } from '../rules/rules.ts';
import { BadFrame, CfiProgram, type ProgramContext } from './cfi-program.ts';
import { FrameSectionStats } from './frame-stats.ts';

export interface FrameSection {
  bytes: Uint8Array;
  /** ELF virtual address of the first byte. */
  address: number;
  isEhFrame: boolean;
  /** A zero length ends it: its real end is not known. */
  endsAtZero?: boolean;
}

export interface DecodeTarget {
  rows: FunctionRows;
  rules: RuleTable;
  registers: Registers;
  isX86: boolean;
  unsupportedCfi: UnsupportedCfi;
  /** Go: its information leaves out that a function with a frame saves fp just below the return address. */
  savesFpBelowReturnAddress: boolean;
  /** Whether a function that starts there is wanted. */
  accepts(start: number): boolean;
}

interface Cie {
  codeAlign: number;
  dataAlign: number;
  isSignal: boolean;
  hasAugmentationData: boolean;
  fdeEncoding: number;
  registers: Registers;
  initial: CfiState;
}

/** A CIE is read anew for each distinct place that FDEs name, so both its size and their number have a cap. */
const MAX_CIE_BYTES = 4096;
const MAX_CIES = 65_536;
/** In .eh_frame with 4-byte pointers, as everywhere. */
const LEAST_FDE_BYTES = 20;
/** C++ of gcc and clang has 5 to 8 bytes a row, heads included. */
const USUAL_ROW_BYTES = 4;
/** Offsets of rules have 16 bits. */
const FIRST_OFFSET = -32_768;

/** In .eh_frame it has 4 bytes whatever the length (LSB, "Exception Frames"), in .debug_frame 8 with a 64-bit one. */
const readId = (cursor: Cursor, is64: boolean, isEhFrame: boolean): number =>
  is64 && !isEhFrame ? cursor.u64() : cursor.u32();

const cieId = (is64: boolean, isEhFrame: boolean): number =>
  isEhFrame ? 0 : is64 ? 0xffffffff * 2 ** 32 + 0xffffffff : 0xffffffff;

export function decodeFrameSection(section: FrameSection, target: DecodeTarget): FrameSectionStats {
  return new FrameDecoder(section, target).decode();
}

class FrameDecoder {
  readonly #section: FrameSection;
  readonly #target: DecodeTarget;
  readonly #cursor: Cursor;
  readonly #program = new CfiProgram();
  readonly #cies = new Map<number, Cie | BadFrame>();
  readonly #stats = new FrameSectionStats();
  readonly #rule: Rule = newRule({});

  constructor(section: FrameSection, target: DecodeTarget) {
    this.#section = section;
    this.#target = target;
    this.#cursor = new Cursor(section.bytes);
  }

  decode(): FrameSectionStats {
    const { bytes, isEhFrame } = this.#section;
    this.#target.rows.reserve(bytes.length / LEAST_FDE_BYTES, bytes.length / USUAL_ROW_BYTES);
    const cursor = this.#cursor;
    let next = 0;
    while (next + 4 <= bytes.length) {
      cursor.at = next;
      cursor.end = bytes.length;
      let length = cursor.u32();
      const is64 = length === 0xffffffff;
      if (is64) {
        if (cursor.left < 8) break;
        length = cursor.u64();
      }
      // a terminator may stand between the pieces that a linker joined
      if (length === 0) {
        if (this.#section.endsAtZero) break;
        next = cursor.at;
        continue;
      }
      const body = cursor.at;
      if (length > bytes.length - body) {
        this.#stats.countBad(new BadFrame('it ends behind its section'));
        break;
      }
      next = body + length;
      cursor.end = next;
      this.#record(body, is64, isEhFrame);
    }
    return this.#stats;
  }

  #record(body: number, is64: boolean, isEhFrame: boolean): void {
    const cursor = this.#cursor;
    try {
      const id = readId(cursor, is64, isEhFrame);
      if (id === cieId(is64, isEhFrame)) return;
      this.#fde(isEhFrame ? body - id : id);
    } catch (error) {
      this.#stats.countBad(error);
    }
  }

  #fde(cieAt: number): void {
    const cie = this.#cieAt(cieAt);
    const cursor = this.#cursor;
    const { rows, accepts } = this.#target;
    if (cie.fdeEncoding === DW_EH_PE_OMIT) throw new BadFrame('it has no address');
    const start = this.#pointer(cursor, cie.fdeEncoding);
    const size = this.#pointer(cursor, cie.fdeEncoding & 0x0f);
    if (cie.hasAugmentationData) cursor.skip(cursor.uleb());
    if (size <= 0 || start <= 0 || !Number.isSafeInteger(start + size) || !accepts(start)) return;
    this.#stats.fdes++;
    // a signal trampoline is entered by "return", so it is looked up one byte before its first instruction; the kernel
    // interrupts it behind its last one, the system call
    rows.beginFunction(start, start + size, cie.isSignal ? 1 : 0);
    try {
      this.#program.state.copyFrom(cie.initial);
      this.#program.run(cursor, this.#context(cie), start, (location) => this.#emit(location, cie.isSignal));
      rows.endFunction();
    } catch (error) {
      rows.dropFunction();
      throw error;
    }
  }

  #emit(location: number, isSignal: boolean): void {
    const { rows, rules, isX86, unsupportedCfi, registers } = this.#target;
    const tellsCalleeSaved = registers.calleeSaved !== undefined;
    const rule = this.#program.state.toRule(isSignal, isX86, tellsCalleeSaved, this.#rule, unsupportedCfi);
    if (this.#target.savesFpBelowReturnAddress && rule === this.#rule) addSavedFp(this.#rule);
    rows.addRow(location, rule === INVALID_RULE ? 0 : rules.intern(rule));
  }

  #context(cie: Cie): ProgramContext {
    return {
      codeAlign: cie.codeAlign,
      dataAlign: cie.dataAlign,
      registers: cie.registers,
      initial: cie.initial,
      readAddress: (cursor) => this.#pointer(cursor, cie.fdeEncoding),
    };
  }

  #cieAt(at: number): Cie {
    let cie = this.#cies.get(at);
    if (!cie) {
      if (this.#cies.size >= MAX_CIES) throw new BadFrame(`more than ${MAX_CIES} CIEs`);
      try {
        cie = this.#readCie(at);
      } catch (error) {
        if (!(error instanceof BadFrame || error instanceof OutOfBounds || error instanceof ElfError))
          throw error;
        cie = new BadFrame(`its CIE is bad: ${error.message}`);
        this.#stats.badCies++;
      }
      this.#cies.set(at, cie);
    }
    if (cie instanceof BadFrame) throw cie;
    return cie;
  }

  #readCie(at: number): Cie {
    const { bytes, isEhFrame } = this.#section;
    if (!(at >= 0 && at < bytes.length)) throw new BadFrame('it lies outside the section');
    const cursor = new Cursor(bytes, at);
    let length = cursor.u32();
    const is64 = length === 0xffffffff;
    if (is64) length = cursor.u64();
    if (length > MAX_CIE_BYTES) throw new BadFrame(`it has ${length} bytes`);
    cursor.end = Math.min(cursor.at + length, bytes.length);
    if (readId(cursor, is64, isEhFrame) !== cieId(is64, isEhFrame)) throw new BadFrame('it is not a CIE');
    return this.#readCieBody(cursor);
  }

  #readCieBody(cursor: Cursor): Cie {
    const version = cursor.u8();
    if (version !== 1 && version !== 3 && version !== 4) throw new BadFrame(`version ${version}`);
    const augmentation = cursor.cstring();
    if (version === 4) {
      if (cursor.u8() !== 8) throw new BadFrame('addresses are not 64 bits wide');
      if (cursor.u8() !== 0) throw new BadFrame('it uses segment selectors');
    }
    // GCC 2's form: a pointer to the exception table
    if (augmentation === 'eh') cursor.skip(8);
    const cie: Cie = {
      codeAlign: cursor.uleb(),
      dataAlign: cursor.sleb(),
      isSignal: false,
      hasAugmentationData: false,
      fdeEncoding: 0,
      registers: this.#target.registers,
      initial: new CfiState(),
    };
    this.#readReturnColumn(version === 1 ? cursor.u8() : cursor.uleb(), cie);
    if (augmentation.startsWith('z')) this.#readAugmentation(cursor, augmentation, cie);
    else if (augmentation !== '' && augmentation !== 'eh')
      throw new BadFrame(`augmentation "${augmentation}"`);
    const program = new CfiProgram();
    program.state.copyFrom(cie.initial);
    program.run(cursor, { ...this.#context(cie), initial: new CfiState() }, 0, undefined);
    cie.initial.copyFrom(program.state);
    return cie;
  }

  /** On arm64 assembly may have moved the return address into another register and say so (glibc's rawmemchr). */
  #readReturnColumn(ra: number, cie: Cie): void {
    if (ra === cie.registers.ra) return;
    if (this.#target.isX86 || ra >= cie.registers.fp)
      throw new BadFrame(`the return address is in column ${ra}`);
    cie.registers = { ...cie.registers, ra };
    cie.initial.raKind = ValueKind.REGISTER;
    cie.initial.raOffset = ra;
  }

  #readAugmentation(cursor: Cursor, augmentation: string, cie: Cie): void {
    const size = cursor.uleb();
    const end = cursor.skip(size) + size;
    cursor.at = end - size;
    cie.hasAugmentationData = true;
    for (const letter of augmentation.slice(1)) {
      if (letter === 'R') cie.fdeEncoding = cursor.u8();
      else if (letter === 'L') cursor.u8();
      else if (letter === 'P') skipEncoded(cursor, cursor.u8(), this.#section.address);
      else if (letter === 'S') cie.isSignal = true;
      // B and G (arm64: pointer authentication, memory tagging) carry no data; of an unknown one the size is known
      else if (letter !== 'B' && letter !== 'G') break;
    }
    cursor.at = end;
  }

  /** An address in a DW_EH_PE encoding: absolute, or relative to where it stands. */
  #pointer(cursor: Cursor, encoding: number): number {
    if (encoding === DW_EH_PE_OMIT) return 0;
    const at = cursor.at;
    const application = encoding & 0xf0;
    if (application !== 0 && application !== DW_EH_PE_PCREL)
      throw new BadFrame(`pointer encoding 0x${encoding.toString(16)}`);
    const value = readEncoded(cursor, encoding);
    return application === DW_EH_PE_PCREL ? this.#section.address + at + value : value;
  }
}

/** In Go's calling convention a frame of at least one word has the caller's fp (cmd/internal/obj/{x86,arm64}). */
function addSavedFp(rule: Rule): void {
  const hasFrame = rule.kind === RuleKind.CFA && rule.raKind === ValueKind.CFA && rule.cfaOffset >= 16;
  if (!hasFrame || rule.fpKind !== ValueKind.SAME || rule.raOffset < FIRST_OFFSET + 8) return;
  rule.fpKind = ValueKind.CFA;
  rule.fpOffset = rule.raOffset - 8;
}
