/** An executable that a captured process has mapped, as lines of its case. */
import { execFileSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { basename } from 'node:path';
import { fdSource } from '../../agent/files/fd-source.ts';
import type { ProcessMemory } from '../../agent/interpreters/contract.ts';
import {
  ATTACHMENT,
  EF_BLOCK_BITS,
  EF_PAGE_BITS,
  FILE_ENTRY,
  FileState,
  PAGE,
  PROCESS_ID,
} from '../../agent/records/records.gen.ts';
import { RUNTIMES } from '../../agent/runtimes/runtimes.gen.ts';
import { buildTable, type ExecutableTable } from '../../agent/stack-deltas/table/build-table.ts';

const BLOCK_BYTES = 1 << EF_BLOCK_BITS;
const PAGE_BYTES = 1 << EF_PAGE_BITS;
/** As in host.c. */
const TGID = 4242;

interface Symbol {
  start: number;
  size: number;
  name: string;
}

export const hex = (value: number): string => value.toString(16);
export const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

export class CapturedFile {
  /** In hexadecimal; also the number of its table. */
  readonly key: string;
  readonly #path: string;
  readonly #name: string;
  /** Of the process, where it is attached to. */
  #facts: unknown;
  /** Undefined where it has none, as an assembly. */
  readonly #built: ExecutableTable | undefined;

  /** `path` as this process sees it, `name` as the captured one does. */
  constructor(key: string, path: string, name: string) {
    const fd = openSync(path, 'r');
    const built = buildTable(fdSource(fd));
    closeSync(fd);
    this.key = key;
    this.#path = path;
    this.#name = name;
    this.#built = built.kind === 'built' ? built.executable : undefined;
  }

  get plugin() {
    return RUNTIMES.find(({ name }) => name === this.#built?.runtime?.runtime);
  }

  /** What BPF's maps say of it. */
  entryLines(): string[] {
    const { table, runtime } = this.#built ?? {};
    if (!table) return [];
    const key = Buffer.alloc(8);
    key.writeBigUInt64LE(BigInt(`0x${this.key}`));
    const entry = Buffer.alloc(FILE_ENTRY.bytes);
    entry.writeUInt32LE(FileState.TABLE, FILE_ENTRY.state);
    entry.writeUInt32LE(Number.parseInt(this.key, 16), FILE_ENTRY.table);
    entry.writeUInt32LE(table.firstPage, FILE_ENTRY.firstPage);
    entry.writeUInt32LE(table.pageCount, FILE_ENTRY.pageCount);
    entry.writeUInt32LE(table.rulesAt, FILE_ENTRY.rulesAt);
    entry.writeUInt32LE(table.rowsAt, FILE_ENTRY.rowsAt);
    entry.writeUInt32LE(this.plugin?.id ?? 0, FILE_ENTRY.runtime);
    const lines = [`entry files ${hexOf(key)} ${hexOf(entry)}`];
    if (this.plugin && runtime && !this.plugin.attach)
      lines.push(`entry ${this.plugin.map} ${hexOf(key)} ${hexOf(runtime.entry)}`);
    return lines;
  }

  /** Of a runtime that is attached to: what BPF's map says of the process; names are read with what that found. */
  attach(memory: ProcessMemory, base: number): string[] {
    const { plugin } = this;
    if (!plugin?.attach) return [];
    const attached = plugin.attach(memory, base, this.#built!.runtime!.facts);
    if (!attached) throw new Error(`${this.#name}: nothing to attach to`);
    this.#facts = attached.facts;
    const process = Buffer.alloc(PROCESS_ID.bytes);
    process.writeUInt32LE(TGID, PROCESS_ID.tgid);
    const entry = Buffer.from(attached.entry);
    entry.writeBigUInt64LE(BigInt(`0x${this.key}`), ATTACHMENT.fileKey);
    entry.writeUInt32LE(1, ATTACHMENT.isAttached);
    return [`entry ${plugin.map} ${hexOf(process)} ${hexOf(entry)}`];
  }

  /** The whole table. */
  allBlockLines(): string[] {
    const image = this.#built?.table?.image ?? new Uint8Array();
    return Array.from({ length: image.length / BLOCK_BYTES }, (_, i) => this.#blockLine(image, i));
  }

  /** Some blocks of it, without the rows of other pages than these: rows would be most of the case. */
  blockLines(blocks: readonly number[], pages: ReadonlySet<number>): string[] {
    const { table } = this.#built ?? {};
    if (!table) return [];
    const { image, rowsAt, firstPage, pageCount } = table;
    const kept = new Uint8Array(image.length);
    const view = new DataView(image.buffer, image.byteOffset);
    kept.set(image.subarray(pageCount * PAGE.bytes, rowsAt), pageCount * PAGE.bytes);
    for (const page of pages) {
      const at = (page - firstPage) * PAGE.bytes;
      if (page < firstPage || page >= firstPage + pageCount) continue;
      kept.set(image.subarray(at, at + PAGE.bytes), at);
      const rows = rowsAt + view.getUint32(at + PAGE.firstRow, true) * 4;
      kept.set(image.subarray(rows, rows + view.getUint16(at + PAGE.rows, true) * 4), rows);
    }
    return blocks.map((block) => this.#blockLine(kept, block));
  }

  #blockLine(image: Uint8Array, block: number): string {
    const bytes = image.subarray(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES);
    return `block ${this.key} ${hex(block)} ${hexOf(bytes).replace(/(00)+$/, '')}`;
  }

  /** What naming the frames at these offsets in the file takes. */
  nameLines(offsets: ReadonlySet<number>): string[] {
    const { runtime, segments = [] } = this.#built ?? {};
    const lines = [`#file ${this.key} ${basename(this.#name)}`];
    if (runtime) {
      const { entry: _, facts, ...rest } = runtime;
      lines.push(`#runtime ${this.key} ${JSON.stringify({ ...rest, facts: this.#facts ?? facts })}`);
    }
    const symbols = readSymbols(this.#path);
    for (const offset of offsets) {
      const segment = segments.find((s) => offset >= s.offset && offset < s.offset + s.filesz);
      const address = segment ? offset - segment.offset + segment.vaddr : -1;
      const symbol = symbols.find(({ start, size }) => address >= start && address < start + size);
      if (symbol) lines.push(`#symbol ${this.key} ${hex(offset)} ${symbol.name.replace(/@.*/, '')}`);
    }
    return lines;
  }
}

export const pageOf = (offset: number): number => Math.floor(offset / PAGE_BYTES);

/** The functions that binutils finds, with their sizes. */
function readSymbols(path: string): Symbol[] {
  return ['-S', '-SD'].flatMap((flags) =>
    execFileSync('nm', [flags, path], {
      encoding: 'utf8',
      maxBuffer: 256 << 20,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
      .split('\n')
      .flatMap((line): Symbol[] => {
        const [start, size, type, name] = line.split(' ');
        if (!name || !/^[tTwWiI]$/.test(type!)) return [];
        return [{ start: Number.parseInt(start!, 16), size: Number.parseInt(size!, 16), name }];
      }),
  );
}
