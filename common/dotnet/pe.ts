/**
 * An assembly's file (PE): where its metadata is, and what it says of its debug information. Source: ECMA-335, partition II,
 * chapter 25; dotnet/runtime, docs/design/specs/PE-COFF.md. Offsets and sizes come from a foreign file: {@link OutOfBounds} and
 * {@link MalformedMetadata} say that it contradicts itself.
 */
import { type ByteSource, partOf } from '../base/byte-source.ts';
import { MalformedMetadata, Metadata, type ReadAt } from './metadata.ts';

export interface Assembly {
  /** Tells it from any other, and from the same one compiled anew: in hexadecimal digits. */
  moduleId: string;
  /** Its portable PDB is elsewhere. */
  pdb: { id: Uint8Array; path: string } | undefined;
  /** The one that it holds: compressed, beside how many bytes that gives. */
  embedded: { compressed: Uint8Array; size: number } | undefined;
}

const MZ = 0x5a4d;
const PE = 0x4550;
const PE_AT = 60;
const HEADER_BYTES = 24;
const PE32_PLUS = 0x20b;
const DIRECTORIES_AT = { pe32: 96, pe32Plus: 112 };
const DIRECTORY_BYTES = 8;
const DEBUG_DIRECTORY = 6;
const CLI_DIRECTORY = 14;
const METADATA_IN_CLI = 8;
const SECTION_BYTES = 40;
const MAX_SECTIONS = 96;
const DEBUG_ENTRY_BYTES = 28;
const MAX_DEBUG_ENTRIES = 64;
const CODE_VIEW = 2;
const EMBEDDED = 17;
/** Version of a debug entry that is of a portable PDB: 'MP'. */
const PORTABLE = 0x504d;
const RSDS = 0x53445352;
const MPDB = 0x4244504d;
const GUID_BYTES = 16;
const CODE_VIEW_HEADER_BYTES = 24;
const MAX_PATH_BYTES = 4096;
const MAX_EMBEDDED_BYTES = 64 << 20;

/** Throws {@link OutOfBounds}, {@link MalformedMetadata}. */
export function readAssembly(file: ByteSource): Assembly {
  const image = new Image(file);
  const entries = image.debugEntries();
  return {
    moduleId: moduleIdOf(new Metadata(image.metadata())),
    pdb: entries.map((entry) => image.codeView(entry)).find((found) => found !== undefined),
    embedded: entries.map((entry) => image.embeddedPdb(entry)).find((found) => found !== undefined),
  };
}

/** Throws {@link MalformedMetadata} and what reading throws. */
export const moduleIdOf = (metadata: Metadata): string => Buffer.from(metadata.moduleId()).toString('hex');

export const readerOf =
  (source: ByteSource): ReadAt =>
  (at, length) =>
    viewOf(source, at, length);

function viewOf(source: ByteSource, at: number, length: number): DataView {
  const bytes = source.read(at, length);
  return new DataView(bytes.buffer, bytes.byteOffset, length);
}

interface DebugEntry {
  type: number;
  isPortable: boolean;
  stamp: number;
  at: number;
  size: number;
}

class Image {
  readonly #file: ByteSource;
  readonly #sections: readonly { address: number; size: number; at: number }[];
  readonly #directories: DataView;

  constructor(file: ByteSource) {
    this.#file = file;
    const start = this.#view(0, 64);
    if (start.getUint16(0, true) !== MZ) throw new MalformedMetadata('no PE file');
    const at = start.getUint32(PE_AT, true);
    const header = this.#view(at, HEADER_BYTES + 2);
    if (header.getUint32(0, true) !== PE) throw new MalformedMetadata('no PE file');
    const optional = at + HEADER_BYTES;
    const isPlus = header.getUint16(HEADER_BYTES, true) === PE32_PLUS;
    const directories = isPlus ? DIRECTORIES_AT.pe32Plus : DIRECTORIES_AT.pe32;
    this.#directories = this.#view(optional + directories, (CLI_DIRECTORY + 1) * DIRECTORY_BYTES);
    this.#sections = this.#readSections(optional + header.getUint16(20, true), header.getUint16(6, true));
  }

  metadata(): ReadAt {
    const cli = this.#view(this.#offsetOf(this.#directory(CLI_DIRECTORY).address), 16);
    const root = this.#offsetOf(cli.getUint32(METADATA_IN_CLI, true));
    return readerOf(partOf(this.#file, root, this.#file.size - root));
  }

  debugEntries(): DebugEntry[] {
    const { address, size } = this.#directory(DEBUG_DIRECTORY);
    const count = Math.min(Math.floor(size / DEBUG_ENTRY_BYTES), MAX_DEBUG_ENTRIES);
    if (count === 0) return [];
    const view = this.#view(this.#offsetOf(address), count * DEBUG_ENTRY_BYTES);
    return Array.from({ length: count }, (_, i) => {
      const at = i * DEBUG_ENTRY_BYTES;
      return {
        stamp: view.getUint32(at + 4, true),
        isPortable: view.getUint16(at + 10, true) === PORTABLE,
        type: view.getUint32(at + 12, true),
        size: view.getUint32(at + 16, true),
        at: view.getUint32(at + 24, true),
      };
    });
  }

  codeView({ type, isPortable, stamp, at, size }: DebugEntry): Assembly['pdb'] {
    if (type !== CODE_VIEW || !isPortable || size < CODE_VIEW_HEADER_BYTES) return undefined;
    const bytes = Buffer.from(this.#file.read(at, Math.min(size, CODE_VIEW_HEADER_BYTES + MAX_PATH_BYTES)));
    if (bytes.readUInt32LE(0) !== RSDS) return undefined;
    const end = bytes.indexOf(0, CODE_VIEW_HEADER_BYTES);
    const id = Buffer.alloc(GUID_BYTES + 4);
    bytes.copy(id, 0, 4, 4 + GUID_BYTES);
    id.writeUInt32LE(stamp, GUID_BYTES);
    return { id, path: bytes.toString('utf8', CODE_VIEW_HEADER_BYTES, end < 0 ? bytes.length : end) };
  }

  embeddedPdb({ type, at, size }: DebugEntry): Assembly['embedded'] {
    if (type !== EMBEDDED || size < 8 || size > MAX_EMBEDDED_BYTES) return undefined;
    const header = this.#view(at, 8);
    if (header.getUint32(0, true) !== MPDB) return undefined;
    return { compressed: this.#file.read(at + 8, size - 8), size: header.getUint32(4, true) };
  }

  #view(at: number, length: number): DataView {
    return viewOf(this.#file, at, length);
  }

  #directory(index: number): { address: number; size: number } {
    const at = index * DIRECTORY_BYTES;
    return {
      address: this.#directories.getUint32(at, true),
      size: this.#directories.getUint32(at + 4, true),
    };
  }

  #readSections(at: number, count: number) {
    const length = Math.min(count, MAX_SECTIONS);
    const view = this.#view(at, length * SECTION_BYTES);
    return Array.from({ length }, (_, i) => ({
      address: view.getUint32(i * SECTION_BYTES + 12, true),
      size: view.getUint32(i * SECTION_BYTES + 16, true),
      at: view.getUint32(i * SECTION_BYTES + 20, true),
    }));
  }

  /** In the file, of an address relative to the image's. */
  #offsetOf(relative: number): number {
    const section = this.#sections.find(
      ({ address, size }) => relative >= address && relative < address + size,
    );
    if (!section) throw new MalformedMetadata(`no section has ${relative}`);
    return section.at + relative - section.address;
  }
}
