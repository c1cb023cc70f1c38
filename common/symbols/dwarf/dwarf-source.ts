/**
 * Names, inline chains and lines from DWARF 2 to 5. Lazy: an index of units first, then only the units that
 * contain an address, of which the last used ones stay within a byte bound.
 */
import { LRUCache } from 'lru-cache';
import type { ByteSource } from '../../base/byte-source.ts';
import { type ElfFile, parseElf } from '../../elf/elf.ts';
import type { AddressRange } from '../address-range.ts';
import { type CodeRange, codeRangeFinder, readCodeRanges } from '../code-ranges.ts';
import { IN_MEMORY, packParts, type Scratch, unpackParts } from '../scratch.ts';
import type { FileAccess, SymbolFrame, SymbolSource } from '../source.ts';
import { DieNames } from './die-names.ts';
import { DwarfFile } from './dwarf-file.ts';
import { FileNames } from './file-names.ts';
import { type FunctionRow, Functions, FunctionWalk } from './functions.ts';
import { Intervals } from './intervals.ts';
import { readLineTable } from './line-header.ts';
import { LineTable } from './line-table.ts';
import { SplitUnits } from './split.ts';
import { isTypeUnit, type Unit, WHOLE_FILE } from './unit.ts';
import { UnitIndex } from './unit-index.ts';
import { UnitList } from './unit-list.ts';

export interface DwarfLimits {
  /** Of units that were read and stay. One unit in use may be larger. */
  cacheBytes: number;
  /**
   * Of each compressed section when decompressed, and of all that stay in memory; a section that exceeds it counts as
   * missing.
   */
  decompressedBytes: number;
  /** Of one unit; a larger one has no names. */
  unitBytes: number;
  /** The same of a unit in a .dwo or .dwp file, and of all compressed sections of a .dwo when decompressed. */
  splitBytes: number;
}

export const DEFAULT_LIMITS: DwarfLimits = {
  cacheBytes: 64 << 20,
  decompressedBytes: 1 << 30,
  unitBytes: 256 << 20,
  splitBytes: 64 << 20,
};

/**
 * The linker lets every unit that had a copy of a function claim the copy that was kept: where the first of them
 * don't know a function there, none of the hundreds behind them will, and each would be read for it.
 */
const MAX_CLAIMANTS = 4;

interface ParsedUnit {
  unit: Unit;
  functions: Functions;
  lines: LineTable | undefined;
  names: DieNames;
  byteLength: number;
}

interface PackedUnit {
  unit: Unit;
  /** Functions; then, if it has them, lines and their files. */
  packed: ByteSource;
}

const nameOf = (unitOffset: number): string => `unit ${unitOffset}`;

/** About what stays in memory of one. */
const PACKED_UNIT_BYTES = 1024;
const MAX_PACKED_UNITS = 8192;

const packUnit = ({ functions, lines }: ParsedUnit): Uint8Array =>
  packParts(lines ? [functions.pack(), lines.pack(), lines.files.pack()] : [functions.pack()]);

function unpackUnit({ unit, packed }: PackedUnit, names: DieNames): ParsedUnit {
  const [functions, rows, files] = unpackParts(packed);
  return {
    unit,
    functions: Functions.unpack(functions!),
    lines: rows && files && LineTable.unpack(FileNames.unpack(files), rows),
    names,
    byteLength: functions!.size + (rows?.size ?? 0) + 512,
  };
}

/** Undefined where the file has no DWARF. `code` is the file whose code it describes, if that is another one. */
export function openDwarf(
  elf: ElfFile,
  files: FileAccess,
  code: ElfFile = elf,
  limits: DwarfLimits = DEFAULT_LIMITS,
  scratch: Scratch = IN_MEMORY,
): DwarfSource | undefined {
  const file = new DwarfFile(elf, false, limits.decompressedBytes, scratch);
  return file.section('info').size > 0 ? new DwarfSource(file, files, code, limits, scratch) : undefined;
}

export class DwarfSource implements SymbolSource {
  readonly #file: DwarfFile;
  readonly #files: FileAccess;
  readonly #limits: DwarfLimits;
  readonly #rangeOf: (address: number) => CodeRange | undefined;
  readonly #isCode: (address: number) => boolean;
  readonly #units: UnitList;
  readonly #index: UnitIndex;
  readonly #names: DieNames;
  readonly #split: SplitUnits;
  #alternate: UnitList | undefined | null;
  readonly #parsed: LRUCache<number, ParsedUnit>;
  readonly #scratch: Scratch;
  /** Units that were parsed before: what was read of them, outside memory. */
  readonly #packed = new Map<number, PackedUnit>();
  /** Units that were asked for one address. */
  readonly #asked = new Set<number>();
  /** One of them was asked for more. */
  #isAskedAgain = false;
  /** Stays, also where it is larger than the cache. */
  #last: { offset: number; parsed: ParsedUnit } | undefined;
  #damaged = 0;

