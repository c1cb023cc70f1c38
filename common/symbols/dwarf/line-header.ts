/** Headers of line tables: their file names, and how their programs are to be read. */
import { Cursor } from '../../base/cursor.ts';
import { DwarfError } from './constants.ts';
import { type FileList, FileNames } from './file-names.ts';
import { type Encoding, readForm } from './forms.ts';
import { type LineHeader, LineProgram, LineTable } from './line-table.ts';
import { readString, type Unit } from './unit.ts';

const MAX_FILES = 1 << 17;
const MAX_PROGRAM_BYTES = 256 << 20;
const LNCT_PATH = 1;
const LNCT_DIRECTORY_INDEX = 2;

/**
 * The line table of a unit, or what of it is about the address `only`; undefined if it names none. Throws DwarfError or
 * OutOfBounds where it is damaged.
 */
export function readLineTable(
  unit: Unit,
  isCode: (address: number) => boolean,
  only?: number,
): LineTable | undefined {
  if (unit.stmtList < 0) return undefined;
  const section = unit.file.section('line');
  if (section.size === 0) return undefined;
  const prefix = new Cursor(section.bytes(unit.stmtList, Math.min(12, section.size - unit.stmtList)));
  let [length, offsetSize] = [prefix.u32(), 4];
  if (length === 0xffff_ffff) [length, offsetSize] = [prefix.u64(), 8];
  if (length > MAX_PROGRAM_BYTES) throw new DwarfError(`a line table of ${length} bytes`);
  const cursor = new Cursor(section.bytes(unit.stmtList + prefix.at, length));
  const { header, files, programAt } = readHeader(cursor, unit, offsetSize);
  cursor.at = programAt;
  const program = new LineProgram(header, isCode, only);
  program.run(cursor);
  return LineTable.of(files, program);
}

function readHeader(
  cursor: Cursor,
  unit: Unit,
  offsetSize: number,
): { header: LineHeader; files: FileNames; programAt: number } {
  const version = cursor.u16();
  if (version < 2 || version > 5) throw new DwarfError(`a line table of version ${version}`);
  let { addressSize } = unit;
  if (version >= 5) {
    addressSize = cursor.u8();
    cursor.skip(1);
  }
  const headerLength = offsetSize === 8 ? cursor.u64() : cursor.u32();
  const programAt = cursor.at + headerLength;
  const minInstruction = cursor.u8();
  if (version >= 4) cursor.skip(1);
  cursor.skip(1);
  const lineBase = cursor.i8();
  const lineRange = cursor.u8();
  const opcodeBase = cursor.u8();
  if (lineRange === 0 || opcodeBase === 0) throw new DwarfError('a line table whose line range is 0');
  const operandCounts = [0];
  for (let i = 1; i < opcodeBase; i++) operandCounts.push(cursor.u8());
  const encoding = { version, offsetSize, addressSize };
  const names = version >= 5 ? readNames5(cursor, unit, encoding) : readNames2(cursor, unit);
  const header = { minInstruction, lineBase, lineRange, opcodeBase, operandCounts };
  return { header, files: new FileNames(names), programAt };
}

function readNames2(cursor: Cursor, unit: Unit): FileList {
  const { compDir } = unit;
  const files: FileList = { compDir, directories: [compDir], names: [], directoryIndices: [], first: 1 };
  for (let name = cursor.cstring(); name !== ''; name = cursor.cstring()) {
    files.directories.push(utf8(name));
    if (files.directories.length > MAX_FILES) throw new DwarfError(`more than ${MAX_FILES} directories`);
  }
  for (let name = cursor.cstring(); name !== ''; name = cursor.cstring()) {
    files.names.push(utf8(name));
    files.directoryIndices.push(cursor.uleb());
    cursor.uleb();
    cursor.uleb();
    if (files.names.length > MAX_FILES) throw new DwarfError(`more than ${MAX_FILES} files`);
  }
  return files;
}

const utf8 = (latin1: string): string => Buffer.from(latin1, 'latin1').toString('utf8');

function readNames5(cursor: Cursor, unit: Unit, encoding: Encoding): FileList {
  const directories = readEntries(cursor, unit, encoding);
  const files = readEntries(cursor, unit, encoding);
  return {
    compDir: unit.compDir,
    directories: directories.names,
    names: files.names,
    directoryIndices: files.directories,
    first: 0,
  };
}

function readEntries(
  cursor: Cursor,
  unit: Unit,
  encoding: Encoding,
): { names: string[]; directories: number[] } {
  const formats = Array.from({ length: cursor.u8() }, () => ({ type: cursor.uleb(), form: cursor.uleb() }));
  const count = cursor.uleb();
  if (count > MAX_FILES) throw new DwarfError(`a line table of ${count} files`);
  const [names, directories]: [string[], number[]] = [[], []];
  for (let i = 0; i < count; i++) {
    let [name, directory] = ['', 0];
    for (const { type, form } of formats) {
      const value = readForm(cursor, form, encoding);
      if (type === LNCT_PATH) name = readString(unit, form, value, cursor.bytes);
      else if (type === LNCT_DIRECTORY_INDEX) directory = value;
    }
    names.push(name);
    directories.push(directory);
  }
  return { names, directories };
}
