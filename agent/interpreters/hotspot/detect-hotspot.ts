/**
 * Is HotSpot in this ELF file, and which version? Every build exports what a debugger needs to find its way in a live
 * JVM: tables of types and of fields with their offsets, and where in an entry of a table is what (HotSpot's
 * runtime/vmStructs.cpp). Other JVMs have a libjvm.so, too, without them. What the tables say is read when a process is
 * attached to: many builds fill them only as they start.
 */
import {
  type ElfFile,
  type Machine,
  PF_X,
  PT_LOAD,
  SHT_DYNSYM,
  SHT_SYMTAB,
} from '../../../common/elf/elf.ts';
import { findText } from '../../../common/elf/find-text.ts';
import { forEachEntry, readStrings, readU64 } from '../../../common/symbols/section-entries.ts';
import { UnsupportedRuntime } from '../contract.ts';

/** What the symbols are called that lead to the tables. */
export const TABLE_SYMBOLS = {
  structs: 'gHotSpotVMStructs',
  structTypeName: 'gHotSpotVMStructEntryTypeNameOffset',
  structFieldName: 'gHotSpotVMStructEntryFieldNameOffset',
  structTypeString: 'gHotSpotVMStructEntryTypeStringOffset',
  structOffset: 'gHotSpotVMStructEntryOffsetOffset',
  structAddress: 'gHotSpotVMStructEntryAddressOffset',
  structStride: 'gHotSpotVMStructEntryArrayStride',
  types: 'gHotSpotVMTypes',
  typeName: 'gHotSpotVMTypeEntryTypeNameOffset',
  typeSize: 'gHotSpotVMTypeEntrySizeOffset',
  typeStride: 'gHotSpotVMTypeEntryArrayStride',
} as const;

/** Of each symbol the ELF address less the difference between address and offset of the segment with the code. */
export type TableSymbols = Readonly<Record<keyof typeof TABLE_SYMBOLS, number>>;

/** Facts of the file: plain data, which crosses threads. */
export interface HotspotFile {
  /** Of the JDK, such as 17. */
  major: number;
  machine: Machine;
  symbols: TableSymbols;
}

const OLDEST = 8;
const SYMBOL_BYTES = 24;
const MAX_SYMBOLS = 1 << 22;

/** Undefined where the file is not HotSpot. Throws {@link UnsupportedRuntime}. */
export function detectHotspot(elf: ElfFile): (HotspotFile & { version: string }) | undefined {
  const found = findSymbols(elf);
  if (!found) return undefined;
  const version = findVersion(elf);
  const major = Number.parseInt(version, 10);
  if (major < OLDEST) throw new UnsupportedRuntime(`Java ${version}: ${OLDEST} is the oldest`);
  const text = elf.segments.find(({ type, flags }) => type === PT_LOAD && (flags & PF_X) !== 0);
  if (!text) throw new UnsupportedRuntime(`Java ${version}: the file has no code`);
  const bias = text.vaddr - text.offset;
  const address = (key: keyof typeof TABLE_SYMBOLS): [string, number] => {
    const symbol = found.get(TABLE_SYMBOLS[key]);
    if (symbol === undefined)
      throw new UnsupportedRuntime(`Java ${version}: it does not export ${TABLE_SYMBOLS[key]}`);
    return [key, symbol - bias];
  };
  const keys = Object.keys(TABLE_SYMBOLS) as (keyof typeof TABLE_SYMBOLS)[];
  const { machine } = elf;
  return {
    version,
    major,
    machine,
    symbols: Object.fromEntries(keys.map(address)) as unknown as TableSymbols,
  };
}

/** Addresses of what a file defines, by name; undefined where there are no tables. */
function findSymbols(elf: ElfFile): Map<string, number> | undefined {
  for (const section of elf.sections) {
    if (section.type !== SHT_DYNSYM && section.type !== SHT_SYMTAB) continue;
    const strings = readStrings(elf, section);
    const names = Buffer.from(strings.buffer, strings.byteOffset, strings.length);
    if (!names.includes(`\0${TABLE_SYMBOLS.structs}\0`, 0, 'latin1')) continue;
    const byOffset = new Map(
      Object.values(TABLE_SYMBOLS).map((name) => [names.indexOf(`\0${name}\0`, 0, 'latin1') + 1, name]),
    );
    const found = new Map<string, number>();
    forEachEntry(elf, section, { entryBytes: SYMBOL_BYTES, limit: MAX_SYMBOLS }, (view, at) => {
      const name = byOffset.get(view.getUint32(at, true));
      // section 0: only referred to, as in what reads the tables
      if (name && view.getUint16(at + 6, true) !== 0) found.set(name, readU64(view, at + 8));
    });
    if (found.has(TABLE_SYMBOLS.structs)) return found;
  }
  return undefined;
}

/** What `java -Xinternalversion` prints begins so; JDK 8 says 1.8.0_504. */
const BANNER =
  /64-Bit Server VM \([^)]{1,64}\) for linux-\w+ JRE \((?:1\.(?=8))?(\d+)(?:\.(\d+))?(?:[._](\d+))?/;
const BANNER_TEXT = ' for linux-';

/** `17.0.15`; `8.0.504` for 1.8.0_504. Throws {@link UnsupportedRuntime} where the file does not say. */
function findVersion(elf: ElfFile): string {
  const banner = findText(elf, BANNER_TEXT, BANNER);
  if (!banner) throw new UnsupportedRuntime('HotSpot of unknown version');
  return [banner[1], banner[2] ?? 0, banner[3] ?? 0].join('.');
}
