/** What the symbol worker does: names for addresses of a file, from tables that it keeps for a while. */
import { LRUCache } from 'lru-cache';
import { ElfError, parseElf } from '../../common/elf/elf.ts';
import { bufferSource, OutOfBounds } from '../../common/elf/source.ts';
import { readSymbolTable } from '../../common/symbols/elf-symbols.ts';
import type { SymbolTable } from '../../common/symbols/symbol-table.ts';
import { fdSource } from '../stack-deltas/fd-source.ts';

export interface SymbolRequest {
  fileId: string;
  /** An open descriptor of the file, or its bytes; without either only a table that is still there answers. */
  fd?: number;
  bytes?: Uint8Array;
  /** ELF virtual addresses. */
  addresses: Float64Array;
}

export type SymbolAnswer =
  /** `names[indices[i]]` is the name of address i, -1 where no symbol covers it. */
  | { kind: 'names'; names: string[]; indices: Int32Array }
  /** Ask again with the file. */
  | { kind: 'need-file' }
  /** No ELF file that can be handled; the reason is a sentence. */
  | { kind: 'unreadable'; reason: string };

const MAX_TABLE_BYTES = 32 << 20;

export class SymbolService {
  readonly #tables = new LRUCache<string, SymbolTable>({
    maxSize: MAX_TABLE_BYTES,
    // One that is larger than all of the room has it for itself: reading it again costs seconds.
    sizeCalculation: (table) => Math.min(table.byteLength + 256, MAX_TABLE_BYTES),
  });

  resolve(request: SymbolRequest): SymbolAnswer {
    let table = this.#tables.get(request.fileId);
    if (!table) {
      const source = openSource(request);
      if (!source) return { kind: 'need-file' };
      try {
        table = readSymbolTable(parseElf(source));
      } catch (error) {
        if (error instanceof ElfError || error instanceof OutOfBounds) {
          return { kind: 'unreadable', reason: error.message };
        }
        throw error;
      }
      this.#tables.set(request.fileId, table);
    }
    return nameAddresses(table, request.addresses);
  }
}

function openSource({ fd, bytes }: SymbolRequest) {
  if (bytes) return bufferSource(bytes);
  return fd === undefined ? undefined : fdSource(fd);
}

/** Names repeat: each is sent once. */
function nameAddresses(table: SymbolTable, addresses: Float64Array): SymbolAnswer {
  const names: string[] = [];
  const known = new Map<number, number>();
  const indices = new Int32Array(addresses.length).fill(-1);
  for (const [i, address] of addresses.entries()) {
    const symbol = table.lookup(address);
    if (!symbol) continue;
    let index = known.get(symbol.start);
    if (index === undefined) {
      index = names.push(symbol.name) - 1;
      known.set(symbol.start, index);
    }
    indices[i] = index;
  }
  return { kind: 'names', names, indices };
}
