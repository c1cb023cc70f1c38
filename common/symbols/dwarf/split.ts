/** Split DWARF: the unit of a .dwo or .dwp file that a skeleton unit stands for. DWARF 5, sections 7.3.2 and 7.3.5. */

import type { ByteSource } from '../../base/byte-source.ts';
import type { Cursor } from '../../base/cursor.ts';
import { parseElf } from '../../elf/elf.ts';
import type { FileAccess } from '../source.ts';
import { DwarfError } from './constants.ts';
import { DwarfFile } from './dwarf-file.ts';
import { type Contribution, readUnit, readUnitHeader, type Unit, WHOLE_FILE } from './unit.ts';
import { UnitList } from './unit-list.ts';

const MAX_UNITS = 1 << 20;
const MAX_COLUMNS = 64;
const [DW_SECT_INFO, DW_SECT_ABBREV, DW_SECT_STR_OFFSETS, DW_SECT_RNGLISTS] = [1, 3, 6, 8];

export interface SplitUnit {
  unit: Unit;
  units: UnitList;
}

interface PackagedUnit extends Contribution {
  info: number;
}

/** Of all compressed sections of a .dwp, and of a .dwo. */
interface SplitLimits {
  decompressedBytes: number;
  splitBytes: number;
}

export class SplitUnits {
  readonly #files: FileAccess;
  readonly #limits: SplitLimits;
  #package: { units: UnitList; index: Map<string, PackagedUnit> } | undefined | null;

  constructor(files: FileAccess, limits: SplitLimits) {
    this.#files = files;
    this.#limits = limits;
  }

  get byteLength(): number {
    if (!this.#package) return 0;
    const { units, index } = this.#package;
    return units.byteLength + units.file.byteLength + index.size * 160;
  }

  /** Undefined where the file is missing or holds another build's unit. Throws where it is damaged. */
  find(skeleton: Unit): SplitUnit | undefined {
    if (this.#package === undefined) this.#package = this.#openPackage();
    const packaged = this.#package?.index.get(skeleton.id);
    if (this.#package && packaged) {
      const { units } = this.#package;
      return { units, unit: readSplitUnit(units.file, packaged.info, packaged, skeleton) };
    }
    const request = { kind: 'dwo', path: skeleton.dwoName, directory: skeleton.compDir } as const;
    const source = this.#files.open(request)?.source;
    if (!source) return undefined;
    const units = new UnitList(openSplit(source, this.#limits.splitBytes));
    for (const offset of units.offsets) {
      const unit = readSplitUnit(units.file, offset, WHOLE_FILE, skeleton);
      if (unit.id === skeleton.id) return { unit, units };
    }
    return undefined;
  }

  #openPackage(): { units: UnitList; index: Map<string, PackagedUnit> } | null {
    const source = this.#files.open({ kind: 'dwp' })?.source;
    if (!source) return null;
    try {
      const file = openSplit(source, this.#limits.decompressedBytes);
      const section = file.section('cu_index');
      return { units: new UnitList(file), index: section.parse(0, section.size, readPackageIndex) };
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      return null;
    }
  }
}

const openSplit = (source: ByteSource, maxResident: number): DwarfFile =>
  new DwarfFile(parseElf(source), true, maxResident);

function readSplitUnit(file: DwarfFile, offset: number, place: Contribution, skeleton: Unit): Unit {
  const section = file.section('info');
  const header = section.parse(offset, section.size, (c) => readUnitHeader(c, offset, false));
  return readUnit(file, section, header, place, skeleton);
}

/** By unit ID, where its parts stand. Version 2 is GNU's, for DWARF 4. */
function readPackageIndex(cursor: Cursor): Map<string, PackagedUnit> {
  const version = cursor.u32() & 0xffff;
  const [columns, units, slots] = [cursor.u32(), cursor.u32(), cursor.u32()];
  if ((version !== 2 && version !== 5) || units > MAX_UNITS || slots > 4 * MAX_UNITS || columns > MAX_COLUMNS)
    throw new DwarfError(`a package index of version ${version} with ${units} units`);
  const idsAt = cursor.skip(slots * 8);
  const rowsAt = cursor.skip(slots * 4);
  const sections = Array.from({ length: columns }, () => cursor.u32());
  const offsetsAt = cursor.skip(units * columns * 4);
  const view = new DataView(cursor.bytes.buffer, cursor.bytes.byteOffset, cursor.bytes.byteLength);
  const index = new Map<string, PackagedUnit>();
  for (let slot = 0; slot < slots; slot++) {
    const row = view.getUint32(rowsAt + slot * 4, true);
    if (row === 0 || row > units) continue;
    const at = (section: number): number => {
      const column = sections.indexOf(section);
      return column < 0 ? 0 : view.getUint32(offsetsAt + ((row - 1) * columns + column) * 4, true);
    };
    const id = view
      .getBigUint64(idsAt + slot * 8, true)
      .toString(16)
      .padStart(16, '0');
    index.set(id, {
      info: at(DW_SECT_INFO),
      abbrev: at(DW_SECT_ABBREV),
      strOffsets: at(DW_SECT_STR_OFFSETS),
      rnglists: version === 5 ? at(DW_SECT_RNGLISTS) : 0,
    });
  }
  return index;
}
