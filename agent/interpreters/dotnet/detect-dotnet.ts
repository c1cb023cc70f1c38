/**
 * Is .NET's runtime (CoreCLR) in this ELF file, and which version? It is in libcoreclr.so, or in an application's own
 * executable that was published as a single file. Every build exports the table that debuggers begin with (`g_dacTable`);
 * .NET 9 and later describe their structs, too.
 */
import { type ElfFile, PF_X, PT_LOAD, SHT_DYNSYM, SHT_SYMTAB } from '../../../common/elf/elf.ts';
import { findText } from '../../../common/elf/find-text.ts';
import { forEachEntry, readStrings, readU64 } from '../../../common/symbols/section-entries.ts';
import { UnsupportedRuntime } from '../contract.ts';

/** Facts of the file: plain data, which crosses threads. Addresses are less the difference between address and offset of
 * the segment with the code. */
export interface DotnetFile {
  /** Of .NET, such as 8. */
  major: number;
  /** Of the file's address 0, from which the table of .NET 6 counts, and where its ELF header is. */
  start: number;
  /** Offset in the file where the code ends. */
  codeEnd: number;
  dacTable: number;
  /** 0: the file has no descriptor. */
  descriptor: number;
}

const OLDEST = 6;
const SYMBOL_BYTES = 24;
const MAX_SYMBOLS = 1 << 22;
const DAC_TABLE = 'g_dacTable';
const DESCRIPTOR = 'DotNetRuntimeContractDescriptor';

/** Undefined where the file is not .NET. Throws {@link UnsupportedRuntime}. */
export function detectDotnet(elf: ElfFile): (DotnetFile & { version: string }) | undefined {
  const found = findSymbols(elf);
  if (!found) return undefined;
  const version = findVersion(elf);
  const major = Number.parseInt(version, 10);
  if (elf.machine !== 'x86_64')
    throw new UnsupportedRuntime(`.NET ${version}: only that of x86-64 is unwound`);
  if (major < OLDEST) throw new UnsupportedRuntime(`.NET ${version}: ${OLDEST} is the oldest`);
  const text = elf.segments.find(({ type, flags }) => type === PT_LOAD && (flags & PF_X) !== 0);
  if (!text) throw new UnsupportedRuntime(`.NET ${version}: the file has no code`);
  const bias = text.vaddr - text.offset;
  const descriptor = found.get(DESCRIPTOR);
  return {
    version,
    major,
    start: -bias,
    codeEnd: text.offset + text.filesz,
    dacTable: found.get(DAC_TABLE)! - bias,
    descriptor: descriptor === undefined ? 0 : descriptor - bias,
  };
}

/** Addresses of the two; undefined where there is no table. */
function findSymbols(elf: ElfFile): Map<string, number> | undefined {
  for (const section of elf.sections) {
    if (section.type !== SHT_DYNSYM && section.type !== SHT_SYMTAB) continue;
    const strings = readStrings(elf, section);
    const names = Buffer.from(strings.buffer, strings.byteOffset, strings.length);
    const table = names.indexOf(`\0${DAC_TABLE}\0`, 0, 'latin1');
    if (table < 0) continue;
    const descriptor = names.indexOf(`\0${DESCRIPTOR}\0`, 0, 'latin1');
    const found = new Map<string, number>();
    forEachEntry(elf, section, { entryBytes: SYMBOL_BYTES, limit: MAX_SYMBOLS }, (view, at) => {
      const name = view.getUint32(at, true);
      // section 0: only referred to
      if (view.getUint16(at + 6, true) === 0) return;
      if (name === table + 1) found.set(DAC_TABLE, readU64(view, at + 8));
      else if (descriptor >= 0 && name === descriptor + 1) found.set(DESCRIPTOR, readU64(view, at + 8));
    });
    if (found.has(DAC_TABLE)) return found;
  }
  return undefined;
}

const MARK = '@(#)Version ';
const VERSION = /@\(#\)Version (\d+)\.(\d+)\.(\d+)/;
/** The version of the file, 8.0.424.16909, has that of .NET, 8.0.4, and two digits more. */
const FILE_FACTOR = 100;

/** `8.0.4`. Throws {@link UnsupportedRuntime} where the file does not say. */
function findVersion(elf: ElfFile): string {
  const found = findText(elf, MARK, VERSION);
  if (!found) throw new UnsupportedRuntime('.NET of unknown version');
  return `${found[1]}.${found[2]}.${Math.floor(Number(found[3]) / FILE_FACTOR)}`;
}
