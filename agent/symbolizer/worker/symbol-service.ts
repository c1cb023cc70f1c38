/** The symbol worker: names for addresses of a file, from tables that it keeps for a while. */

import { closeSync, fstatSync } from 'node:fs';
import { bufferSource, OutOfBounds } from '../../../common/base/byte-source.ts';
import { ElfError, parseElf } from '../../../common/elf/elf.ts';
import { AddressRange } from '../../../common/symbols/address-range.ts';
import type { NamedRange } from '../../../common/symbols/source.ts';
import { loadNative } from '../../base/native.ts';
import { fdSource } from '../../files/fd-source.ts';
import { noStats } from '../../files/file-pool.ts';
import type { RootDirectory } from '../../files/root-directory.ts';
import type { AnswerCache } from '../cache/answer-cache.ts';
import type { TableStore } from '../cache/kept-tables.ts';
import { ScratchFile, type ScratchRoom } from '../cache/scratch-file.ts';
import type { SymbolAnswer, SymbolRequest } from './messages.ts';
import { closeFile, closeRoot, type OpenFile, OpenFiles, openRoot } from './open-files.ts';
import { type OpenSymbols, openSymbols, type SourceDetail } from './open-symbols.ts';
import { type CachedSymbols, keyOf, SymbolCache } from './symbol-cache.ts';

const MAX_TABLE_BYTES = 32 << 20;
/** With tables in files, what is left are windows and indices. */
const MAX_OUTSIDE_BYTES = 16 << 20;
export interface SymbolServiceOptions {
  /** Keeps names for later runs. */
  cache?: AnswerCache | undefined;
  /** Scratch room for tables, so that they need not stay in memory. */
  room?: ScratchRoom | undefined;
  /** Keeps these tables for later runs. */
  tables?: TableStore | undefined;
  /** Limit for tables that stay in memory. */
  maxBytes?: number;
  /** Limit for compressed debug sections once decompressed. */
  decompressedBytes?: number;
}

export class SymbolService {
  readonly #files: OpenFiles;
  readonly #cached: SymbolCache | undefined;
  readonly #detail: SourceDetail;
  readonly #options: SymbolServiceOptions;

  constructor(detail: SourceDetail = 'full', options: SymbolServiceOptions = {}) {
    const { cache, room, maxBytes = room ? MAX_OUTSIDE_BYTES : MAX_TABLE_BYTES } = options;
    this.#options = options;
    this.#detail = detail;
    this.#files = new OpenFiles(maxBytes);
    this.#cached = cache && new SymbolCache(cache);
  }

  async resolve(request: SymbolRequest): Promise<SymbolAnswer> {
    if (request.isCopy) return this.#findInCopy(request);
    const known = this.#cached?.of(request);
    if (!known) return this.#find(request, request.addresses);
    const names = Array.from(request.addresses, (address) => known.answers.ranges.get(address));
    const unknown = request.addresses.filter((_, i) => !names[i]);
    const answer = unknown.length > 0 ? await this.#find(request, unknown, known) : nothing();
    if (answer.kind !== 'names') return answer;
    const found = answer.names.values();
    return {
      kind: 'names',
      names: names.map((name) => name ?? found.next().value!),
      cached: names.length - unknown.length,
      debugFiles: { ...answer.debugFiles, missing: [...known.answers.missing] },
    };
  }

  /** Names and tables that are not on disk yet are written. */
  close(): void {
    this.#cached?.close();
    this.#files.clear();
  }

