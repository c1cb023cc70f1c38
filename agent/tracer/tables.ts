/** Unwind tables in the kernel: one array of blocks a file, found by file key; the least used leave first. */
import type { FileKey } from '../../common/base/brand.ts';
import type { Native, NativeBpfObject } from '../base/native.ts';
import type { DetectedRuntime, RuntimePlugin } from '../interpreters/contract.ts';
import { EF_VDSO_KEY, FILE_ENTRY, FileState, Runtime } from '../records/records.gen.ts';
import { toKey } from '../records/records.ts';
import type { IdleTables, TableUse } from './idle-tables.ts';
import type { Samplers } from './samplers.ts';

/** A packed unwind table: see the layout in ebpf/records.h. */
export interface TableImage {
  /** Whole blocks of 16 KiB. */
  image: Uint8Array;
  firstPage: number;
  pageCount: number;
  rulesAt: number;
  rowsAt: number;
}

const BLOCK_BYTES = 16384;
const BPF_ANY = 0;
/** Share of all tables that are evicted besides, when one has to be. */
const SPARE_SHARE = 1 / 16;

interface Installed {
  slot: number;
  bytes: number;
  sinceNs: bigint;
}

/** The part of the addon that handles tables. */
type TableMaps = Pick<
  Native,
  'installTable' | 'removeTables' | 'mapUpdate' | 'mapDelete' | 'mapLookup' | 'monotonicNs'
>;

const keyBytes = (key: FileKey): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(`0x${key}`));
  return bytes;
};

const NO_TABLE = { firstPage: 0, pageCount: 0, rulesAt: 0, rowsAt: 0 };

export class Tables {
  readonly #native: TableMaps;
  readonly #filesFd: number;
  readonly #tablesFd: number;
  readonly #samplers: Pick<Samplers, 'add' | 'mapFd'>;
  #maxBytes: number;
  readonly #plugins: readonly RuntimePlugin[];
  readonly #installed = new Map<FileKey, Installed>();
  readonly #freeSlots: number[] = [];
  #nextSlot = 0;
  #bytes = 0;
  readonly #maxTables: number;
  /** One change at a time: threads make them, and would end them in any order. */
  #changing: Promise<unknown> = Promise.resolve();
  readonly stats = { installed: 0, evicted: 0, idle: 0, failed: 0, runtimesFailed: 0 };

  constructor(
    native: TableMaps,
    object: Pick<NativeBpfObject, 'mapFd'>,
    samplers: Pick<Samplers, 'add' | 'mapFd'>,
    {
      maxTables,
      maxBytes,
      runtimes,
    }: { maxTables: number; maxBytes: number; runtimes: readonly RuntimePlugin[] },
  ) {
    this.#native = native;
    this.#filesFd = object.mapFd('files');
    this.#tablesFd = object.mapFd('tables');
    this.#samplers = samplers;
    this.#maxTables = maxTables;
    this.#maxBytes = maxBytes;
    this.#plugins = runtimes;
  }

  /** Kernel memory of all tables, bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  get count(): number {
    return this.#installed.size;
  }

  has(key: FileKey): boolean {
    return this.#installed.has(key);
  }

  /** Publishes a file's table; from then on every process that maps the file unwinds through it. */
  install(key: FileKey, table: TableImage, runtime?: DetectedRuntime): Promise<void> {
    return this.#inTurn(() => this.#install(key, table, runtime));
  }

  async #install(key: FileKey, table: TableImage, runtime: DetectedRuntime | undefined): Promise<void> {
    if (this.#installed.has(key)) await this.#remove([key]);
    if (this.#isFull(table.image.length)) await this.#makeRoom(table.image.length);
    const slot = this.#freeSlots.pop() ?? this.#nextSlot++;
    const installed: Installed = { slot, bytes: table.image.length, sinceNs: this.#native.monotonicNs() };
    this.#installed.set(key, installed);
    this.#bytes += table.image.length;
    let isPublished = false;
    try {
      const { buffer, byteOffset, length } = table.image;
      await this.#native.installTable(
        this.#tablesFd,
        slot,
        Buffer.from(buffer, byteOffset, length),
        BLOCK_BYTES,
      );
      isPublished = this.#writeWithRuntime(key, { state: FileState.TABLE, slot, table }, runtime);
      if (!isPublished) this.#writeEntry(key, FileState.TABLE, slot, table);
      this.stats.installed++;
    } catch (error) {
      this.stats.failed++;
      this.#installed.delete(key);
      await this.#withdraw(key, installed).catch(() => {});
      throw error;
    }
    // not awaited: loading takes a while, and other files wait for their tables
    if (runtime && !isPublished) void this.#installRuntime(key, table, runtime);
  }

  /** What was made of a table before it failed: nothing leads to it. */
  async #withdraw(key: FileKey, installed: Installed): Promise<void> {
    this.#free(installed);
    try {
      this.#forgetRuntime(key);
      this.markNoTable(key);
    } finally {
      await this.#native.removeTables(this.#tablesFd, Uint32Array.of(installed.slot));
    }
  }

