/**
 * .eh_frame and .debug_frame: a list of records, each a CIE (what functions share) or an FDE (one function: its
 * range and its frame program). The list is walked from front to back; no search table is needed. Sources: DWARF
 * 5, section 6.4.1; Linux Standard Base, "Exception Frames", for the augmentations and the pointer encodings.
 */
import { Cursor } from '../../common/base/cursor.ts';
import { OutOfBounds } from '../../common/elf/source.ts';
import { BadFrame, CfiProgram, type ProgramContext } from './cfi-program.ts';
import { CfiState, type Inexpressible, type Registers } from './cfi-state.ts';
import type { FunctionRows } from './rows.ts';
import { INVALID_RULE, type Rule, type RuleTable } from './rules.ts';

export interface FrameSection {
  bytes: Uint8Array;
  /** ELF virtual address of the first byte. */
  address: number;
  isEhFrame: boolean;
}

export interface FrameSectionStats {
  fdes: number;
  badFdes: number;
  badCies: number;
  /** Reason → FDEs, of the first few reasons. */
  reasons: Map<string, number>;
}

export interface DecodeTarget {
  rows: FunctionRows;
  rules: RuleTable;
  registers: Registers;
  isX86: boolean;
  inexpressible: Inexpressible;
  /** Whether a function that starts there is wanted. */
  accepts(start: number): boolean;
}

interface Cie {
  codeAlign: number;
  dataAlign: number;
  isSignal: boolean;
  hasAugmentationData: boolean;
  fdeEncoding: number;
  initial: CfiState;
}

const DW_EH_PE_OMIT = 0xff;
const DW_EH_PE_INDIRECT = 0x80;
const DW_EH_PE_PCREL = 0x10;
const MAX_REASONS = 32;

export function decodeFrameSection(section: FrameSection, target: DecodeTarget): FrameSectionStats {
  return new FrameDecoder(section, target).decode();
}

class FrameDecoder {
  readonly #section: FrameSection;
  readonly #target: DecodeTarget;
  readonly #cursor: Cursor;
  readonly #program = new CfiProgram();
  readonly #cies = new Map<number, Cie | BadFrame>();
  readonly #stats: FrameSectionStats = { fdes: 0, badFdes: 0, badCies: 0, reasons: new Map() };
  readonly #rule: Rule = { ...INVALID_RULE };

  constructor(section: FrameSection, target: DecodeTarget) {
    this.#section = section;
    this.#target = target;
    this.#cursor = new Cursor(section.bytes);
  }

