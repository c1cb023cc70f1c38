/** The units of one DWARF file: where they stand, and their tables, as far as they were asked for. */
import { LRUCache } from 'lru-cache';
import { lastAtOrBelow } from '../../base/search.ts';
import { type AbbrevTable, readAbbrevs } from './abbrevs.ts';
import { DwarfError } from './constants.ts';
import type { DwarfFile } from './dwarf-file.ts';
import { Column } from './intervals.ts';
import { readUnit, readUnitHeader, type Unit } from './unit.ts';

const MAX_UNITS = 1 << 20;
const KEPT_UNITS = 1024;
const KEPT_ABBREV_BYTES = 8 << 20;

export class UnitList {
  readonly file: DwarfFile;
  #offsets: Float64Array | undefined;
  readonly #units = new LRUCache<number, Unit>({ max: KEPT_UNITS });
  readonly #abbrevs = new LRUCache<string, AbbrevTable>({
    maxSize: KEPT_ABBREV_BYTES,
    sizeCalculation: (table) => table.byteLength + 1,
  });

  constructor(file: DwarfFile) {
    this.file = file;
  }

  get byteLength(): number {
    return (this.#offsets?.byteLength ?? 0) + this.#units.size * 512 + this.#abbrevs.calculatedSize;
  }

  /** Where units begin in .debug_info, ascending; those before damage. */
  get offsets(): Float64Array {
    this.#offsets ??= this.#scan();
    return this.#offsets;
  }

  /** The unit whose header stands at `offset`. Throws DwarfError or OutOfBounds. */
  unit(offset: number): Unit {
    const kept = this.#units.get(offset);
    if (kept) return kept;
    const section = this.file.section('info');
    const header = section.parse(offset, section.size, (c) => readUnitHeader(c, offset, false));
    const unit = readUnit(this.file, section, header);
    this.#units.set(offset, unit);
    return unit;
  }

  /** The unit that a DIE belongs to. */
  unitOf(die: number): Unit {
    const i = lastAtOrBelow(this.offsets, die);
    if (i < 0) throw new DwarfError(`no unit at ${die}`);
    return this.unit(this.offsets[i]!);
  }

  abbrevs(unit: Unit): AbbrevTable {
    const offset = unit.abbrevOffset + unit.contribution.abbrev;
    const key = `${offset}:${unit.version}:${unit.offsetSize}:${unit.addressSize}`;
    let table = this.#abbrevs.get(key);
    if (!table) {
      const section = this.file.section('abbrev');
      table = section.parse(offset, section.size, (c) => readAbbrevs(c, unit));
      this.#abbrevs.set(key, table);
    }
    return table;
  }

  #scan(): Float64Array {
    const offsets = new Column((n) => new Float64Array(n));
    const section = this.file.section('info');
    let at = 0;
    try {
      while (at < section.size && offsets.length < MAX_UNITS) {
        const { end } = section.parse(at, section.size, (c) => readUnitHeader(c, at, false));
        offsets.push(at);
        at = end;
      }
    } catch {
      // units behind a broken header cannot be found
    }
    return offsets.finish();
  }
}
