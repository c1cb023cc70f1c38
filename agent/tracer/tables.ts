/** Unwind tables in the kernel: one array of blocks a file, found by file key; the least used leave first. */
import type { FileKey } from '../../common/base/brand.ts';
import type { DetectedRuntime, RuntimePlugin } from '../interpreters/contract.ts';
import { RUNTIMES } from '../interpreters/registry.ts';
import type { Native, NativeBpfObject } from './native.ts';
import { EF_VDSO_KEY, FILE_ENTRY, FileState, Runtime } from './records.gen.ts';
import { toKey } from './records.ts';
import type { Samplers } from './samplers.ts';

/** What the stack-delta packer makes: see the layout in ebpf/records.h. */
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
/** Long enough for what runs now and then; reading a file again costs some milliseconds. */
const MAX_IDLE_NS = 180_000_000_000n;

interface Installed {
  slot: number;
  bytes: number;
}

/** Of the addon. */
type TableMaps = Pick<
  Native,
  'installTable' | 'removeTable' | 'mapUpdate' | 'mapDelete' | 'mapLookup' | 'monotonicNs'
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
    limits: { maxTables: number; maxBytes: number },
  ) {
    this.#native = native;
    this.#filesFd = object.mapFd('files');
    this.#tablesFd = object.mapFd('tables');
    this.#samplers = samplers;
    this.#maxTables = limits.maxTables;
    this.#maxBytes = limits.maxBytes;
  }

  /** Kernel memory of all tables, bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  get count(): number {
    return this.#installed.size;
  }

  /** Publishes a file's table; from then on every process that maps the file unwinds through it. */
  install(key: FileKey, table: TableImage, runtime?: DetectedRuntime): Promise<void> {
    return this.#inTurn(() => this.#install(key, table, runtime));
  }

  async #install(key: FileKey, table: TableImage, runtime: DetectedRuntime | undefined): Promise<void> {
    if (this.#installed.has(key)) await this.#remove(key);
    while (this.#installed.size > 0 && this.#isFull(table.image.length)) await this.#evictLeastUsed();
    const slot = this.#freeSlots.pop() ?? this.#nextSlot++;
    const installed: Installed = { slot, bytes: table.image.length };
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
      this.#free(installed);
      this.markNoTable(key);
      throw error;
    }
    // not awaited: loading takes a while, and other files wait for their tables
    if (runtime && !isPublished) void this.#installRuntime(key, table, runtime);
  }

  /**
   * A runtime was found in a file whose table is still being made: its frames are unwound from now on, and stacks end at
   * the first native frame of the file.
   */
  async announce(key: FileKey, runtime: DetectedRuntime): Promise<void> {
    const plugin = pluginOf(runtime);
    if (!plugin || !(await this.#samplers.add(plugin))) return;
    const entry = this.#native.mapLookup(this.#filesFd, keyBytes(key), FILE_ENTRY.bytes);
    if (entry?.readUInt32LE(FILE_ENTRY.state) !== FileState.PENDING) return; // its table was sooner, or it was dropped
    this.#writeWithRuntime(key, { state: FileState.PENDING, slot: 0, table: NO_TABLE }, runtime);
  }

  /** Native frames are unwound already; the runtime's follow when its code is in the kernel. */
  async #installRuntime(key: FileKey, table: TableImage, runtime: DetectedRuntime): Promise<void> {
    const plugin = pluginOf(runtime);
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
    const plugin = runtime && pluginOf(runtime);
    const fd = plugin && this.#samplers.mapFd(plugin);
    if (!plugin || fd === undefined) return false;
    try {
      this.#native.mapUpdate(fd, keyBytes(key), Buffer.from(runtime.entry), BPF_ANY);
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
    return this.#inTurn(() => this.#remove(key));
  }

  /** What all tables may take from now on, bytes; the least used of those beyond leave. */
  async limit(maxBytes: number, isStopping: () => boolean = () => false): Promise<void> {
    this.#maxBytes = maxBytes;
    const isDone = () => isStopping() || this.#bytes <= this.#maxBytes || this.#installed.size <= 1;
    while (!isDone()) await this.#inTurn(async () => (isDone() ? undefined : this.#evictLeastUsed()));
  }

  /** Drops tables that no sample has needed for a while: their files may be gone, and come back if they are not. */
  async dropIdle(isStopping: () => boolean): Promise<void> {
    const before = this.#native.monotonicNs() - MAX_IDLE_NS;
    for (const key of [...this.#installed.keys()]) {
      if (isStopping()) return;
      await this.#inTurn(async () => {
        if (key === VDSO || !this.#installed.has(key) || this.#lastUsedNs(key) >= before) return;
        this.stats.idle++;
        await this.#remove(key);
      });
    }
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

  #forgetRuntime(key: FileKey): void {
    for (const plugin of RUNTIMES) {
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

  /** First the key, so that no new sample finds the table, then the table itself. */
  async #remove(key: FileKey): Promise<void> {
    this.#native.mapDelete(this.#filesFd, keyBytes(key));
    this.#forgetRuntime(key);
    const installed = this.#installed.get(key);
    if (!installed) return;
    // at once, so that no entry is written for a slot that is about to be another file's
    this.#installed.delete(key);
    await this.#native.removeTable(this.#tablesFd, installed.slot);
    this.#free(installed);
  }

  async #evictLeastUsed(): Promise<void> {
    let victim: FileKey | undefined;
    let oldest: bigint | undefined;
    for (const key of this.#installed.keys()) {
      if (key === VDSO) continue;
      const used = this.#lastUsedNs(key);
      if (oldest === undefined || used < oldest) [victim, oldest] = [key, used];
    }
    if (victim === undefined) throw new Error(`an unwind table does not fit into ${this.#maxBytes} bytes`);
    this.stats.evicted++;
    await this.#remove(victim);
  }
}

const pluginOf = ({ runtime }: DetectedRuntime): RuntimePlugin | undefined =>
  RUNTIMES.find(({ name }) => name === runtime);

const VDSO = toKey(BigInt(EF_VDSO_KEY));
