/** A program, library or debug file becomes one of those that name frames: the same for uploads and the command. */
import { typeKey } from '../../common/profile/model/profile-type.ts';
import type { Frame, SamplePart, Store } from '../store/store.ts';
import { addressOf } from '../store/trees/frames.ts';
import { isOfFile, type SymbolFile } from './symbol-files.ts';
import { SymbolError } from './symbol-reader.ts';
import type { SymbolSources } from './symbol-sources.ts';
import type { Inspected } from './symbol-worker.ts';

type Ids = Pick<SymbolFile, 'fileId' | 'gnuBuildId'>;

export interface TakenSymbols extends Ids {
  /** Where its names are from: `DWARF`, `Go`, `symtab`. */
  sources: string[];
  /** Addresses of it that arrived without a name and are stored; and how many of them have one now. */
  nameless: number;
  named: number;
}

/** The file can't name anything; the message says why. */
export class SymbolFileError extends Error {
  override name = 'SymbolFileError';
}

export const ELF_MAGIC = 0x7f454c46;

/** The newest parts of the store in which what a file names is counted. */
const MAX_COUNTED_PARTS = 60;

export class SymbolIntake {
  readonly #sources: SymbolSources;
  readonly #store: Pick<Store, 'parts' | 'types'>;
  readonly #now: () => number;

  constructor(sources: SymbolSources, store: Pick<Store, 'parts' | 'types'>, now: () => number) {
    this.#sources = sources;
    this.#store = store;
    this.#now = now;
  }

  /**
   * Takes over a file that was written to `incomingPath` of the symbol files; where that fails it is left there.
   *
   * @param fileName what a person calls it
   * @throws SymbolFileError
   */
  async take(fileName: string, path: string): Promise<TakenSymbols> {
    const { sources, ...ids } = await this.#inspect(fileName, path);
    this.#sources.files.keep(path, ids, this.#now());
    return { ...ids, sources, ...(await this.#count(ids)) };
  }

  async #inspect(fileName: string, path: string): Promise<Inspected> {
    const inspected = await this.#sources.reader.ask({ kind: 'inspect', path }).catch((error: unknown) => {
      if (!(error instanceof SymbolError)) throw error;
      throw new SymbolFileError(`${fileName} can't be read: ${error.message}`);
    });
    if (!('inspected' in inspected)) throw new Error('the symbol worker answered another question');
    if (inspected.inspected.sources.length > 0) return inspected.inspected;
    throw new SymbolFileError(
      `${fileName} has no names: it was stripped; give the file before that, or its debug file (GNU build ID ` +
        `${inspected.inspected.gnuBuildId || 'none'})`,
    );
  }

  async #count(ids: Ids): Promise<{ nameless: number; named: number }> {
    const everything = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER };
    const parts: SamplePart[] = [];
    for (const type of await this.#store.types(everything))
      parts.push(...(await this.#store.parts({ ...everything, type: typeKey(type) })));
    parts.sort((a, b) => a.startMs - b.startMs);
    const nameless = new Map<string, Frame>();
    for (const part of parts.slice(-MAX_COUNTED_PARTS)) {
      const { frames, nodeFrames } = await part.stacks();
      // a function stands in the table for its addresses, too
      for (const used of new Set(nodeFrames.subarray(1))) {
        const frame = frames[used]!;
        if (isOfFile(frame, ids)) nameless.set(`${frame.binary} ${addressOf(frame)}`, frame);
      }
    }
    const found = await this.#sources.names.resolve([...nameless.values()]);
    return { nameless: nameless.size, named: found.size };
  }
}
