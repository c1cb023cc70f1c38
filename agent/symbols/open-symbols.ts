import type { ElfFile } from '../../common/elf/elf.ts';
import { readSymbolTable } from '../../common/symbols/elf-symbols.ts';
import { symbolLadder, tableSource } from '../../common/symbols/ladder.ts';
import type { SymbolSource } from '../../common/symbols/source.ts';
import { DebugFiles } from './debug-files.ts';

export interface OpenSymbols extends SymbolSource {
  /** Closes the files that look-ups opened. */
  close(): void;
}

/** The sources of names of an ELF file, best first. `path` is where the file lies, for the files beside it. */
export function openSymbols(elf: ElfFile, path: string): OpenSymbols {
  const files = new DebugFiles(path);
  const ladder = symbolLadder([tableSource(readSymbolTable(elf))]);
  return {
    lookup: (address) => ladder.lookup(address),
    get byteLength() {
      return ladder.byteLength;
    },
    close: () => files.close(),
  };
}