  /**
   * A runtime was found in a file whose table is still being made: its frames are unwound from now on, and stacks end at
   * the first native frame of the file.
   */
  async announce(key: FileKey, runtime: DetectedRuntime): Promise<void> {
    const plugin = this.#pluginOf(runtime);
    if (!plugin || !(await this.#samplers.add(plugin))) return;
    const entry = this.#native.mapLookup(this.#filesFd, keyBytes(key), FILE_ENTRY.bytes);
    if (entry?.readUInt32LE(FILE_ENTRY.state) !== FileState.PENDING) return; // its table was sooner, or it was dropped
    this.#writeWithRuntime(key, { state: FileState.PENDING, slot: 0, table: NO_TABLE }, runtime);
  }

  /** Native frames are unwound already; the runtime's follow when its code is in the kernel. */
  async #installRuntime(key: FileKey, table: TableImage, runtime: DetectedRuntime): Promise<void> {
    const plugin = this.#pluginOf(runtime);
    const installed = this.#installed.get(key);
    const isAdded = plugin !== undefined && (await this.#samplers.add(plugin));
    if (!installed || this.#installed.get(key) !== installed) return; // dropped meanwhile
    const entry = { state: FileState.TABLE, slot: installed.slot, table };
    // refused, or the map is full: the file is unwound as native code
    if (!isAdded || !this.#writeWithRuntime(key, entry, runtime)) this.stats.runtimesFailed++;
  }

  /** False where the runtime is not part of the sampler, or its map is full: nothing is written then. */
  #writeWithRuntime(
    key: FileKey,
    { state, slot, table }: { state: number; slot: number; table: Omit<TableImage, 'image'> },
    runtime: DetectedRuntime | undefined,
  ): boolean {
    const plugin = runtime && this.#pluginOf(runtime);
    const fd = plugin && this.#samplers.mapFd(plugin);
    if (!plugin || fd === undefined) return false;
    try {
      // with `attach` the map has entries of processes
      if (!plugin.attach) this.#native.mapUpdate(fd, keyBytes(key), Buffer.from(runtime.entry), BPF_ANY);
    } catch {
      return false;
    }
    this.#writeEntry(key, state, slot, table, plugin.id);
    return true;
  }

  /** The file was read and has nothing to unwind with. */
  markNoTable(key: FileKey): void {
    this.#writeEntry(key, FileState.NO_TABLE, 0, NO_TABLE);
  }

  /** It is shared memory: code in it is taken for code that no file backs. */
  markMemory(key: FileKey): void {
    this.#writeEntry(key, FileState.MEMORY, 0, NO_TABLE);
  }

  /** BPF reports the file again when it next meets it. */
  forget(key: FileKey): Promise<void> {
    return this.#inTurn(() => this.#remove([key]));
  }

  /** Sets the limit for all tables, bytes, and evicts the least used beyond it. */
  async limit(maxBytes: number, isStopping: () => boolean = () => false): Promise<void> {
    this.#maxBytes = maxBytes;
    await this.#inTurn(async () => {
      if (!isStopping()) await this.#evictDownTo(this.#maxBytes, this.#maxTables);
    });
  }

  /** Drops tables that no sample has needed for a while; their files come back if they are needed. */
  async dropIdle(idle: IdleTables, isStopping: () => boolean): Promise<void> {
    // not in turn: it asks the file system
    const leaving = await idle.pick(this.#byLastUse(), this.#native.monotonicNs());
    await this.#inTurn(async () => {
      if (isStopping()) return;
      const unused = leaving.filter(({ key, usedNs }) => this.#lastUsedNs(key) === usedNs);
      this.stats.idle += unused.length;
      await this.#remove(unused.map(({ key }) => key));
    });
  }

  #inTurn(change: () => Promise<void>): Promise<void> {
    const done = this.#changing.then(change);
    this.#changing = done.catch(() => {});
    return done;
  }

