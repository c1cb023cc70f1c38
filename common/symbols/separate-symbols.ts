/**
 * The debug information that was moved out of a stripped file: distributions put it below /usr/lib/debug by build
 * ID, others beside the file, by the name in `.gnu_debuglink`. Only a file with the same build ID is believed.
 */
import { ElfError, type ElfFile, parseElf, SHT_SYMTAB } from '../elf/elf.ts';
import { OutOfBounds } from '../elf/source.ts';
import type { DebugFile, FileAccess, FileRequest } from './source.ts';

const MAX_LINK_BYTES = 4096;

export interface SeparateDebugInfo {
  elf: ElfFile;
  /** See {@link DebugFile}. */
  identity: string;
  files: FileAccess;
}

/** Undefined where the other file is not there, or is another program's. */
export function findSeparateDebugInfo(elf: ElfFile, files: FileAccess): SeparateDebugInfo | undefined {
  const { gnuBuildId } = elf;
  if (gnuBuildId === '') return undefined;
  const requests: FileRequest[] = [{ kind: 'build-id', buildId: gnuBuildId }];
  const link = readDebugLink(elf);
  if (link) requests.push(link);
  for (const request of requests) {
    try {
      const file = files.open(request);
      const other = file && parseElf(file.source);
      if (other?.gnuBuildId === gnuBuildId)
        return { elf: other, identity: file!.identity, files: file!.files };
    } catch (error) {
      if (!(error instanceof ElfError || error instanceof OutOfBounds)) throw error;
    }
  }
  return undefined;
}

/** Whether the file's symbol table was not stripped. */
export const hasSymbols = (elf: ElfFile): boolean => elf.sections.some(({ type }) => type === SHT_SYMTAB);

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
