/** Names that come after the samples: of native frames that arrived without one, from files that people gave. */
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import type { SymbolFrame } from '../../common/symbols/source.ts';
import type { Frame } from '../store/store.ts';
import { addressOf } from '../store/trees/frames.ts';
import type { SymbolFile, SymbolFiles } from './symbol-files.ts';
import { SymbolError, type SymbolReader } from './symbol-reader.ts';

const MAX_CACHED = 200_000;
/** Of one question to the worker. */
const MAX_ADDRESSES = 20_000;
/** An inlined chain that is deeper is not a compiler's. */
const MAX_CHAIN = 64;

export class LateNames {
  readonly #files: SymbolFiles;
  readonly #reader: Pick<SymbolReader, 'ask'>;
  readonly #logger: Pick<Logger, 'error'>;
  /** By generation, binary and address: frames, outermost first; none where no file has a name. */
  readonly #known = new LRUCache<string, readonly Frame[]>({ max: MAX_CACHED });
  /** Files that could not be read: each is tried once. */
  readonly #unreadable = new WeakSet<SymbolFile>();

  constructor(files: SymbolFiles, reader: Pick<SymbolReader, 'ask'>, logger: Pick<Logger, 'error'>) {
    this.#files = files;
    this.#reader = reader;
    this.#logger = logger;
  }

  /** Grows when there may be other names. */
  get generation(): number {
    return this.#files.generation;
  }

  get isEmpty(): boolean {
    return this.#files.files.length === 0;
  }

  /** What stands in place of frames without a name, outermost first; a frame that has none is not in it. */
  async resolve(frames: readonly Frame[]): Promise<Map<Frame, readonly Frame[]>> {
    const found = new Map<Frame, readonly Frame[]>();
    for (const [binary, ofBinary] of groupByBinary(frames)) {
      const files = this.#files.find(binary).filter((file) => !this.#unreadable.has(file));
      if (files.length > 0) await this.#resolveBinary(files, ofBinary, found);
    }
    return found;
  }

  async #resolveBinary(
    files: readonly SymbolFile[],
    frames: readonly Frame[],
    found: Map<Frame, readonly Frame[]>,
  ): Promise<void> {
    const asked: Frame[] = [];
    for (const frame of frames) {
      const chain = this.#known.get(this.#keyOf(frame));
      if (chain === undefined) asked.push(frame);
      else if (chain.length > 0) found.set(frame, chain);
    }
    for (let at = 0; at < asked.length; at += MAX_ADDRESSES) {
      const some = asked.slice(at, at + MAX_ADDRESSES);
      const chains = await this.#ask(files, some.map(addressOf));
      if (chains === undefined) return;
      for (const [i, frame] of some.entries()) {
        const chain = toFrames(frame, chains[i] ?? []);
        this.#known.set(this.#keyOf(frame), chain);
        if (chain.length > 0) found.set(frame, chain);
      }
    }
  }

  /** Undefined where the files can't be read. */
  async #ask(files: readonly SymbolFile[], addresses: number[]): Promise<SymbolFrame[][] | undefined> {
    const paths = files.map(({ path }) => path);
    const byBuildId = Object.fromEntries(
      this.#files.files
        .filter(({ gnuBuildId }) => gnuBuildId !== '')
        .map(({ gnuBuildId, path }) => [gnuBuildId, path]),
    );
    const key = `${this.generation} ${paths.join()}`;
    try {
      const reply = await this.#reader.ask({
        kind: 'names',
        key,
        paths,
        byBuildId,
        addresses: Float64Array.from(addresses),
      });
      return 'chains' in reply ? reply.chains : undefined;
    } catch (error) {
      if (!(error instanceof SymbolError)) throw error;
      for (const file of files) this.#unreadable.add(file);
      this.#logger.error(`no names from ${paths.join(', ')}: ${error.message}`);
      return undefined;
    }
  }

  #keyOf(frame: Frame): string {
    return `${this.generation} ${frame.binary} ${addressOf(frame)}`;
  }
}

function groupByBinary(frames: readonly Frame[]): Map<string, Frame[]> {
  const groups = new Map<string, Frame[]>();
  for (const frame of frames) {
    if (frame.binary === undefined) continue;
    const group = groups.get(frame.binary);
    if (group === undefined) groups.set(frame.binary, [frame]);
    else group.push(frame);
  }
  return groups;
}

/** Outermost first, as the store has them; a function without a name would not be an improvement. */
function toFrames({ mapping, kind }: Frame, chain: readonly SymbolFrame[]): Frame[] {
  return chain
    .slice(-MAX_CHAIN)
    .filter((frame) => frame.function !== '')
    .map(
      ({ function: name, file, line }): Frame => ({ name, file, mapping, kind, ...(line > 0 && { line }) }),
    )
    .reverse();
}
