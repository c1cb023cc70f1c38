/**
 * SFrame, version 2: what `as --gsframe` writes beside .eh_frame, or instead of it. A header, an index of functions
 * (FDEs of 20 bytes), and for each of them rows (FREs): from which byte on, CFA = sp or fp + offset, and where the
 * return address and the caller's frame pointer are saved from there. Source: "The SFrame Format, Version 2",
 * sourceware.org/binutils/docs-2.44/sframe-spec.html.
 */
import { Cursor } from '../../../common/base/cursor.ts';
import { RuleKind, ValueKind } from '../../records/records.gen.ts';
import { newRule, type Rule, STOP_RULE } from '../rules/rules.ts';
import { BadFrame } from './cfi-program.ts';
import type { DecodeTarget, FrameSection } from './frame-section.ts';
import { FrameSectionStats } from './frame-stats.ts';

const MAGIC = 0xdee2;
const VERSION = 2;
const HEADER_BYTES = 28;
const FDE_BYTES = 20;
/** Little-endian, as all that is read here. */
const ABI = { x86: 3, arm64: 2 } as const;
/** Where a function begins is relative to the field that says so, not to the section. */
const FLAG_START_PCREL = 4;
/** The rows repeat every so many bytes, as in the procedure linkage table. */
const TYPE_PCMASK = 1;
/** Start, info byte and one offset. */
const SMALLEST_FRE_BYTES = 3;
const MAX_REPEATED_FRES = 64;
const MAX_REPEATED_ROWS = 1 << 20;
const MAX_OFFSETS = 3;

const fits16 = (offset: number): boolean => offset >= -32_768 && offset <= 32_767;

export function decodeSframe(section: FrameSection, target: DecodeTarget): FrameSectionStats {
  return new SframeDecoder(section, target).decode();
}

interface Header {
  startIsPcRelative: boolean;
  /** 0: each row shows. */
  fixedFp: number;
  fixedRa: number;
  fdeCount: number;
  fdesAt: number;
  fresAt: number;
}

interface Fde {
  start: number;
  size: number;
  fresAt: number;
  freCount: number;
  /** Bytes of a row's start: 1, 2 or 4. */
  startBytes: number;
  /** 0: the rows do not repeat. */
  repeatBytes: number;
}

class SframeDecoder {
  readonly #section: FrameSection;
  readonly #target: DecodeTarget;
  readonly #cursor: Cursor;
  readonly #stats = new FrameSectionStats();
  readonly #rule: Rule = newRule({ kind: RuleKind.CFA });
  readonly #offsets: number[] = [];
  /** Functions may share rows; those of all together have no more than fit into the section. */
  #fresLeft: number;
  #repeatedRowsLeft = MAX_REPEATED_ROWS;

  constructor(section: FrameSection, target: DecodeTarget) {
    this.#section = section;
    this.#target = target;
    this.#cursor = new Cursor(section.bytes);
    this.#fresLeft = section.bytes.length / SMALLEST_FRE_BYTES;
  }