  constructor(file: DwarfFile, files: FileAccess, code: ElfFile, limits: DwarfLimits, scratch: Scratch) {
    this.#file = file;
    this.#scratch = scratch;
    this.#files = files;
    this.#limits = limits;
    this.#rangeOf = codeRangeFinder(readCodeRanges(code, false));
    this.#isCode = (address) => this.#rangeOf(address) !== undefined;
    this.#units = new UnitList(file);
    this.#index = new UnitIndex(this.#units, this.#isCode);
    this.#names = new DieNames(this.#units, () => this.#openAlternate());
    this.#split = new SplitUnits(files, limits);
    this.#parsed = new LRUCache({
      maxSize: limits.cacheBytes,
      sizeCalculation: ({ byteLength }) => byteLength + 1,
    });
  }

  get byteLength(): number {
    return (
      this.#file.byteLength +
      (this.#alternate ? this.#alternate.byteLength + this.#alternate.file.byteLength : 0) +
      this.#units.byteLength +
      this.#index.byteLength +
      this.#names.byteLength +
      this.#split.byteLength +
      this.#packed.size * PACKED_UNIT_BYTES +
      this.#asked.size * 32 +
      this.#parsed.calculatedSize
    );
  }

  /** Units, tables and sections that are broken or exceed a limit, as far as look-ups met them. */
  get damaged(): number {
    return this.#damaged + this.#file.damaged;
  }

  lookup(address: number, range?: AddressRange): SymbolFrame[] {
    let best: SymbolFrame[] = [];
    let claimants = 0;
    const claimed = this.#rangeOf(address);
    if (claimed) range?.narrow(claimed.start, claimed.end);
    else range?.narrowTo(address);
    if (!claimed) return best;
    const damaged = this.damaged;
    const visit = (offset: number): boolean => {
      const frames = this.#framesAt(offset, address, range);
      if (best.length === 0 || frames.at(-1)?.function) best = frames.length > 0 ? frames : best;
      return ++claimants >= MAX_CLAIMANTS || Boolean(best.at(-1)?.function);
    };
    this.#attempt(() => this.#index.visit(address, visit, range));
    if (this.damaged > damaged) range?.narrowTo(address);
    return best;
  }

  /** While nobody has come back to a unit, only what is at the address is read of each. */
  #framesAt(offset: number, address: number, range: AddressRange | undefined): SymbolFrame[] {
    this.#isAskedAgain ||= this.#scratch.isOutside || this.#asked.has(offset);
    if (!this.#isAskedAgain) this.#asked.add(offset);
    const unit = this.#isAskedAgain ? undefined : this.#units.unit(offset);
    // a .dwo file is not looked for twice
    if (unit?.dwoName === '') {
      const frames = this.#framesIn(this.#parse(unit, address), address);
      // what is beside it was not read
      range?.narrowTo(address);
      if (frames.at(-1)?.function) return frames;
    }
    return this.#framesIn(this.#unitAt(offset), address, range);
  }

  #unitAt(offset: number): ParsedUnit {
    if (this.#last?.offset === offset) return this.#last.parsed;
    let parsed = this.#parsed.get(offset);
    if (!parsed) {
      const packed = this.#packed.get(offset) ?? this.#findPacked(offset);
      parsed = packed ? unpackUnit(packed, this.#names) : this.#parseNew(offset);
      this.#parsed.set(offset, parsed);
    }
    this.#last = { offset, parsed };
    return parsed;
  }

  /** That an earlier run parsed. */
  #findPacked(offset: number): PackedUnit | undefined {
    const packed = this.#hasRoom ? this.#scratch.find(nameOf(offset)) : undefined;
    const found = packed && { unit: this.#units.unit(offset), packed };
    if (found) this.#packed.set(offset, found);
    return found;
  }

  #parseNew(offset: number): ParsedUnit {
    const before = this.damaged;
    const parsed = this.#parse(this.#units.unit(offset));
    // a split unit needs its file, which would stay open
    const isWhole = parsed.names === this.#names;
    if (!this.#hasRoom || !isWhole) return parsed;
    // damage is counted by each run
    const name = this.damaged > before ? undefined : nameOf(offset);
    this.#packed.set(offset, { unit: parsed.unit, packed: this.#scratch.store(packUnit(parsed), name) });
    return parsed;
  }

  get #hasRoom(): boolean {
    return this.#scratch.isOutside && this.#packed.size < MAX_PACKED_UNITS;
  }

  /** With `only`, for that address. */
  #parse(skeleton: Unit, only?: number): ParsedUnit {
    if (skeleton.sharedCompDir >= 0) skeleton.compDir ||= this.#sharedText(skeleton.sharedCompDir);
    const { unit, units } = (skeleton.dwoName && this.#attempt(() => this.#split.find(skeleton))) || {
      unit: skeleton,
      units: this.#units,
    };
    const functions = this.#readFunctions(unit, units, only);
    const lines = this.#attempt(() => readLineTable(skeleton, this.#isCode, only));
    const isSplit = units !== this.#units;
    const names = isSplit ? new DieNames(units, () => undefined) : this.#names;
    const file = isSplit && unit.contribution === WHOLE_FILE ? splitFileBytes(units) : 0;
    const byteLength = functions.byteLength + (lines?.byteLength ?? 0) + file + 512;
    return { unit, functions, lines, names, byteLength };
  }

  #readFunctions(unit: Unit, units: UnitList, only: number | undefined): Functions {
    let walk: FunctionWalk | undefined;
    const { unitBytes, splitBytes } = this.#limits;
    const limit = units === this.#units ? unitBytes : splitBytes;
    if (isTypeUnit(unit) || unit.end - unit.offset > limit) this.#damaged++;
    else
      this.#attempt(() => {
        walk = new FunctionWalk(unit, units.abbrevs(unit), this.#isCode, only);
        walk.run();
      });
    return walk?.finish() ?? NO_FUNCTIONS;
  }

  /** What was read before the damage stays. */
  #attempt<T>(read: () => T): T | undefined {
    try {
      return read();
    } catch (error) {
      if (!isDamage(error)) throw error;
      this.#damaged++;
      return undefined;
    }
  }

  #framesIn(
    { unit, functions, lines, names }: ParsedUnit,
    address: number,
    range?: AddressRange,
  ): SymbolFrame[] {
    const row = lines?.lookup(address, range);
    const path = (file: number): string => lines?.files.path(file) ?? '';
    let [file, line, column] = row ? [path(row.file), row.line, row.column] : ['', 0, 0];
    const chain = functions.lookup(address, range);
    if (chain.length === 0 && row)
      return [{ function: '', systemName: '', file, line, column, inlined: false }];
    return chain.map((entry: FunctionRow) => {
      const { name, linkageName, scope } = names.resolve(entry.nameDie, unit);
      const frame: SymbolFrame = {
        function: name || linkageName,
        systemName: linkageName,
        file,
        line,
        column,
        inlined: entry.isInlined,
        ...(scope && { scope }),
      };
      [file, line, column] = [path(entry.callFile), entry.callLine, entry.callColumn];
      return frame;
    });
  }

  #sharedText(at: number): string {
    return this.#attempt(() => this.#openAlternate()?.file.section('str').string(at)) ?? '';
  }

  #openAlternate(): UnitList | undefined {
    if (this.#alternate === undefined)
      this.#alternate = this.#attempt(() => openAlternate(this.#file.elf, this.#files, this.#limits)) ?? null;
    return this.#alternate ?? undefined;
  }
}

