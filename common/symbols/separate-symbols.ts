/**
 * The symbol table that was moved out of a stripped file: distributions put it below /usr/lib/debug by build ID,
 * others beside the file, by the name in `.gnu_debuglink`. Only a file with the same build ID is believed.
 */
import { ElfError, type ElfFile, parseElf, SHT_SYMTAB } from '../elf/elf.ts';
import { OutOfBounds } from '../elf/source.ts';
import { readSymbolTable } from './elf-symbols.ts';
import type { FileAccess, FileRequest } from './source.ts';
import type { SymbolTable } from './symbol-table.ts';

const MAX_LINK_BYTES = 4096;

/** Undefined where the file has its symbols itself, or the other file is not there, or is another program's. */
export function readSeparateSymbols(elf: ElfFile, files: FileAccess): SymbolTable | undefined {
  const { gnuBuildId } = elf;
  if (gnuBuildId === '' || hasSymbols(elf)) return undefined;
  const requests: FileRequest[] = [{ kind: 'build-id', buildId: gnuBuildId }];
  const link = readDebugLink(elf);
  if (link) requests.push(link);
  for (const request of requests) {
    try {
      const source = files.open(request)?.source;
      const other = source && parseElf(source);
      if (other?.gnuBuildId === gnuBuildId && hasSymbols(other)) return readSymbolTable(other);
    } catch (error) {
      if (!(error instanceof ElfError || error instanceof OutOfBounds)) throw error;
    }
  }
  return undefined;
}

const hasSymbols = (elf: ElfFile): boolean => elf.sections.some(({ type }) => type === SHT_SYMTAB);

/** A name, NUL, padding to 4 bytes, CRC-32. */
function readDebugLink(elf: ElfFile): FileRequest | undefined {
  const section = elf.section('.gnu_debuglink');
  if (!section || section.size > MAX_LINK_BYTES) return undefined;
  const bytes = elf.sectionData(section);
  const end = bytes.indexOf(0);
  if (end <= 0 || bytes.length < 8) return undefined;
  const crc = new DataView(bytes.buffer, bytes.byteOffset + bytes.length - 4, 4).getUint32(0, true);
  return { kind: 'debuglink', name: new TextDecoder().decode(bytes.subarray(0, end)), crc };
}
