import type { ElfFile } from '../../common/elf/elf.ts';
import { openDwarf } from '../../common/symbols/dwarf/dwarf-source.ts';
import { readSymbolTable } from '../../common/symbols/elf-symbols.ts';
import { readGoSymbols } from '../../common/symbols/go-pclntab.ts';
import { symbolLadder, tableSource } from '../../common/symbols/ladder.ts';
import { readSeparateSymbols } from '../../common/symbols/separate-symbols.ts';
import type { SymbolSource } from '../../common/symbols/source.ts';
import { DebugFiles } from './debug-files.ts';

export interface OpenSymbols extends SymbolSource {
  /** Closes the files that look-ups opened. */
  close(): void;
}

/** The sources of names of an ELF file, best first. `path` is where the file lies, for the files beside it. */
export function openSymbols(elf: ElfFile, path: string): OpenSymbols {
  const files = new DebugFiles(path);
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
    close: () => files.close(),
  };
}