const NO_FUNCTIONS = new Functions(
  {
    nameDies: new Float64Array(0),
    parents: new Int32Array(0),
    callFiles: new Uint32Array(0),
    callLines: new Uint32Array(0),
    callColumns: new Uint16Array(0),
  },
  new Intervals(new Float64Array(0), new Float64Array(0), new Uint32Array(0)),
);

/** Names are read later, of windows that one section keeps at most. */
const LATER_BYTES = 4 << 20;

/** What the .dwo file of a unit holds in memory now, or will. */
const splitFileBytes = (units: UnitList): number =>
  Math.max(units.byteLength + units.file.byteLength, Math.min(units.file.elf.source.size, LATER_BYTES));

const DAMAGE = new Set(['DwarfError', 'OutOfBounds', 'ElfError']);
const isDamage = (error: unknown): boolean => error instanceof Error && DAMAGE.has(error.name);

/** The file of .gnu_debugaltlink: a path, NUL, and the build ID of that file. */
function openAlternate(elf: ElfFile, files: FileAccess, limits: DwarfLimits): UnitList | undefined {
  const section = elf.section('.gnu_debugaltlink');
  if (!section) return undefined;
  const bytes = elf.sectionData(section, 1 << 16);
  const end = bytes.indexOf(0);
  if (end < 0) return undefined;
  const path = Buffer.from(bytes.subarray(0, end)).toString('utf8');
  const buildId = Buffer.from(bytes.subarray(end + 1)).toString('hex');
  const source = files.open({ kind: 'dwz', path, buildId })?.source;
  if (!source) return undefined;
  const alternate = parseElf(source);
  return alternate.gnuBuildId === buildId
    ? new UnitList(new DwarfFile(alternate, false, limits.decompressedBytes))
    : undefined;
}
