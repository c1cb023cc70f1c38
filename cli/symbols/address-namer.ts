import { placeOf } from '../../agent/files/debug-files.ts';
import type { Debuginfod } from '../../agent/symbolizer/debuginfod/debuginfod.ts';
import { type OpenSymbols, openSymbols } from '../../agent/symbolizer/worker/open-symbols.ts';
import type { ElfFile } from '../../common/elf/elf.ts';
import { type AnswerParts, AnswerText } from './answer-text.ts';
import { symbolText } from './symbol-text.ts';

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
   * What `show symbol` prints for some ascending addresses. Once more with what was fetched, while something new is: a
   * debug file may refer to a part that it shares with others.
   */
  async answer(addresses: ArrayLike<number>, json: boolean): Promise<AnswerParts> {
    const shape = { json, path: this.#path };
    for (;;) {
      this.#symbols ??= await openSymbols(this.#elf, { ...placeOf(this.#path), fetched: this.#fetched });
      const text = new AnswerText(addresses.length);
      for (let i = 0; i < addresses.length; i++)
        text.add(symbolText(addresses[i]!, this.#symbols.lookup(addresses[i]!), shape));
      if (!(await this.#fetch(this.#symbols.takeFileStats().missing))) return text.parts();
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