  decode(): FrameSectionStats {
    const { bytes, isEhFrame } = this.#section;
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
        next = cursor.at;
        continue;
      }
      const body = cursor.at;
      if (length > bytes.length - body) break;
      next = body + length;
      cursor.end = next;
      this.#record(body, is64, isEhFrame);
    }
    return this.#stats;
  }

  #record(body: number, is64: boolean, isEhFrame: boolean): void {
    const cursor = this.#cursor;
    try {
      const id = is64 ? cursor.u64() : cursor.u32();
      const cieMarker = isEhFrame ? 0 : is64 ? 0xffffffff * 2 ** 32 + 0xffffffff : 0xffffffff;
      if (id === cieMarker) return;
      this.#fde(isEhFrame ? body - id : id);
    } catch (error) {
      this.#countBad(error);
    }
  }

  #countBad(error: unknown): void {
    if (!(error instanceof BadFrame || error instanceof OutOfBounds)) throw error;
    const { reasons } = this.#stats;
    const reason = error instanceof BadFrame ? error.message : 'reads past its end';
    if (reasons.has(reason) || reasons.size < MAX_REASONS)
      reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
    this.#stats.badFdes++;
  }

  #fde(cieAt: number): void {
    const cie = this.#cieAt(cieAt);
    const cursor = this.#cursor;
    const { rows, accepts } = this.#target;
    let start = this.#pointer(cursor, cie.fdeEncoding);
    const size = this.#pointer(cursor, cie.fdeEncoding & 0x0f);
    if (cie.hasAugmentationData) cursor.skip(cursor.uleb());
    if (size <= 0 || start <= 0 || !Number.isSafeInteger(start + size) || !accepts(start)) return;
    this.#stats.fdes++;
    const end = start + size;
    // a signal trampoline is entered by "return": it is looked up one byte before its first instruction
    if (cie.isSignal) start--;
    rows.beginFunction(start, end);
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
    const { rows, rules, isX86, inexpressible } = this.#target;
    const rule = this.#program.state.toRule(isSignal, isX86, this.#rule, inexpressible);
    rows.addRow(location, rule === INVALID_RULE ? 0 : rules.intern(rule));
  }

  #context(cie: Cie): ProgramContext {
    return {
      codeAlign: cie.codeAlign,
      dataAlign: cie.dataAlign,
      registers: this.#target.registers,
      initial: cie.initial,
      readAddress: (cursor) => this.#pointer(cursor, cie.fdeEncoding),
    };
  }

  #cieAt(at: number): Cie {
    let cie = this.#cies.get(at);
    if (!cie) {
      try {
        cie = this.#readCie(at);
      } catch (error) {
        if (!(error instanceof BadFrame || error instanceof OutOfBounds)) throw error;
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
    cursor.end = Math.min(cursor.at + length, bytes.length);
    const id = is64 ? cursor.u64() : cursor.u32();
    if (isEhFrame ? id !== 0 : id !== 0xffffffff && !is64) throw new BadFrame('it is no CIE');
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
      initial: new CfiState(),
    };
    const ra = version === 1 ? cursor.u8() : cursor.uleb();
    if (ra !== this.#target.registers.ra) throw new BadFrame(`the return address is in column ${ra}`);
    if (augmentation.startsWith('z')) this.#readAugmentation(cursor, augmentation, cie);
    else if (augmentation !== '' && augmentation !== 'eh')
      throw new BadFrame(`augmentation "${augmentation}"`);
    const program = new CfiProgram();
    program.run(cursor, { ...this.#context(cie), initial: new CfiState() }, 0, undefined);
    cie.initial.copyFrom(program.state);
    return cie;
  }

  #readAugmentation(cursor: Cursor, augmentation: string, cie: Cie): void {
    const size = cursor.uleb();
    const end = cursor.skip(size) + size;
    cursor.at = end - size;
    cie.hasAugmentationData = true;
    for (const letter of augmentation.slice(1)) {
      if (letter === 'R') cie.fdeEncoding = cursor.u8();
      else if (letter === 'L') cursor.u8();
      else if (letter === 'P') this.#pointer(cursor, cursor.u8());
      else if (letter === 'S') cie.isSignal = true;
      // B and G (arm64: pointer authentication, memory tagging) carry no data; of an unknown one the size is known
      else if (letter !== 'B' && letter !== 'G') break;
    }
    cursor.at = end;
  }

  /** A pointer in a DW_EH_PE encoding; only its value matters for FDE ranges, so indirect ones are refused. */
  #pointer(cursor: Cursor, encoding: number): number {
    if (encoding === DW_EH_PE_OMIT) return 0;
    const at = cursor.at;
    const value = readEncoded(cursor, encoding & 0x0f);
    const application = encoding & 0x70;
    if (application === DW_EH_PE_PCREL) return this.#section.address + at + value;
    if (application !== 0 || encoding & DW_EH_PE_INDIRECT) {
      throw new BadFrame(`pointer encoding 0x${encoding.toString(16)}`);
    }
    return value;
  }
}

function readEncoded(cursor: Cursor, format: number): number {
  switch (format) {
    case 0x00:
    case 0x04:
      return cursor.u64();
    case 0x01:
      return cursor.uleb();
    case 0x02:
      return cursor.u16();
    case 0x03:
      return cursor.u32();
    case 0x09:
      return cursor.sleb();
    case 0x0a:
      return cursor.i16();
    case 0x0b:
      return cursor.i32();
    case 0x08:
    case 0x0c:
      return cursor.i64();
    default:
      throw new BadFrame(`pointer format ${format}`);
  }
}
