/** Reads symbols of strangers' files, in a process of its own: questions and answers are messages. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { LRUCache } from 'lru-cache';
import { type ByteSource, OutOfBounds } from '../../common/base/byte-source.ts';
import { type ElfFile, parseElf } from '../../common/elf/elf.ts';
import { computeFileId } from '../../common/elf/file-id.ts';
import { openDwarf } from '../../common/symbols/dwarf/dwarf-source.ts';
import { readSymbolTable } from '../../common/symbols/elf-symbols.ts';
import { readGoSymbols } from '../../common/symbols/go-pclntab.ts';
import { readMiniDebugInfo } from '../../common/symbols/mini-debug-info.ts';
import { hasSymbols } from '../../common/symbols/separate-symbols.ts';
import type {
  DebugFile,
  FileAccess,
  FileRequest,
  SymbolFrame,
  SymbolSource,
} from '../../common/symbols/source.ts';
import { sourceWithFallback, tableSource } from '../../common/symbols/source-fallback.ts';
import { yieldToOthers } from '../workers/yield-to-others.ts';

export type SymbolRequest =
  /** What a file is, and whether it has names. */
  | { kind: 'inspect'; path: string }
  | {
      kind: 'names';
      /** Files of one program, and what their names depend on: the same key, the same files. */
      key: string;
      paths: readonly string[];
      /** Other files by GNU build ID, for what those refer to. */
      byBuildId: Readonly<Record<string, string>>;
      addresses: Float64Array;
    };

export interface Inspected {
  fileId: string;
  gnuBuildId: string;
  /** `DWARF`, `Go`, `symtab`: none where it has no names. */
  sources: string[];
}

export type SymbolReply = { inspected: Inspected } | { chains: SymbolFrame[][] } | { error: string };

const MAX_OPEN = 16;
const MAX_OPEN_BYTES = 128 * 2 ** 20;

interface OpenProgram {
  symbols: SymbolSource;
  close(): void;
}

const programs = new LRUCache<string, OpenProgram>({
  max: MAX_OPEN,
  maxSize: MAX_OPEN_BYTES,
  sizeCalculation: ({ symbols }) => Math.min(symbols.byteLength + 256, MAX_OPEN_BYTES / 2),
  dispose: (program) => program.close(),
});

/** Characters of one answer: names are as long as files say. */
const MAX_REPLY_LENGTH = 32 * 2 ** 20;

yieldToOthers();
process.on('message', async (request: SymbolRequest) => {
  let reply: SymbolReply;
  try {
    reply = request.kind === 'inspect' ? { inspected: await inspect(request.path) } : await nameAll(request);
  } catch (error) {
    reply = { error: (error as Error).message };
  }
  process.send?.(reply);
});
process.on('disconnect', () => process.exit());

async function inspect(path: string): Promise<Inspected> {
  const files = new OpenFiles({});
  try {
    const elf = parseElf(files.source(path));
    const { tables, dwarf, go } = await readSources([elf], files);
    const sources = [
      ...(dwarf.length > 0 ? ['DWARF'] : []),
      ...(go.length > 0 ? ['Go'] : []),
      ...(tables.some(({ count }) => count > 0) ? ['symtab'] : []),
    ];
    return { fileId: computeFileId(elf.source), gnuBuildId: elf.gnuBuildId, sources };
  } finally {
    files.close();
  }
}

async function nameAll(request: SymbolRequest & { kind: 'names' }): Promise<SymbolReply> {
  const program = programs.get(request.key) ?? (await openProgram(request));
  const chains = Array.from(request.addresses, (address) => program.symbols.lookup(address));
  // It has grown: another object, since for the same one the cache does not ask for its size.
  programs.set(request.key, { ...program }, { noDisposeOnSet: true });
  let length = 0;
  for (const chain of chains)
    for (const frame of chain) length += frame.function.length + frame.systemName.length + frame.file.length;
  if (length > MAX_REPLY_LENGTH) throw new Error(`its names are ${length} characters long`);
  return { chains };
}

async function openProgram({ paths, byBuildId }: SymbolRequest & { kind: 'names' }): Promise<OpenProgram> {
  const files = new OpenFiles(byBuildId);
  try {
    const elves = paths.map((path) => parseElf(files.source(path)));
    const { go, dwarf, tables } = await readSources(elves, files);
    const symbols = sourceWithFallback([...go, ...dwarf, ...tables.map(tableSource)]);
    return { symbols, close: () => files.close() };
  } catch (error) {
    files.close();
    throw error;
  }
}

/** Of one program: the file that runs, and what was split off from it. */
async function readSources(elves: readonly ElfFile[], files: FileAccess) {
  const code = elves.find((elf) => elf.section('.text')?.type === SHT_PROGBITS) ?? elves[0]!;
  const isThere = <T>(value: T | undefined): value is T => value !== undefined;
  const go = elves.map((elf) => readGoSymbols(elf)).filter(isThere);
  const dwarf = elves.map((elf) => openDwarf(elf, files, code)).filter(isThere);
  const withTables: ElfFile[] = [];
  for (const elf of elves) {
    const mini = hasSymbols(elf) ? undefined : await readMiniDebugInfo(elf).catch(() => undefined);
    withTables.push(...(mini === undefined ? [elf] : [mini, elf]));
  }
  // Whole symbol tables before those of which a part was stripped.
  withTables.sort((a, b) => Number(hasSymbols(b)) - Number(hasSymbols(a)));
  return { go, dwarf, tables: withTables.map((elf) => readSymbolTable(elf, { code })) };
}

const SHT_PROGBITS = 1;

/** Only files that were given: by path from the main thread, by build ID from the files themselves. */
class OpenFiles implements FileAccess {
  readonly #byBuildId: Readonly<Record<string, string>>;
  readonly #descriptors: number[] = [];
  readonly #sources = new Map<string, ByteSource>();

  constructor(byBuildId: Readonly<Record<string, string>>) {
    this.#byBuildId = byBuildId;
  }

  open(request: FileRequest): DebugFile | undefined {
    if (!('buildId' in request) || !Object.hasOwn(this.#byBuildId, request.buildId)) return undefined;
    const path = this.#byBuildId[request.buildId]!;
    return { source: this.source(path), identity: path, files: this };
  }

  close(): void {
    for (const descriptor of this.#descriptors.splice(0)) closeSync(descriptor);
  }

  source(path: string): ByteSource {
    let source = this.#sources.get(path);
    if (source === undefined) {
      const descriptor = openSync(path, 'r');
      this.#descriptors.push(descriptor);
      source = descriptorSource(descriptor);
      this.#sources.set(path, source);
    }
    return source;
  }
}

function descriptorSource(descriptor: number): ByteSource {
  const { size } = fstatSync(descriptor);
  return {
    size,
    read(offset, length) {
      const isInside = offset >= 0 && length >= 0 && offset + length <= size;
      const bytes = new Uint8Array(isInside ? length : 0);
      if (!isInside || readSync(descriptor, bytes, 0, length, offset) !== length)
        throw new OutOfBounds(`${length} bytes at ${offset} of ${size}`);
      return bytes;
    },
  };
}