  async #find(request: SymbolRequest, addresses: Float64Array, known?: CachedSymbols): Promise<SymbolAnswer> {
    let file = this.#files.get(request);
    let names = file && !lacksFetched(file, request) ? lookUp(file.symbols, addresses) : undefined;
    if (!file || !names || !this.#files.isRightFor(file, request)) {
      const opened = await openFile(request, this.#detail, this.#options);
      if (!opened) return { kind: 'need-file' };
      if ('kind' in opened) return opened;
      this.#files.put(request, opened);
      file = opened;
      names = lookUp(file.symbols, addresses);
    }
    this.#files.resize(request, file);
    const debugFiles = file.symbols.takeFileStats();
    if (known) {
      const { probes } = file.symbols;
      this.#cached?.keep(known, { addresses, names, probes, missing: debugFiles.missing });
    }
    return { kind: 'names', names, cached: 0, debugFiles };
  }

  /** A copy is for one request alone. */
  async #findInCopy(request: SymbolRequest): Promise<SymbolAnswer> {
    const opened = await openFile(request, this.#detail, this.#options);
    if (!opened) return { kind: 'need-file' };
    if ('kind' in opened) return opened;
    try {
      const names = lookUp(opened.symbols, request.addresses);
      return { kind: 'names', names, cached: 0, debugFiles: opened.symbols.takeFileStats() };
    } finally {
      closeFile(opened);
    }
  }
}

const nothing = (): SymbolAnswer => ({ kind: 'names', names: [], cached: 0, debugFiles: noStats() });

/** In ascending order: neighbours share what is read of a table for them, or all of it. */
function lookUp(symbols: OpenSymbols, addresses: Float64Array): NamedRange[] {
  const order = Array.from(addresses.keys()).sort((a, b) => addresses[a]! - addresses[b]!);
  const names = new Array<NamedRange>(addresses.length);
  let last: NamedRange | undefined;
  for (const i of order) {
    const address = addresses[i]!;
    if (!(last && address < last.end)) {
      last = lookUpOne(symbols, address);
    }
    names[i] = last;
  }
  return names;
}

function lookUpOne(symbols: OpenSymbols, address: number): NamedRange {
  const range = new AddressRange();
  const frames = symbols.lookup(address, range);
  const { start, end } = frames.length > 0 ? {} : symbols.findFunction(address);
  if (start === undefined || end === undefined) return { frames, start: range.start, end: range.end };
  range.narrow(start, end);
  return { frames, functionStart: start, start: range.start, end: range.end };
}

const isOpenable = ({ fd, bytes }: SymbolRequest): boolean => fd !== undefined || bytes !== undefined;

/** Something was fetched since it was opened, and it can be opened anew. */
const lacksFetched = ({ fetched }: OpenFile, request: SymbolRequest): boolean =>
  fetched < countFetched(request) && isOpenable(request);

const countFetched = ({ fetched = {} }: SymbolRequest): number => Object.keys(fetched).length;

async function openFile(
  request: SymbolRequest,
  detail: SourceDetail,
  { room, tables, decompressedBytes }: SymbolServiceOptions,
): Promise<OpenFile | SymbolAnswer | undefined> {
  const { fd, bytes, path, root, fetched } = request;
  if (!isOpenable(request)) return undefined;
  const own = bytes ? undefined : loadNative().duplicate(fd!);
  let directory: RootDirectory | undefined;
  const key = keyOf(request);
  const scratch = room && new ScratchFile(room, key === undefined ? undefined : tables?.open(key));
  try {
    directory = openRoot(root);
    const source = bytes ? bufferSource(bytes) : fdSource(own!);
    const owner = own === undefined ? { uid: 0n, gid: 0n, mode: 0n } : fstatSync(own, { bigint: true });
    const place = { path, root: directory, owner, ...(fetched && { fetched }) };
    const symbols = await openSymbols(parseElf(source), place, detail, {
      ...(scratch && { scratch }),
      ...(decompressedBytes !== undefined && { decompressedBytes }),
    });
    return { symbols, fd: own, root: directory, fetched: countFetched(request), scratch };
  } catch (error) {
    if (own !== undefined) closeSync(own);
    closeRoot(directory);
    scratch?.close();
    if (error instanceof ElfError || error instanceof OutOfBounds) {
      return { kind: 'unreadable', reason: error.message };
    }
    throw error;
  }
}
