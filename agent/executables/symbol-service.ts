/** What the symbol worker does: names for addresses of a file, from tables that it keeps for a while. */
import { closeSync, fstatSync, openSync } from 'node:fs';
import { LRUCache } from 'lru-cache';
import { ElfError, parseElf } from '../../common/elf/elf.ts';
import { bufferSource, OutOfBounds } from '../../common/elf/source.ts';
import type { SymbolFrame } from '../../common/symbols/source.ts';
import { fdSource } from '../stack-deltas/fd-source.ts';
import type { FileStats } from '../symbols/file-pool.ts';
import { type OpenSymbols, openSymbols } from '../symbols/open-symbols.ts';
import { RootDirectory } from '../symbols/root-directory.ts';

/** `full`: inlined functions and lines; `names`: functions only; `off`: addresses only. */
export type SymbolDetail = 'full' | 'names' | 'off';

export interface SymbolRequest {
  fileId: string;
  /** An open descriptor of the file, or its bytes; without either only a table that is still there answers. */
  fd?: number;
  bytes?: Uint8Array;
  /** An open descriptor of the root directory in which it was found. */
  root?: number | undefined;
  /** Debug information that was fetched for it: where it lies on the host, by build ID. */
  fetched?: Readonly<Record<string, string>> | undefined;
  /** Where the file lies in that root, for the files beside it. */
  path: string;
  /** ELF virtual addresses. */
  addresses: Float64Array;
}

export type SymbolAnswer =
  /** By address, innermost first; none where nothing covers one. `debugFiles`: since the last answer. */
  | { kind: 'frames'; chains: SymbolFrame[][]; debugFiles: FileStats }
  /** Ask again with the file. */
  | { kind: 'need-file' }
  /** No ELF file that can be handled; the reason is a sentence. */
  | { kind: 'unreadable'; reason: string };

const MAX_TABLE_BYTES = 32 << 20;
/** Each has up to six descriptors. */
const MAX_FILES = 256;

interface OpenFile {
  symbols: OpenSymbols;
  /** Its own, since what is read later is read later. */
  fd: number | undefined;
  root: RootDirectory | undefined;
  fetched: number;
}

export class SymbolService {
  readonly #files = new LRUCache<string, OpenFile>({
    max: MAX_FILES,
    maxSize: MAX_TABLE_BYTES,
    // One that is larger than all of the room has it for itself: reading it again costs seconds.
    sizeCalculation: ({ symbols }) => Math.min(symbols.byteLength + 256, MAX_TABLE_BYTES),
    dispose: closeFile,
  });

  async resolve(request: SymbolRequest): Promise<SymbolAnswer> {
    let file = this.#files.get(request.fileId);
    if (!file || (file.fetched < countFetched(request) && isOpenable(request))) {
      const opened = await openFile(request);
      if (!opened) return { kind: 'need-file' };
      if ('kind' in opened) return opened;
      file = opened;
    }
    const { symbols } = file;
    const chains = Array.from(request.addresses, (address) => symbols.lookup(address));
    // set again: it has grown
    this.#files.set(request.fileId, file, { noDisposeOnSet: true });
    return { kind: 'frames', chains, debugFiles: symbols.takeFileStats() };
  }
}

const isOpenable = ({ fd, bytes }: SymbolRequest): boolean => fd !== undefined || bytes !== undefined;

const countFetched = ({ fetched = {} }: SymbolRequest): number => Object.keys(fetched).length;

function closeFile({ symbols, fd, root }: OpenFile): void {
  symbols.close();
  root?.close();
  if (fd !== undefined) closeSync(fd);
}

async function openFile(request: SymbolRequest): Promise<OpenFile | SymbolAnswer | undefined> {
  const { fd, bytes, path, root, fetched } = request;
  if (!isOpenable(request)) return undefined;
  const own = bytes ? undefined : openSync(`/proc/self/fd/${fd}`, 'r');
  let ownRoot: RootDirectory | undefined;
  try {
    if (root !== undefined) ownRoot = new RootDirectory(`/proc/self/fd/${root}`);
    const source = bytes ? bufferSource(bytes) : fdSource(own!);
    const uid = own === undefined ? 0n : fstatSync(own, { bigint: true }).uid;
    const symbols = await openSymbols(parseElf(source), {
      path,
      root: ownRoot,
      uid,
      ...(fetched && { fetched }),
    });
    return { symbols, fd: own, root: ownRoot, fetched: countFetched(request) };
  } catch (error) {
    if (own !== undefined) closeSync(own);
    ownRoot?.close();
    if (error instanceof ElfError || error instanceof OutOfBounds) {
      return { kind: 'unreadable', reason: error.message };
    }
    throw error;
  }
}