  decode(): FrameSectionStats {
    const header = this.#attempt(() => this.#readHeader());
    for (let i = 0; header && i < header.fdeCount; i++) {
      this.#attempt(() => {
        const fde = this.#readFde(header, header.fdesAt + i * FDE_BYTES);
        if (fde) this.#addFunction(header, fde);
      });
    }
    return this.#stats;
  }

  #attempt<T>(read: () => T): T | undefined {
    try {
      return read();
    } catch (error) {
      this.#stats.countBad(error);
      return undefined;
    }
  }

  #readHeader(): Header {
    const cursor = this.#cursor;
    cursor.at = 0;
    if (cursor.u16() !== MAGIC) throw new BadFrame('no SFrame section');
    const version = cursor.u8();
    if (version !== VERSION) throw new BadFrame(`SFrame version ${version}`);
    const flags = cursor.u8();
    const abi = cursor.u8();
    if (abi !== (this.#target.isX86 ? ABI.x86 : ABI.arm64)) throw new BadFrame(`SFrame ABI ${abi}`);
    const [fixedFp, fixedRa] = [cursor.i8(), cursor.i8()];
    const body = HEADER_BYTES + cursor.u8();
    const fdeCount = cursor.u32();
    cursor.skip(8); // number of rows, and their bytes: each function shows its own
    const fdesAt = body + cursor.u32();
    const fresAt = body + cursor.u32();
    if (fdesAt + fdeCount * FDE_BYTES > this.#section.bytes.length)
      throw new BadFrame(`its index of ${fdeCount} functions ends behind the section`);
    const startIsPcRelative = (flags & FLAG_START_PCREL) !== 0;
    return { startIsPcRelative, fixedFp, fixedRa, fdeCount, fdesAt, fresAt };
  }

  /** Undefined where its function is not wanted, or has no rows. */
  #readFde(header: Header, at: number): Fde | undefined {
    const cursor = this.#cursor;
    cursor.at = at;
    const start = this.#section.address + (header.startIsPcRelative ? at : 0) + cursor.i32();
    const size = cursor.u32();
    const fresAt = header.fresAt + cursor.u32();
    const freCount = cursor.u32();
    const info = cursor.u8();
    const repeatBytes = cursor.u8();
    if (size === 0 || freCount === 0 || start <= 0 || !this.#target.accepts(start)) return undefined;
    const startType = info & 0x0f;
    if (startType > 2) throw new BadFrame(`rows of type ${startType}`);
    const isRepeated = ((info >> 4) & 1) === TYPE_PCMASK;
    if (isRepeated && repeatBytes === 0) throw new BadFrame('rows that repeat every 0 bytes');
    return {
      start,
      size,
      fresAt,
      freCount,
      startBytes: 1 << startType,
      repeatBytes: isRepeated ? repeatBytes : 0,
    };
  }

  #addFunction(header: Header, fde: Fde): void {
    const { rows } = this.#target;
    this.#fresLeft -= fde.freCount;
    if (this.#fresLeft < 0) throw new BadFrame('more rows than the section has room for');
    rows.beginFunction(fde.start, fde.start + fde.size);
    // before the first row nothing is known
    rows.addRow(fde.start, 0);
    this.#cursor.at = fde.fresAt;
    try {
      if (fde.repeatBytes === 0) this.#addRows(header, fde);
      else this.#addRepeated(header, fde);
    } catch (error) {
      rows.dropFunction();
      throw error;
    }
    rows.endFunction();
    this.#stats.fdes++;
  }

  #addRows(header: Header, fde: Fde): void {
    let previous = -1;
    for (let i = 0; i < fde.freCount; i++) {
      const at = this.#readStart(fde.startBytes);
      if (at <= previous) throw new BadFrame('rows out of order');
      previous = at;
      this.#target.rows.addRow(fde.start + at, this.#readRule(header));
    }
  }

  #addRepeated(header: Header, fde: Fde): void {
    const { rows } = this.#target;
    const repeats = Math.ceil(fde.size / fde.repeatBytes);
    this.#repeatedRowsLeft -= repeats * fde.freCount;
    if (fde.freCount > MAX_REPEATED_FRES || this.#repeatedRowsLeft < 0)
      throw new BadFrame('too many rows that repeat');
    const pattern: [number, number][] = [];
    for (let i = 0; i < fde.freCount; i++) {
      const at = this.#readStart(fde.startBytes);
      if (at <= (pattern.at(-1)?.[0] ?? -1) || at >= fde.repeatBytes) throw new BadFrame('rows out of order');
      pattern.push([at, this.#readRule(header)]);
    }
    for (let base = fde.start; base < fde.start + fde.size; base += fde.repeatBytes) {
      if (pattern[0]![0] > 0) rows.addRow(base, 0);
      for (const [at, rule] of pattern) rows.addRow(base + at, rule);
    }
  }

  #readStart(bytes: number): number {
    const cursor = this.#cursor;
    return bytes === 1 ? cursor.u8() : bytes === 2 ? cursor.u16() : cursor.u32();
  }

  /** Its number in the table of rules. */
  #readRule(header: Header): number {
    const cursor = this.#cursor;
    const { rules, registers, unsupportedCfi } = this.#target;
    const info = cursor.u8();
    const count = (info >> 1) & 0x0f;
    const offsets = this.#readOffsets(count, (info >> 5) & 3);
    // the outermost function: its return address is undefined
    if (count === 0) return rules.intern(STOP_RULE);
    const rule = this.#rule;
    rule.cfaReg = (info & 1) === 1 ? registers.sp : registers.fp;
    rule.cfaOffset = offsets[0]!;
    let next = 1;
    rule.raOffset = header.fixedRa !== 0 ? header.fixedRa : (offsets[next++] ?? 0);
    rule.raKind = ValueKind.CFA;
    rule.fpOffset = header.fixedFp !== 0 ? header.fixedFp : (offsets[next++] ?? 0);
    rule.fpKind = rule.fpOffset === 0 ? ValueKind.SAME : ValueKind.CFA;
    if (rule.raOffset === 0) {
      if (this.#target.isX86) throw new BadFrame('no return address');
      // still in the link register
      [rule.raKind, rule.raOffset] = [ValueKind.REGISTER, registers.ra];
    }
    if (!fits16(rule.raOffset) || !fits16(rule.fpOffset)) {
      unsupportedCfi.offsetRange++;
      return 0;
    }
    return rules.intern(rule);
  }

  #readOffsets(count: number, size: number): readonly number[] {
    const cursor = this.#cursor;
    if (count > MAX_OFFSETS) throw new BadFrame(`${count} offsets in a row`);
    if (size > 2) throw new BadFrame('offsets of an unknown size');
    const offsets = this.#offsets;
    offsets.length = 0;
    for (let i = 0; i < count; i++)
      offsets.push(size === 0 ? cursor.i8() : size === 1 ? cursor.i16() : cursor.i32());
    return offsets;
  }
}
