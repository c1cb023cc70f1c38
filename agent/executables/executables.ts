/**
 * Executables: opens what BPF reports, has its table made and installed, and names its addresses.
 *
 * A file event goes through three steps. Opening comes first and at once, because the process may be about to
 * end; then the file waits, open, for the one worker that makes tables; then the table goes to the kernel, and before it
 * what a language runtime in the file needs there. Each step is bounded. BPF reports a file that does not get through again
 * after a while.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { FileKey } from '../../common/base/brand.ts';
import type { NamedRange } from '../../common/symbols/source.ts';
import type { DetectedRuntime } from '../interpreters/contract.ts';
import { ForeignFiles } from '../processes/foreign-files.ts';
import { OWN_VIEW, RootViews } from '../processes/root-views.ts';
import type { FileRecord } from '../records/records.ts';
import { mayHoldRuntime } from '../runtimes/registry.ts';
import { TableBuilder, type TableResult } from '../stack-deltas/table/table-builder.ts';
import type { Debuginfod } from '../symbolizer/debuginfod/debuginfod.ts';
import { SymbolNames, UNKNOWN } from '../symbolizer/service/symbol-names.ts';
import type { SymbolDetail } from '../symbolizer/worker/messages.ts';
import type { WorkerPool } from '../workers/worker-pool.ts';
import { BuildQueue } from './build-queue.ts';
import { ExecutableStates } from './executable-states.ts';
import { type Executable, type FilePlace, locateOffset, placesOf } from './files/executable.ts';
import { closeKept, type KeptFile, KeptFiles } from './files/kept-files.ts';
import { MappedImages } from './files/mapped-image.ts';
import {
  type FileIdentity,
  isSameFile,
  type OpenedFile,
  type OpenFailure,
  openRecordedFile,
} from './files/open-file.ts';
import { readFileId } from './files/read-file-id.ts';
import { readVdso } from './files/vdso.ts';
import { KnownExecutables } from './known-executables.ts';
import { MAX_OPENS_WAITING, OpenQueue } from './open-queue.ts';
import { TableInstaller } from './table-installer.ts';
import type { TableSink } from './table-sink.ts';

export interface ExecutablesOptions {
  tables: TableSink;
  /** How much is told of native code; everything by default. */
  symbols?: SymbolDetail;
  /** Processes that read the executables. */
  workers: WorkerPool;
  /** Fetches debug information that is missing on this machine; nothing is fetched by default. */
  debuginfod?: Debuginfod | undefined;
  /** More is known of a file now: what was resolved before may be asked for again. */
  onBetterNames?: (key: FileKey) => void;
  /** A language runtime was found in a file. */
  onRuntime?: (runtime: DetectedRuntime, path: string) => void;
  /** The language runtime of a file can't be unwound; `problem` says why, for people. */
  onUnsupportedRuntime?: (problem: string, path: string) => void;
  /** Resolves paths as the processes see them. */
  views?: RootViews;
  /** Opens executables. */
  files?: ForeignFiles;
  proc?: string;
  maxExecutables?: number;
  /** First wait before BPF may report a file again that could not be opened; doubles up to a minute. */
  retryMs?: number;
}

const DEFAULT_MAX_EXECUTABLES = 8192;
const MAX_FILES_WAITING = 256;
const MAX_KEPT_FILES = 128;
const KEPT_IDLE_MS = 60_000;
const SETTLED_LOOK_MS = 5;
/** A table that is asked for again this soon was evicted at once: the budget is too small for what runs. */
const THRASHING_MS = 10_000;

/** The process may live on, and have it mapped. */
const MAY_BE_MAPPED: ReadonlySet<OpenFailure> = new Set(['gone', 'changed', 'denied', 'failed']);

