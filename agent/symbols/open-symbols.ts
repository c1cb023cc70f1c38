import type { ElfFile } from '../../common/elf/elf.ts';
import { openDwarf } from '../../common/symbols/dwarf/dwarf-source.ts';
import { readSymbolTable } from '../../common/symbols/elf-symbols.ts';
import { readGoSymbols } from '../../common/symbols/go-pclntab.ts';
import { symbolLadder, tableSource } from '../../common/symbols/ladder.ts';
import { readSeparateSymbols } from '../../common/symbols/separate-symbols.ts';
import type { SymbolSource } from '../../common/symbols/source.ts';
import { DebugFiles, type ElfPlace } from './debug-files.ts';
import { FilePool, type FileStats } from './file-pool.ts';

export interface OpenSymbols extends SymbolSource {
  /** Of the files that the ELF file refers to, since the last call. */
  takeFileStats(): FileStats;
  /** Closes the files that look-ups opened. */
  close(): void;
}

/** The sources of names of an ELF file, best first. */
export function openSymbols(elf: ElfFile, place: ElfPlace): OpenSymbols {
  const pool = new FilePool();
  const files = new DebugFiles(place, pool);
  // Go's own table knows lines and inlined calls, and costs far less than DWARF
  const go = readGoSymbols(elf);
  const table = tableSource(readSymbolTable(elf));
  const separate = readSeparateSymbols(elf, files);
  // before the file's own table, which is .dynsym alone then
  const sources = [go, openDwarf(elf, files), separate && tableSource(separate), table];
  const ladder = symbolLadder(sources.filter((source) => source !== undefined));
  return {
    lookup: (address) => ladder.lookup(address),
    get byteLength() {
      return ladder.byteLength;
    },
    takeFileStats: () => pool.takeStats(),
    close: () => pool.close(),
  };
}
