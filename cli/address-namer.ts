import { placeOf } from '../agent/symbols/debug-files.ts';
import type { Debuginfod } from '../agent/symbols/debuginfod.ts';
import { type OpenSymbols, openSymbols } from '../agent/symbols/open-symbols.ts';
import type { ElfFile } from '../common/elf/elf.ts';
import type { SymbolFrame } from '../common/symbols/source.ts';

const MAX_FETCHES = 3;

/** Names the addresses of one file, with what a server has of its debug information where there is one. */
export class AddressNamer {
  readonly #elf: ElfFile;
  readonly #path: string;
  readonly #debuginfod: Debuginfod | undefined;
  readonly #remark: (message: string) => void;
  /** By build ID, where it is. */
  readonly #fetched: Record<string, string> = {};
  #fetches = 0;
  #symbols: OpenSymbols | undefined;

  constructor(
    elf: ElfFile,
    path: string,
    debuginfod: Debuginfod | undefined,
    remark: (message: string) => void,
  ) {
    this.#elf = elf;
    this.#path = path;
    this.#debuginfod = debuginfod;
    this.#remark = remark;
  }

  /**
   * The chains of some addresses, in their order. Once more with what was fetched, while something new is: a debug file
   * may refer to a part that it shares with others.
   */
  async lookUp(addresses: ArrayLike<number>): Promise<SymbolFrame[][]> {
    for (;;) {
      this.#symbols ??= await openSymbols(this.#elf, { ...placeOf(this.#path), fetched: this.#fetched });
      const chains = lookUpAscending(this.#symbols, addresses);
      if (!(await this.#fetch(this.#symbols.takeFileStats().missing))) return chains;
      this.close();
    }
  }

  close(): void {
    this.#symbols?.close();
    this.#symbols = undefined;
  }

  /** Whether something was found. */
  async #fetch(missing: readonly string[]): Promise<boolean> {
    if (this.#debuginfod === undefined || missing.length === 0 || this.#fetches++ >= MAX_FETCHES)
      return false;
    let isNew = false;
    for (const buildId of missing) {
      const found = await this.#debuginfod.find(buildId);
      if (found === undefined) {
        this.#remark(`no server gave the debug information of build ID ${buildId}`);
        continue;
      }
      this.#fetched[buildId] = found;
      isNew = true;
    }
    return isNew;
  }
}

/** Neighbours are answered by the same compilation unit: in ascending order each is read once. */
function lookUpAscending(symbols: OpenSymbols, addresses: ArrayLike<number>): SymbolFrame[][] {
  const chains: SymbolFrame[][] = new Array(addresses.length);
  const order = Uint32Array.from(addresses, (_, i) => i).sort((a, b) => addresses[a]! - addresses[b]!);
  for (const i of order) chains[i] = symbols.lookup(addresses[i]!);
  return chains;
}
