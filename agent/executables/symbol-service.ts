/** What the symbol worker does: names for addresses of a file, from tables that it keeps for a while. */
import { closeSync, openSync } from 'node:fs';
import { LRUCache } from 'lru-cache';
import { ElfError, parseElf } from '../../common/elf/elf.ts';
import { bufferSource, OutOfBounds } from '../../common/elf/source.ts';
import type { SymbolFrame } from '../../common/symbols/source.ts';
import { fdSource } from '../stack-deltas/fd-source.ts';
import { type OpenSymbols, openSymbols } from '../symbols/open-symbols.ts';

/** `full`: inlined functions and lines; `names`: functions only; `off`: addresses only. */
export type SymbolDetail = 'full' | 'names' | 'off';

export interface SymbolRequest {
  fileId: string;
  /** An open descriptor of the file, or its bytes; without either only a table that is still there answers. */
  fd?: number;
  bytes?: Uint8Array;
  /** Where the file lies, for the files beside it. */
  path: string;
  /** ELF virtual addresses. */
  addresses: Float64Array;
}

export type SymbolAnswer =
  /** By address, innermost first; none where nothing covers one. */
  | { kind: 'frames'; chains: SymbolFrame[][] }
  /** Ask again with the file. */
  | { kind: 'need-file' }
  /** No ELF file that can be handled; the reason is a sentence. */
  | { kind: 'unreadable'; reason: string };

const MAX_TABLE_BYTES = 32 << 20;

interface OpenFile {
  symbols: OpenSymbols;
  /** Its own, since what is read later is read later. */
  fd: number | undefined;
}

export class SymbolService {
  readonly #files = new LRUCache<string, OpenFile>({
    maxSize: MAX_TABLE_BYTES,
    // One that is larger than all of the room has it for itself: reading it again costs seconds.
    sizeCalculation: ({ symbols }) => Math.min(symbols.byteLength + 256, MAX_TABLE_BYTES),
    dispose: closeFile,
  });

  resolve(request: SymbolRequest): SymbolAnswer {
    let file = this.#files.get(request.fileId);
    if (!file) {
      const opened = openFile(request);
      if (!opened) return { kind: 'need-file' };
      if ('kind' in opened) return opened;
      file = opened;
    }
    const { symbols } = file;
    const chains = Array.from(request.addresses, (address) => symbols.lookup(address));
    // set again: it has grown
    this.#files.set(request.fileId, file, { noDisposeOnSet: true });
    return { kind: 'frames', chains };
  }
}

function closeFile({ symbols, fd }: OpenFile): void {
  symbols.close();
  if (fd !== undefined) closeSync(fd);
}

function openFile({ fd, bytes, path }: SymbolRequest): OpenFile | SymbolAnswer | undefined {
  if (!bytes && fd === undefined) return undefined;
  const own = bytes ? undefined : openSync(`/proc/self/fd/${fd}`, 'r');
  try {
    const source = bytes ? bufferSource(bytes) : fdSource(own!);
    return { symbols: openSymbols(parseElf(source), path), fd: own };
  } catch (error) {
    if (own !== undefined) closeSync(own);
    if (error instanceof ElfError || error instanceof OutOfBounds) {
      return { kind: 'unreadable', reason: error.message };
    }
    throw error;
  }
}
