/** Unit headers and what the first DIE of a unit says of the others: DWARF 5, sections 7.5.1 and 3.1. */
import type { Cursor } from '../../base/cursor.ts';
import type { SectionBytes } from '../section-bytes.ts';
import { type AbbrevTable, readAbbrevs } from './abbrevs.ts';
import * as D from './constants.ts';
import type { DwarfFile } from './dwarf-file.ts';
import { type Encoding, isAddressIndex, isStringIndex, readForm } from './forms.ts';

export interface UnitHeader extends Encoding {
  /** Of the header in its section. */
  offset: number;
  end: number;
  firstDie: number;
  abbrevOffset: number;
  /** DW_UT_…, 0 before DWARF 5. */
  type: number;
  /** Of a skeleton, split or type unit, as hex; '' if none. */
  id: string;
}

/** Where the parts of one unit begin in the sections of a .dwp; all 0 elsewhere. */
export interface Contribution {
  abbrev: number;
  strOffsets: number;
  rnglists: number;
}

export const WHOLE_FILE: Contribution = { abbrev: 0, strOffsets: 0, rnglists: 0 };

export interface Unit extends UnitHeader {
  file: DwarfFile;
  section: SectionBytes;
  contribution: Contribution;
  strOffsetsBase: number;
  addrBase: number;
  rnglistsBase: number;
  /** Of GNU's split DWARF 4: added to offsets into .debug_ranges. */
  rangesBase: number;
  /** .debug_addr and .debug_ranges stand in this file, for a split unit that of its skeleton. */
  addressFile: DwarfFile;
  lowPc: number;
  highPc: number;
  /** Raw value and form of DW_AT_ranges; form 0 if there is none. */
  rangesValue: number;
  rangesForm: number;
  /** Offset in .debug_line, -1 if none. */
  stmtList: number;
  name: string;
  compDir: string;
  /** Where in the strings of the dwz file it stands, -1: not there. */
  sharedCompDir: number;
  dwoName: string;
  /** DW_LANG_…, 0 if it says none. */
  language: number;
}

const ADDRESS_SIZES = new Set([4, 8]);

export function readUnitHeader(cursor: Cursor, offset: number, isTypes: boolean): UnitHeader {
  const start = cursor.at;
  let [length, offsetSize] = [cursor.u32(), 4];
  if (length === 0xffff_ffff) [length, offsetSize] = [cursor.u64(), 8];
  else if (length >= 0xffff_fff0) throw new D.DwarfError(`a unit of 0x${length.toString(16)} bytes`);
  const end = offset + (cursor.at - start) + length;
  const version = cursor.u16();
  if (version < 2 || version > 5) throw new D.DwarfError(`DWARF version ${version}`);
  const readOffset = (): number => (offsetSize === 8 ? cursor.u64() : cursor.u32());
  let [type, id, addressSize, abbrevOffset] = [0, '', 0, 0];
  if (version === 5) {
    type = cursor.u8();
    addressSize = cursor.u8();
    abbrevOffset = readOffset();
    if (type >= D.UT_SKELETON || type === D.UT_TYPE) id = readId(cursor);
  } else {
    abbrevOffset = readOffset();
    addressSize = cursor.u8();
    if (isTypes) id = readId(cursor);
  }
  const isTypeUnit = isTypes || type === D.UT_TYPE || type === D.UT_SPLIT_TYPE;
  if (isTypeUnit) readOffset();
  if (!ADDRESS_SIZES.has(addressSize)) throw new D.DwarfError(`addresses of ${addressSize} bytes`);
  if (isTypes) type = D.UT_TYPE;
  const firstDie = offset + (cursor.at - start);
  return { offset, end, firstDie, abbrevOffset, type, id, version, offsetSize, addressSize };
}

export const isTypeUnit = (header: UnitHeader): boolean =>
  header.type === D.UT_TYPE || header.type === D.UT_SPLIT_TYPE;

/** 8 bytes that identify a split unit or a type, as hex. */
export function readId(cursor: Cursor): string {
  const low = cursor.u32();
  return cursor.u32().toString(16).padStart(8, '0') + low.toString(16).padStart(8, '0');
}

/** The table of a unit, or only what its first DIE needs. */
export function readUnitAbbrevs(
  file: DwarfFile,
  header: UnitHeader,
  base: number,
  onlyCode = 0,
): AbbrevTable {
  const section = file.section('abbrev');
  return section.parse(header.abbrevOffset + base, section.size, (c) => readAbbrevs(c, header, onlyCode));
}

interface RootAttribute {
  form: number;
  value: number;
  /** Position in `bytes`. */
  at: number;
}

/** Reads the first DIE. `skeleton` lends a split unit the bases that it doesn't have itself. */
export function readUnit(
  file: DwarfFile,
  section: SectionBytes,
  header: UnitHeader,
  contribution: Contribution = WHOLE_FILE,
  skeleton?: Unit,
): Unit {
  return section.parse(header.firstDie, Math.min(header.end, section.size), (cursor) => {
    const attributes = readRoot(cursor, file, header, contribution);
    return makeUnit({ file, section, header, contribution, skeleton }, attributes, cursor.bytes);
  });
}

function readRoot(
  cursor: Cursor,
  file: DwarfFile,
  header: UnitHeader,
  contribution: Contribution,
): Map<number, RootAttribute> {
  const attributes = new Map<number, RootAttribute>();
  const code = cursor.uleb();
  const table = readUnitAbbrevs(file, header, contribution.abbrev, code);
  const row = table.find(code);
  if (row < 0) return attributes;
  for (let i = table.attributeStarts[row]!; i < table.attributeStarts[row + 1]!; i++) {
    const at = cursor.at;
    const form = table.forms[i]!;
    const value = form === D.FORM_IMPLICIT_CONST ? table.implicit[i]! : readForm(cursor, form, header);
    if (!attributes.has(table.names[i]!)) attributes.set(table.names[i]!, { form, value, at });
  }
  return attributes;
}