export class Executables {
  readonly #stats = {
    reported: 0,
    opened: 0,
    /** Executables that can't be opened, and were copied out of the memory of a process. */
    copied: 0,
    evicted: 0,
  };
  readonly names: SymbolNames;
  readonly #tables: TableSink;
  readonly #proc: string;
  readonly #views: RootViews;
  readonly #files: ForeignFiles;
  readonly #images: MappedImages;
  readonly #builder: TableBuilder;
  readonly #installer: TableInstaller;
  readonly #states: ExecutableStates;
  readonly #known: KnownExecutables;
  readonly #kept = new KeptFiles({ max: MAX_KEPT_FILES, idleMs: KEPT_IDLE_MS });
  readonly #opens = new OpenQueue((record, executable) => this.#open(record, executable));
  #filesWaiting = 0;
  #looksWaiting = 0;
  readonly #building = new BuildQueue();
  #stopped = false;

  constructor(options: ExecutablesOptions) {
    const { tables, workers } = options;
    this.#tables = tables;
    this.#proc = options.proc ?? '/proc';
    this.#views = options.views ?? new RootViews({ proc: this.#proc });
    this.#files = options.files ?? new ForeignFiles({ proc: this.#proc });
    this.#images = new MappedImages(this.#files);
    this.#builder = new TableBuilder(workers);
    this.#known = new KnownExecutables(options.maxExecutables ?? DEFAULT_MAX_EXECUTABLES, (key) => {
      this.#stats.evicted++;
      this.#kept.delete(key);
      this.#states.forget(key);
    });
    this.#states = new ExecutableStates({
      tables,
      penalties: workers.penalties,
      retryMs: options.retryMs ?? 1000,
      isCurrent: (executable) => this.#known.isCurrent(executable),
    });
    this.#installer = new TableInstaller({
      tables,
      states: this.#states,
      onRuntime: options.onRuntime ?? (() => {}),
      onUnsupportedRuntime: options.onUnsupportedRuntime ?? (() => {}),
    });
    this.names = new SymbolNames({
      kept: this.#kept,
      views: this.#views,
      files: this.#files,
      images: this.#images,
      detail: options.symbols ?? 'full',
      workers: options.workers,
      debuginfod: options.debuginfod,
      onBetterNames: options.onBetterNames ?? (() => {}),
    });
  }

  /** What was done, and failures by reason. */
  get stats() {
    return { ...this.#stats, ...this.#installer.stats, failures: this.#states.failures };
  }

  /** As `stats` with one key each, and counters of tables on disk. */
  get counters(): Record<string, number> {
    const { failures, ...stats } = this.stats;
    const failed = Object.entries(failures).map(([reason, count]) => [`failed.${reason}`, count]);
    return { ...stats, ...Object.fromEntries(failed), ...this.#builder.stats, learning: this.#learning };
  }

  get count(): number {
    return this.#known.size;
  }

  /** Files whose tables are still to be made: stacks through them are cut until then. */
  get #learning(): number {
    return this.#filesWaiting + this.#opens.size;
  }

  get(key: FileKey): Executable | undefined {
    return this.#known.get(key);
  }

  /** All executables that were reported and not evicted. */
  all(): Executable[] {
    return this.#known.all();
  }

  /** Takes a file event; what comes of it is seen in the state of the executable and in `stats`. */
  onFile(record: FileRecord): void {
    if (this.#stopped) return;
    this.#stats.reported++;
    const known = this.#known.get(record.key);
    if (known?.state === 'opening' || known?.state === 'reading') return;
    const executable = known ?? this.#known.add(record);
    this.#states.isReported(record.key);
    if (performance.now() - executable.builtAt < THRASHING_MS) {
      this.#states.fail(executable, 'thrashing', 'its table was evicted as soon as it was made');
      return;
    }
    executable.state = 'opening';
    if (!this.#opens.add(record, executable)) {
      this.#states.fail(executable, 'overloaded', `${MAX_OPENS_WAITING} files wait to be opened`);
    }
  }

  /** Key of a known file, by what stat() shows. */
  keyOf(identity: FileIdentity): FileKey | undefined {
    return this.#known.keyOf(identity);
  }

  /** Makes and installs the table of an ELF image that is not a file, whose addresses nobody names; false where it has none. */
  async installImage(key: FileKey, image: Uint8Array): Promise<boolean> {
    const result = await this.#builder.buildFromBytes(image);
    if (this.#stopped || result.kind !== 'built' || !result.executable.table) return false;
    try {
      await this.#tables.install(key, result.executable.table);
      return true;
    } catch {
      this.#installer.stats.installFailed++;
      return false;
    }
  }

  /** Resolves when no file that was reported waits for its table, or after `limitMs`. */
  settled(limitMs: number): Promise<void> {
    return this.#untilNone(() => this.#filesWaiting, limitMs);
  }

  /** Resolves when of all files that were reported it is known whether they hold a runtime, or after `limitMs`. */
  runtimesKnown(limitMs: number): Promise<void> {
    return this.#untilNone(() => this.#looksWaiting, limitMs);
  }

  async #untilNone(waiting: () => number, limitMs: number): Promise<void> {
    const end = performance.now() + limitMs;
    while (this.#opens.size + waiting() > 0 && performance.now() < end) await sleep(SETTLED_LOOK_MS);
  }

  /** Mapping and ELF address of a file offset; undefined while the file is not read, or never will be. */
  locate(key: FileKey, fileOffset: number): FilePlace | undefined {
    const executable = this.get(key);
    return executable && locateOffset(executable, fileOffset);
  }

  /** Path of the file, '' if nothing is known of the key. */
  nameOf(key: FileKey): string {
    return this.get(key)?.path ?? '';
  }

  /** True if a process can still map it. */
  async isThere(key: FileKey): Promise<boolean> {
    const executable = this.#known.peek(key);
    if (!executable) return false;
    for (const place of placesOf(executable))
      if (await isSameFile(place, executable.identity, this.#files)) return true;
    return false;
  }

  /** The functions at ELF virtual addresses, as processes of a view have them; none where nothing covers one. Never rejects. */
  async resolve(key: FileKey, addresses: number[], view = OWN_VIEW): Promise<NamedRange[]> {
    const executable = this.get(key);
    if (!executable || executable.fileId === '') return addresses.map(() => UNKNOWN);
    return this.names.resolve(executable, addresses, view);
  }

  /** Makes and installs the table of the vDSO; false where this kernel has none, or it can't be read. */
  async loadVdso(): Promise<boolean> {
    const bytes = readVdso(this.#proc);
    if (!bytes) return false;
    const executable = this.#known.addVdso(bytes);
    await this.#install(executable, await this.#builder.buildFromBytes(bytes));
    return executable.state === 'ready';
  }

  /** Ends what is under way and closes every file. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#opens.clear();
    this.#states.stop();
    await Promise.all([this.#builder.close(), this.names.stop()]);
    await this.#building.drained();
    this.#kept.closeAll();
    this.#views.closeAll();
  }

  async #open(record: FileRecord, executable: Executable): Promise<void> {
    const opened = await openRecordedFile(record, this.#files, this.#proc);
    const file = opened.kind === 'opened' ? { fd: opened.fd } : await this.#copy(record, executable, opened);
    if (!file) return;
    // its process may be gone when its symbols are read
    this.#views.note(record.pid);
    if (this.#stopped || this.#filesWaiting >= MAX_FILES_WAITING) {
      closeKept(file);
      if (this.#stopped) return;
      this.#states.fail(executable, 'overloaded', `${MAX_FILES_WAITING} open files wait for their tables`);
      return;
    }
    this.#stats.opened++;
    if (opened.kind === 'opened') executable.openedPath = opened.path;
    executable.copiedFrom = opened.kind === 'opened' ? undefined : record;
    executable.state = 'reading';
    this.#filesWaiting++;
    if (mayHoldRuntime(executable.name)) {
      this.#looksWaiting++;
      this.#building.addLook(() => this.#look(executable, file).finally(() => this.#looksWaiting--));
    }
    this.#building.add(executable.size, () =>
      this.#build(executable, file)
        // BPF's maps can't be written: that costs this file, and not those that wait behind it
        .catch((error: Error) => this.#states.fail(executable, 'failed', error.message))
        .finally(() => {
          this.#filesWaiting--;
          if (this.#known.isCurrent(executable) && !this.#stopped) this.#kept.put(executable.key, file);
          else closeKept(file);
        }),
    );
  }

  async #copy(
    record: FileRecord,
    executable: Executable,
    opened: Exclude<OpenedFile, { kind: 'opened' }>,
  ): Promise<KeptFile | undefined> {
    const file = MAY_BE_MAPPED.has(opened.kind) ? await this.#images.copy(record) : undefined;
    if (file) this.#stats.copied++;
    else this.#states.fail(executable, opened.kind, opened.detail);
    return file;
  }

  async #look(executable: Executable, { fd }: KeptFile): Promise<void> {
    if (this.#stopped || (await this.#identify(executable, fd)) !== '') return;
    const place = { isOwn: false, path: executable.path };
    await this.#builder.look(fd, place, (runtime) => this.#announce(executable, runtime));
  }

  /** Why it could not be identified, '' where it could. */
  async #identify(executable: Executable, fd: number): Promise<string> {
    if (executable.fileId !== '') return '';
    try {
      executable.fileId = await readFileId(fd, executable.size);
      return '';
    } catch (error) {
      return (error as Error).message;
    }
  }

  async #build(executable: Executable, { fd }: KeptFile): Promise<void> {
    if (this.#stopped) return;
    const problem = await this.#identify(executable, fd);
    if (problem !== '') {
      this.#states.fail(executable, 'truncated', problem);
      return;
    }
    const { path, identity } = executable;
    const isOwn =
      path.startsWith('/') && !executable.copiedFrom && (await isSameFile(path, identity, this.#files));
    const result = await this.#builder.buildFromFd(
      fd,
      { isOwn, path, isCopy: executable.copiedFrom !== undefined },
      (runtime) => this.#announce(executable, runtime),
    );
    if (result.kind === 'crashed' && result.failure) this.#states.penalise(executable, result.failure);
    else await this.#install(executable, result);
  }

  #announce(executable: Executable, runtime: DetectedRuntime): void {
    if (this.#isAwaited(executable)) this.#installer.announce(executable, runtime);
  }

  async #install(executable: Executable, result: TableResult): Promise<void> {
    if (this.#isAwaited(executable)) await this.#installer.install(executable, result);
  }

  #isAwaited(executable: Executable): boolean {
    return !this.#stopped && this.#known.isCurrent(executable);
  }
}
