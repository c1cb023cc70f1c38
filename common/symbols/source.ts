/**
 * What names addresses of one executable: its DWARF, its symbol tables, Go's pclntab, a perf map. Sources do no
 * I/O: they read the {@link ByteSource} they were made of, and ask for other files through {@link FileAccess}.
 */
import type { ByteSource } from '../base/byte-source.ts';
import type { AddressRange } from './address-range.ts';

/** One function at an address. Innermost first, several of them make an inline chain. */
export interface SymbolFrame {
  /** As the source has it, not demangled; '' where only file and line are known. */
  function: string;
  /** The linker's (mangled) name; '' where the source does not hold one. */
  systemName: string;
  /** Path as the compiler noted it; '' if unknown. */
  file: string;
  /** From 1; 0 if unknown. */
  line: number;
  /** From 1; 0 if unknown. */
  column: number;
  /** It was compiled into the frame behind it. The last frame of a chain is never inlined. */
  inlined: boolean;
  /** What the function stands in, as C++ writes it, where its name does not say it. */
  scope?: string;
}

/** The frames of all addresses in `[start, end)`; of none where these could not be looked up. */
export interface NamedRange {
  frames: SymbolFrame[];
  /** Without frames: where the function begins that call frame information describes there, if it does. */
  functionStart?: number;
  start: number;
  end: number;
}

export interface SymbolSource {
  /**
   * The frames at an ELF virtual address, innermost first; none where this source doesn't know it. Damage in the
   * file costs the answer, not an exception. Callers of functions pass the return address minus 1.
   *
   * Narrows `range` until the answer is the same at all addresses in it, which are looked up no more.
   */
  lookup(address: number, range?: AddressRange): SymbolFrame[];
  /** Bytes that it holds now; grows with look-ups up to the source's own bound. */
  readonly byteLength: number;
  /** Parts of the file that are broken or exceed a limit, as far as look-ups met them. */
  readonly damaged?: number;
}

/** Another file that an ELF file refers to. Names come from that file: drivers must confine them. */
export type FileRequest =
  /** .gnu_debuglink: beside the ELF file, in .debug/, below /usr/lib/debug. `crc` is CRC-32 of the whole file. */
  | { kind: 'debuglink'; name: string; crc: number }
  /** Separate debug information by GNU build ID (hex), below /usr/lib/debug/.build-id. */
  | { kind: 'build-id'; buildId: string }
  /** .gnu_debugaltlink, the shared part that dwz split off. The path may be relative to the file that names it. */
  | { kind: 'dwz'; path: string; buildId: string }
  /** Split DWARF of one unit. A relative path is relative to `directory`, where it was compiled. */
  | { kind: 'dwo'; path: string; directory: string }
  /** The package of all split DWARF, beside the ELF file under its name with .dwp. */
  | { kind: 'dwp' };

/** How a source gets bytes of another file; the driver decides where to look, and closes them at the end. */
export interface FileAccess {
  /**
   * Undefined where there is no such file: of several in question the first that `accepts` holds for. Sources check
   * identity (build ID, dwo ID) themselves.
   */
  open(request: FileRequest, accepts?: (file: DebugFile) => boolean): DebugFile | undefined;
}

export interface DebugFile {
  source: ByteSource;
  /** Differs for every other file, and for this one once it was changed. */
  identity: string;
  /** For what this file refers to in its turn. */
  files: FileAccess;
}
