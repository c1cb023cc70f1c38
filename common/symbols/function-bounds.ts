/**
 * Where functions begin and end, as call frame information has it: for symbols that have no size, and code without symbols.
 * Each is looked up by itself, in the table of .eh_frame_hdr where there is one; else the section is walked once.
 */

import { OutOfBounds } from '../base/byte-source.ts';
import { Cursor } from '../base/cursor.ts';
import { countBelow } from '../base/search.ts';
import { readEhFrameHeader } from '../elf/eh-frame-header.ts';
import { ElfError, type ElfFile, type Section, SHT_NOBITS } from '../elf/elf.ts';
import { DW_EH_PE_OMIT, DW_EH_PE_PCREL, readEncoded, skipEncoded } from '../elf/pointer-encodings.ts';

/** What is known of functions around an ELF virtual address. */
export interface FunctionPlace {
  /** Of the function that contains the address; undefined where there is none. */
  start: number | undefined;
  end: number | undefined;
  /** Where the next function begins. */
  next: number;
}

export type FindFunction = (address: number) => FunctionPlace;

/** Of both a function's entry and what it shares with others, as far as it is read here. */
const MAX_RECORD_BYTES = 64;
const MAX_ENTRIES = 8 << 20;
/** Walked sections; those with a table may be larger. */
const MAX_WALKED_BYTES = 64 << 20;
const MAX_WALKED = 1 << 21;
/** A search costs some twenty small reads. Real files have some hundred symbols without a size. */
const MAX_SEARCHES = 16_384;

type ReadAt = (address: number, length: number) => Uint8Array;

const NOWHERE: FunctionPlace = { start: undefined, end: undefined, next: Number.MAX_SAFE_INTEGER };
const findNone: FindFunction = () => NOWHERE;

/** In any of the files: one of debug information alone has no .eh_frame, but maybe .debug_frame. */
export function functionFinder(elves: readonly ElfFile[]): FindFunction {
  const sources = elves.flatMap((elf) => [fromEhFrame(elf), fromWalk(elf, '.debug_frame')]);
  let left = MAX_SEARCHES;
  return (address) => {
    const place = { ...NOWHERE };
    if (left-- <= 0) return { start: undefined, end: undefined, next: address + 1 };
    for (const source of sources) {
      const { start, end, next } = attempt(() => source(address)) ?? NOWHERE;
      place.start ??= start;
      place.end ??= end;
      place.next = Math.min(place.next, next);
    }
    return place;
  };
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof OutOfBounds || error instanceof ElfError) return undefined;
    throw error;
  }
}

function fromEhFrame(elf: ElfFile): FindFunction {
  // as in a file of debug information, whose program headers are those of the program
  if (elf.section('.eh_frame')?.type === SHT_NOBITS) return findNone;
  const header = attempt(() => readEhFrameHeader(elf));
  if (!header?.table) return fromWalk(elf, '.eh_frame');
  const { address: base, table, ehFrame } = header;
  const readAt: ReadAt = (address, length) => {
    const offset = elf.addressToFileOffset(address);
    if (offset === undefined) throw new OutOfBounds(`${length} bytes at address ${address}`);
    return elf.source.read(offset, Math.min(length, elf.source.size - offset));
  };
  const wordAt = (i: number): number => base + new Cursor(readAt(table.address + i * 4, 4)).i32();
  const frames = new FrameEntries(readAt, true, ehFrame);
  return finder(
    Math.min(table.count, MAX_ENTRIES),
    (i) => wordAt(2 * i),
    (i) => frames.at(wordAt(2 * i + 1)).range?.end,
  );
}

function fromWalk(elf: ElfFile, name: string): FindFunction {
  const section = elf.section(name);
  if (!section || section.type === SHT_NOBITS) return findNone;
  let find: FindFunction | undefined;
  return (address) => {
    find ??= attempt(() => walk(elf, section)) ?? findNone;
    return find(address);
  };
}

/** Among functions by ascending start. */
const finder =
  (count: number, startOf: (i: number) => number, endOf: (i: number) => number | undefined): FindFunction =>
  (address) => {
    const i = countBelow(count, (k) => startOf(k) <= address);
    const end = i === 0 ? undefined : attempt(() => endOf(i - 1));
    const isInside = end !== undefined && address < end;
    return {
      start: isInside ? startOf(i - 1) : undefined,
      end: isInside ? end : undefined,
      next: i < count ? startOf(i) : Number.MAX_SAFE_INTEGER,
    };
  };

