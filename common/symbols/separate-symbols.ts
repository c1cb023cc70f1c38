/**
 * The debug information that was moved out of a stripped file: distributions put it below /usr/lib/debug by build
 * ID, others beside the file, by the name in `.gnu_debuglink`. Only a file with the same build ID is believed, or, where the
 * program has none, with the CRC-32 that it notes.
 */
import { crc32 } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import { type ByteSource, OutOfBounds } from '../base/byte-source.ts';
import { ElfError, type ElfFile, parseElf, type Section, SHT_SYMTAB } from '../elf/elf.ts';
import type { DebugFile, FileAccess, FileRequest } from './source.ts';

const MAX_LINK_BYTES = 4096;
/** A second or two of reading; larger files of debug information have a build ID. */
const MAX_CHECKED_BYTES = 1 << 30;
const CHUNK_BYTES = 1 << 20;
/** By identity of the file: unwinding and names ask for the same one. */
const knownCrcs = new LRUCache<string, number>({ max: 64 });

export interface SeparateDebugInfo {
  elf: ElfFile;
  /** See {@link DebugFile}. */
  identity: string;
  files: FileAccess;
}

/** Undefined where the other file is not there, or is another program's. */
export function findSeparateDebugInfo(elf: ElfFile, files: FileAccess): SeparateDebugInfo | undefined {
  const { gnuBuildId } = elf;
  const link = readDebugLink(elf);
  const requests: FileRequest[] = gnuBuildId === '' ? [] : [{ kind: 'build-id', buildId: gnuBuildId }];
  if (link) requests.push(link);
  for (const request of requests) {
    const file = files.open(request, (candidate) => isDebugInfoOf(elf, candidate, link?.crc));
    if (file) return { elf: parseElf(file.source), identity: file.identity, files: file.files };
  }
  return undefined;
}

/** The build ID says it; of a program that has none, the checksum that it notes of the other file. */
function isDebugInfoOf(elf: ElfFile, { source, identity }: DebugFile, crc: number | undefined): boolean {
  try {
    const other = parseElf(source);
    if (!other.sections.some(isOfDebugging)) return false;
    if (elf.gnuBuildId !== '') return other.gnuBuildId === elf.gnuBuildId;
    return other.machine === elf.machine && crcOf(source, identity) === crc;
  } catch (error) {
    if (!(error instanceof ElfError || error instanceof OutOfBounds)) throw error;
    return false;
  }
}

/** A link may have the name of the program itself: gdb's manual, "Separate Debug Files". */
const isOfDebugging = ({ type, name }: Section): boolean => type === SHT_SYMTAB || /^\.z?debug_/.test(name);

/** Of the whole file; undefined of one that is too large. */
function crcOf(source: ByteSource, identity: string): number | undefined {
  let crc = knownCrcs.get(identity);
  if (crc === undefined && source.size <= MAX_CHECKED_BYTES) {
    crc = 0;
    for (let at = 0; at < source.size; at += CHUNK_BYTES)
      crc = crc32(source.read(at, Math.min(CHUNK_BYTES, source.size - at)), crc);
    knownCrcs.set(identity, crc);
  }
  return crc;
}

/** Whether the file's symbol table was not stripped. */
export const hasSymbols = (elf: ElfFile): boolean => elf.sections.some(({ type }) => type === SHT_SYMTAB);

/** A name, NUL, padding to 4 bytes, CRC-32. */
function readDebugLink(elf: ElfFile): (FileRequest & { kind: 'debuglink' }) | undefined {
  const section = elf.section('.gnu_debuglink');
  if (!section || section.size > MAX_LINK_BYTES) return undefined;
  const bytes = elf.sectionData(section);
  const end = bytes.indexOf(0);
  if (end <= 0 || bytes.length < 8) return undefined;
  const crc = new DataView(bytes.buffer, bytes.byteOffset + bytes.length - 4, 4).getUint32(0, true);
  return { kind: 'debuglink', name: new TextDecoder().decode(bytes.subarray(0, end)), crc };
}