  #lastUsedNs(key: FileKey): bigint {
    const entry = this.#native.mapLookup(this.#filesFd, keyBytes(key), FILE_ENTRY.bytes);
    return entry?.readBigUInt64LE(FILE_ENTRY.lastUsedNs) ?? 0n;
  }

  #isFull(more: number): boolean {
    return this.#bytes + more > this.#maxBytes || this.#installed.size >= this.#maxTables;
  }

  #pluginOf({ runtime }: DetectedRuntime): RuntimePlugin | undefined {
    return this.#plugins.find(({ name }) => name === runtime);
  }

  #forgetRuntime(key: FileKey): void {
    for (const plugin of this.#plugins.filter(({ attach }) => !attach)) {
      const fd = this.#samplers.mapFd(plugin);
      if (fd !== undefined) this.#native.mapDelete(fd, keyBytes(key));
    }
  }

  #writeEntry(
    key: FileKey,
    state: number,
    slot: number,
    table: Omit<TableImage, 'image'>,
    runtime: number = Runtime.NONE,
  ): void {
    const entry = Buffer.alloc(FILE_ENTRY.bytes);
    entry.writeUInt32LE(state, FILE_ENTRY.state);
    entry.writeUInt32LE(slot, FILE_ENTRY.table);
    entry.writeUInt32LE(table.firstPage, FILE_ENTRY.firstPage);
    entry.writeUInt32LE(table.pageCount, FILE_ENTRY.pageCount);
    entry.writeUInt32LE(table.rulesAt, FILE_ENTRY.rulesAt);
    entry.writeUInt32LE(table.rowsAt, FILE_ENTRY.rowsAt);
    entry.writeUInt32LE(runtime, FILE_ENTRY.runtime);
    entry.writeBigUInt64LE(this.#native.monotonicNs(), FILE_ENTRY.lastUsedNs);
    this.#native.mapUpdate(this.#filesFd, keyBytes(key), entry, BPF_ANY);
  }

  #free({ slot, bytes }: Installed): void {
    this.#bytes -= bytes;
    this.#freeSlots.push(slot);
  }

  /** First the keys, so that no new sample finds the tables, then the tables themselves. */
  async #remove(keys: readonly FileKey[]): Promise<void> {
    const leaving: Installed[] = [];
    for (const key of keys) {
      this.#native.mapDelete(this.#filesFd, keyBytes(key));
      this.#forgetRuntime(key);
      const installed = this.#installed.get(key);
      if (!installed) continue;
      leaving.push(installed);
      // at once, so that no entry is written for a slot that is about to be another file's
      this.#installed.delete(key);
    }
    if (leaving.length === 0) return;
    await this.#native.removeTables(
      this.#tablesFd,
      Uint32Array.from(leaving, ({ slot }) => slot),
    );
    for (const installed of leaving) this.#free(installed);
  }

  /** Not only for this one: the next would have to wait for the kernel again. */
  async #makeRoom(bytes: number): Promise<void> {
    const more = Math.floor(this.#installed.size * SPARE_SHARE);
    await this.#evictDownTo(this.#maxBytes - bytes, this.#maxTables - 1, more);
    if (this.#bytes + bytes > this.#maxBytes)
      throw new Error(`an unwind table does not fit into ${this.#maxBytes} bytes`);
  }

  /** All but that which BPF never asks for again, the least used first. */
  #byLastUse(): TableUse[] {
    return [...this.#installed]
      .filter(([key]) => key !== VDSO)
      .map(([key, { bytes, sinceNs }]) => ({ key, bytes, sinceNs, usedNs: this.#lastUsedNs(key) }))
      .sort((a, b) => Number(a.usedNs - b.usedNs));
  }

  /** `more` leave besides those that have to. */
  async #evictDownTo(bytes: number, count: number, more = 0): Promise<void> {
    const byLastUse = this.#byLastUse();
    let [left, tables] = [this.#bytes, this.#installed.size];
    const needed = byLastUse.findIndex((table) => {
      if (left <= bytes && tables <= count) return true;
      left -= table.bytes;
      tables--;
      return false;
    });
    const victims = byLastUse.slice(0, needed < 0 ? undefined : needed + more).map(({ key }) => key);
    this.stats.evicted += victims.length;
    await this.#remove(victims);
  }
}

const VDSO = toKey(BigInt(EF_VDSO_KEY));