interface UnitPlace {
  file: DwarfFile;
  section: SectionBytes;
  header: UnitHeader;
  contribution: Contribution;
  skeleton: Unit | undefined;
}

function makeUnit(place: UnitPlace, attributes: Map<number, RootAttribute>, bytes: Uint8Array): Unit {
  const { file, section, header, contribution, skeleton } = place;
  const number = (name: number): number | undefined => attributes.get(name)?.value;
  const { offset, end, firstDie, abbrevOffset, type, id, version, offsetSize, addressSize } = header;
  // field by field: a spread header would make V8 add those behind it one at a time
  const unit: Unit = {
    offset,
    end,
    firstDie,
    abbrevOffset,
    type,
    id,
    version,
    offsetSize,
    addressSize,
    file,
    section,
    contribution,
    strOffsetsBase: number(D.AT_STR_OFFSETS_BASE) ?? defaultStrOffsetsBase(file, header, contribution),
    addrBase: number(D.AT_ADDR_BASE) ?? number(D.AT_GNU_ADDR_BASE) ?? skeleton?.addrBase ?? 0,
    rnglistsBase: number(D.AT_RNGLISTS_BASE) ?? defaultRnglistsBase(header, contribution),
    rangesBase: skeleton ? (skeleton.rangesBase ?? 0) : (number(D.AT_GNU_RANGES_BASE) ?? 0),
    addressFile: skeleton?.file ?? file,
    lowPc: skeleton?.lowPc ?? 0,
    highPc: 0,
    rangesValue: number(D.AT_RANGES) ?? 0,
    rangesForm: attributes.get(D.AT_RANGES)?.form ?? 0,
    stmtList: number(D.AT_STMT_LIST) ?? -1,
    name: '',
    compDir: '',
    sharedCompDir: sharedString(attributes.get(D.AT_COMP_DIR)),
    dwoName: '',
    language: number(D.AT_LANGUAGE) ?? 0,
  };
  const text = (name: number): string => {
    const found = attributes.get(name);
    return found ? readString(unit, found.form, found.value, bytes) : '';
  };
  unit.name = text(D.AT_NAME);
  unit.compDir = text(D.AT_COMP_DIR);
  unit.dwoName = text(D.AT_DWO_NAME) || text(D.AT_GNU_DWO_NAME);
  const dwoId = attributes.get(D.AT_GNU_DWO_ID);
  if (dwoId && unit.id === '') unit.id = idAt(bytes, dwoId.at);
  setAddresses(unit, attributes.get(D.AT_LOW_PC), attributes.get(D.AT_HIGH_PC));
  return unit;
}

const sharedString = (found: RootAttribute | undefined): number =>
  found && (found.form === D.FORM_GNU_STRP_ALT || found.form === D.FORM_STRP_SUP) ? found.value : -1;

function idAt(bytes: Uint8Array, at: number): string {
  return Buffer.from(bytes.subarray(at, at + 8))
    .reverse()
    .toString('hex');
}

function setAddresses(unit: Unit, low: RootAttribute | undefined, high: RootAttribute | undefined): void {
  if (!low) return;
  unit.lowPc = readAddress(unit, low.form, low.value);
  if (high) unit.highPc = highAddress(unit, unit.lowPc, high.form, high.value);
}

/** DW_AT_high_pc is an address, or a size that counts from the low one. */
export const highAddress = (unit: Unit, low: number, form: number, value: number): number =>
  form === D.FORM_ADDR || isAddressIndex(form) ? readAddress(unit, form, value) : low + value;

export function readAddress(unit: Unit, form: number, value: number): number {
  if (!isAddressIndex(form)) return value;
  const { addressFile, addrBase, addressSize } = unit;
  return addressFile.section('addr').uint(addrBase + value * addressSize, addressSize);
}

/** In split DWARF 5 the table begins behind its header; GNU's of DWARF 4 has none. */
function defaultStrOffsetsBase(file: DwarfFile, header: UnitHeader, contribution: Contribution): number {
  const headerBytes = file.isSplit && header.version >= 5 ? (header.offsetSize === 8 ? 16 : 8) : 0;
  return contribution.strOffsets + headerBytes;
}

/** Behind the header of the table: length, version, sizes, count. */
const defaultRnglistsBase = (header: UnitHeader, contribution: Contribution): number =>
  contribution.rnglists + (header.offsetSize === 8 ? 20 : 12);

/** `bytes` are those in which the value was read. Strings of dwz files are read by whoever has that file. */
export function readString(unit: Unit, form: number, value: number, bytes: Uint8Array): string {
  if (form === D.FORM_STRING) {
    const end = bytes.indexOf(0, value);
    return Buffer.from(bytes.subarray(value, end < 0 ? bytes.length : end)).toString('utf8');
  }
  if (form === D.FORM_STRP) return unit.file.section('str').string(value);
  if (form === D.FORM_LINE_STRP) return unit.file.section('line_str').string(value);
  if (isStringIndex(form)) {
    const at = unit.strOffsetsBase + value * unit.offsetSize;
    const offset = unit.file.section('str_offsets').uint(at, unit.offsetSize);
    return unit.file.section('str').string(offset);
  }
  return '';
}