/** What is damaged ends the walk; what came before it stays. */
function walk(elf: ElfFile, section: Section): FindFunction {
  const bytes = elf.sectionData(section, MAX_WALKED_BYTES);
  const { addr } = section;
  const readAt: ReadAt = (address, length) => {
    const at = address - addr;
    if (!(at >= 0 && at < bytes.length)) throw new OutOfBounds(`${length} bytes at address ${address}`);
    return bytes.subarray(at, at + length);
  };
  const frames = new FrameEntries(readAt, section.name === '.eh_frame', addr);
  const found: { start: number; end: number }[] = [];
  attempt(() => {
    for (let at = addr, left = MAX_WALKED; at + 4 <= addr + bytes.length && left > 0; left--) {
      const { range, next } = frames.at(at);
      if (range) found.push(range);
      at = next;
    }
  });
  found.sort((a, b) => a.start - b.start);
  // kept as long as the file is open
  const starts = Float64Array.from(found, ({ start }) => start);
  const ends = Float64Array.from(found, ({ end }) => end);
  return finder(
    found.length,
    (i) => starts[i]!,
    (i) => ends[i],
  );
}

interface FrameEntry {
  /** Of an FDE. */
  range: { start: number; end: number } | undefined;
  /** Address of the record behind it. */
  next: number;
}

/** Records of .eh_frame or .debug_frame by address: agent/stack-deltas/sources/frame-section.ts reads all of them. */
class FrameEntries {
  readonly #readAt: ReadAt;
  readonly #isEhFrame: boolean;
  readonly #section: number;
  /** How addresses are written, by address of the CIE. */
  readonly #encodings = new Map<number, number>();

  /** `section`: its address, from which .debug_frame counts. */
  constructor(readAt: ReadAt, isEhFrame: boolean, section: number) {
    this.#readAt = readAt;
    this.#isEhFrame = isEhFrame;
    this.#section = section;
  }

  at(address: number): FrameEntry {
    const { cursor, id, isCie, idAt, next } = this.#record(address);
    if (isCie) return { range: undefined, next };
    const cie = this.#isEhFrame ? idAt - id : this.#section + id;
    const encoding = this.#encodingOf(cie);
    if (encoding === DW_EH_PE_OMIT) return { range: undefined, next };
    const at = address + cursor.at;
    const isRelative = (encoding & 0xf0) === DW_EH_PE_PCREL;
    const start = readEncoded(cursor, encoding) + (isRelative ? at : 0);
    const size = readEncoded(cursor, encoding & 0x0f);
    const isRange = size > 0 && start > 0 && Number.isSafeInteger(start + size);
    return { range: isRange ? { start, end: start + size } : undefined, next };
  }

  /** Up to its ID, which tells a CIE from an FDE. */
  #record(address: number) {
    const cursor = new Cursor(this.#readAt(address, MAX_RECORD_BYTES));
    let length = cursor.u32();
    const is64 = length === 0xffffffff;
    if (is64) length = cursor.u64();
    const idAt = address + cursor.at;
    const next = idAt + length;
    if (length === 0) return { cursor, id: 0, isCie: true, idAt, next };
    const isLong = is64 && !this.#isEhFrame;
    const id = isLong ? cursor.u64() : cursor.u32();
    const cieId = this.#isEhFrame ? 0 : isLong ? 0xffffffff * 2 ** 32 + 0xffffffff : 0xffffffff;
    return { cursor, id, isCie: id === cieId, idAt, next };
  }

  #encodingOf(cie: number): number {
    let encoding = this.#encodings.get(cie);
    if (encoding === undefined) {
      encoding = attempt(() => this.#readEncoding(cie)) ?? DW_EH_PE_OMIT;
      this.#encodings.set(cie, encoding);
    }
    return encoding;
  }

  #readEncoding(cie: number): number {
    const { cursor, isCie } = this.#record(cie);
    if (!isCie) return DW_EH_PE_OMIT;
    const version = cursor.u8();
    const augmentation = cursor.cstring();
    if (version === 4) cursor.skip(2);
    if (augmentation === '') return 0;
    if (!augmentation.startsWith('z')) return DW_EH_PE_OMIT;
    cursor.uleb();
    cursor.sleb();
    if (version === 1) cursor.u8();
    else cursor.uleb();
    cursor.uleb();
    for (const letter of augmentation.slice(1)) {
      if (letter === 'R') return cursor.u8();
      if (letter === 'L') cursor.u8();
      else if (letter === 'P') skipEncoded(cursor, cursor.u8(), cie);
      else if (letter !== 'S' && letter !== 'B' && letter !== 'G') return DW_EH_PE_OMIT;
    }
    return 0;
  }
}
