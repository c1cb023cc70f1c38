/**
 * Executables: opens what BPF met, has its table made and installed, and names its addresses.
 *
 * A file event goes through three steps. Opening comes first and at once, because the process may be about to
 * end; then the file waits, open, for the one worker that makes tables; then the table goes to the kernel, and before it
 * what a language runtime in the file needs there. Each step is bounded, and a file that does not get through is reported again by BPF after a while.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { type FileId, type FileKey, toFileKey } from '../../common/base/brand.ts';
import { kernelFileId } from '../../common/symbols/kernel/kernel-file-id.ts';
import type { NamedRange } from '../../common/symbols/source.ts';
import type { DetectedRuntime } from '../interpreters/contract.ts';
import { ForeignFiles } from '../processes/foreign-files.ts';
import { OWN_VIEW, RootViews } from '../processes/root-views.ts';
import type { FileRecord } from '../records/records.ts';
import { mayHoldRuntime } from '../runtimes/registry.ts';
import { isVerified } from '../runtimes/verified.ts';
import { TableBuilder, type TableResult } from '../stack-deltas/table/table-builder.ts';
import type { Debuginfod } from '../symbolizer/debuginfod/debuginfod.ts';
import { SymbolNames, UNKNOWN } from '../symbolizer/service/symbol-names.ts';
import type { SymbolDetail } from '../symbolizer/worker/messages.ts';
import type { TableImage } from '../tracer/tables.ts';
import type { FilePenalties } from '../workers/file-penalties.ts';
import type { WorkerFailure } from '../workers/worker-failure.ts';
import type { WorkerPool } from '../workers/worker-pool.ts';
import { BuildQueue } from './build-queue.ts';
import {
  type Executable,
  type FilePlace,
  loadedSegments,
  locateOffset,
  newExecutable,
  placesOf,
} from './files/executable.ts';
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
import { ForgetQueue } from './forget-queue.ts';

/** Takes finished tables: BPF maps. */
export interface TableSink {
  /** Publishes a file's table; rejects where it does not fit. */
  install(key: FileKey, table: TableImage, runtime?: DetectedRuntime): Promise<void>;
  /** A runtime was found in a file whose table is still being made: its frames are unwound from now on. */
  announce(key: FileKey, runtime: DetectedRuntime): Promise<void>;
  /** The file has nothing to unwind with. */
  markNoTable(key: FileKey): void;
  /** It is shared memory: code in it is taken for code that no file backs. */
  markMemory(key: FileKey): void;
  /** BPF reports the file again when it next meets it. */
  forget(key: FileKey): Promise<void> | void;
}

export interface ExecutablesOptions {
  tables: TableSink;
  /** How much is told of native code; everything by default. */
  symbols?: SymbolDetail;
  /** Their files are read there. */
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

/** ebpf/records.h: EF_VDSO_KEY. */
export const VDSO_KEY = toFileKey('0000000000000001');
export const VDSO_NAME = '[vdso]';

const DEFAULT_MAX_EXECUTABLES = 8192;
/** A dead network mount blocks a thread of libuv's pool; two of the four can be lost to that. */
const MAX_OPENS_AT_ONCE = 2;
const MAX_OPENS_WAITING = 1024;
const MAX_FILES_WAITING = 256;
const MAX_KEPT_FILES = 128;
const KEPT_IDLE_MS = 60_000;
const MAX_FORGETS_WAITING = 4096;
const MAX_RETRY_MS = 60_000;
const SETTLED_LOOK_MS = 5;
/** A table that is asked for again this soon was evicted at once: the budget is too small for what runs. */
const THRASHING_MS = 10_000;

/** The process may live on, and have it mapped. */
const MAY_BE_MAPPED: ReadonlySet<OpenFailure> = new Set(['gone', 'changed', 'denied', 'failed']);

type Failure = OpenFailure | 'overloaded' | 'thrashing' | 'truncated' | 'worker';

export class Executables {
  readonly stats = {
    reported: 0,
    opened: 0,
    /** Executables that can't be opened, and were copied out of the memory of a process. */
    copied: 0,
    installed: 0,
    noTable: 0,
    notElf: 0,
    /** Contradictory, or it took the worker down. */
    broken: 0,
    installFailed: 0,
    badFdes: 0,
    /** With rules of the separate file that has their debug information. */
    separateRules: 0,
    /** Files with a language runtime that is unwound, and such with one that can't be. */
    runtimes: 0,
    runtimesUnsupported: 0,
    /** So damaged that it can't be told whether a language runtime is in them. */
    runtimesUnreadable: 0,
    /** Runtimes that are unwound, in a version that the agent was not tested with. */
    runtimesUnverified: 0,
    evicted: 0,
    failures: {
      gone: 0,
      changed: 0,
      denied: 0,
      unanswered: 0,
      'not-regular': 0,
      failed: 0,
      overloaded: 0,
      thrashing: 0,
      truncated: 0,
      /** Files that took their worker down, or too long. */
      worker: 0,
    } satisfies Record<Failure, number>,
  };
  readonly names: SymbolNames;
  readonly #onRuntime: (runtime: DetectedRuntime, path: string) => void;
  readonly #onUnsupportedRuntime: (problem: string, path: string) => void;
  readonly #tables: TableSink;
  readonly #proc: string;
  readonly #views: RootViews;
  readonly #files: ForeignFiles;
  readonly #images: MappedImages;
  readonly #retryMs: number;
  readonly #builder: TableBuilder;
  readonly #penalties: FilePenalties;
  readonly #byKey: LRUCache<FileKey, Executable>;
  /** Apart from the others: BPF reports it never, so it must not be dropped. */
  #vdso: Executable | undefined;
  readonly #kept = new KeptFiles({ max: MAX_KEPT_FILES, idleMs: KEPT_IDLE_MS });
  readonly #forgets: ForgetQueue;
  readonly #opens: { record: FileRecord; executable: Executable }[] = [];
  #opening = 0;
  #filesWaiting = 0;
  #looksWaiting = 0;
  readonly #building = new BuildQueue();
  #stopped = false;

  constructor(options: ExecutablesOptions) {
    this.#tables = options.tables;
    this.#onRuntime = options.onRuntime ?? (() => {});
    this.#onUnsupportedRuntime = options.onUnsupportedRuntime ?? (() => {});
    this.#proc = options.proc ?? '/proc';
    this.#views = options.views ?? new RootViews({ proc: this.#proc });
    this.#files = options.files ?? new ForeignFiles({ proc: this.#proc });
    this.#images = new MappedImages(this.#files);
    this.#builder = new TableBuilder(options.workers);
    this.#penalties = options.workers.penalties;
    this.#retryMs = options.retryMs ?? 1000;
    this.#forgets = new ForgetQueue((key) => this.#forget(key), MAX_FORGETS_WAITING);
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
    this.#byKey = new LRUCache({
      max: options.maxExecutables ?? DEFAULT_MAX_EXECUTABLES,
      dispose: (_executable, key, reason) => {
        if (reason !== 'evict') return;
        this.stats.evicted++;
        this.#kept.delete(key);
        this.#forget(key);
      },
    });
  }

  /** Counters, with those of tables on disk, and failures by reason. */
  get counters(): Record<string, number> {
    const { failures, ...stats } = this.stats;
    const failed = Object.entries(failures).map(([reason, count]) => [`failed.${reason}`, count]);
    return { ...stats, ...Object.fromEntries(failed), ...this.#builder.stats, learning: this.#learning };
  }

  get count(): number {
    return this.#byKey.size;
  }

  /** Files whose tables are still to be made: stacks through them are cut until then. */
  get #learning(): number {
    return this.#filesWaiting + this.#opens.length + this.#opening;
  }

  get(key: FileKey): Executable | undefined {
    return key === VDSO_KEY ? this.#vdso : this.#byKey.get(key);
  }

  /** All executables that were met and not evicted. */
  all(): Executable[] {
    return [...this.#byKey.values()];
  }

  /** Takes a file event; what comes of it is seen in the state of the executable and in `stats`. */
  onFile(record: FileRecord): void {
    if (this.#stopped) return;
    this.stats.reported++;
    let executable = this.#byKey.get(record.key);
    if (executable?.state === 'opening' || executable?.state === 'reading') return;
    if (!executable) {
      const { inode, size, ctimeNs, device } = record;
      executable = newExecutable(record.key, record.path, { inode, size, ctimeNs, device });
      this.#byKey.set(record.key, executable);
    }
    this.#forgets.delete(record.key);
    if (performance.now() - executable.builtAt < THRASHING_MS) {
      this.#fail(executable, 'thrashing', 'its table was evicted as soon as it was made');
      return;
    }
    if (this.#opens.length >= MAX_OPENS_WAITING) {
      this.#fail(executable, 'overloaded', `${MAX_OPENS_WAITING} files wait to be opened`);
      return;
    }
    executable.state = 'opening';
    this.#opens.push({ record, executable });
    this.#openNext();
  }

  /** Key of a known file, by what stat() tells. */
  keyOf({ inode, size, ctimeNs, device }: FileIdentity): FileKey | undefined {
    for (const { key, identity } of this.#byKey.values()) {
      const isSame = identity.inode === inode && identity.size === size && identity.ctimeNs === ctimeNs;
      if (isSame && identity.device === device) return key;
    }
    return undefined;
  }

  /** Makes and installs the table of an ELF image that is no file, whose addresses nobody names; false where it has none. */
  async installImage(key: FileKey, image: Uint8Array): Promise<boolean> {
    const result = await this.#builder.buildFromBytes(image);
    if (this.#stopped || result.kind !== 'built' || !result.executable.table) return false;
    try {
      await this.#tables.install(key, result.executable.table);
      return true;
    } catch {
      this.stats.installFailed++;
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
    while (this.#opening + this.#opens.length + waiting() > 0 && performance.now() < end)
      await sleep(SETTLED_LOOK_MS);
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
    const executable = this.#byKey.peek(key);
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
    const identity = { inode: 0n, size: BigInt(bytes.length), ctimeNs: 0n, device: 0 };
    const executable: Executable = {
      ...newExecutable(VDSO_KEY, VDSO_NAME, identity),
      bytes,
      state: 'reading',
    };
    this.#vdso = executable;
    await this.#install(executable, await this.#builder.buildFromBytes(bytes));
    return executable.state === 'ready';
  }

  /** Ends what is under way and closes every file. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#opens.length = 0;
    this.#forgets.stop();
    await Promise.all([this.#builder.close(), this.names.stop()]);
    await this.#building.drained();
    this.#kept.closeAll();
    this.#views.closeAll();
  }

  #openNext(): void {
    while (this.#opening < MAX_OPENS_AT_ONCE) {
      const next = this.#opens.shift();
      if (!next) return;
      this.#opening++;
      void this.#open(next.record, next.executable).finally(() => {
        this.#opening--;
        this.#openNext();
      });
    }
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
      this.#fail(executable, 'overloaded', `${MAX_FILES_WAITING} open files wait for their tables`);
      return;
    }
    this.stats.opened++;
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
        .catch((error: Error) => this.#fail(executable, 'failed', error.message))
        .finally(() => {
          this.#filesWaiting--;
          if (this.#isCurrent(executable) && !this.#stopped) this.#kept.put(executable.key, file);
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
    if (file) this.stats.copied++;
    else this.#fail(executable, opened.kind, opened.detail);
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
      this.#fail(executable, 'truncated', problem);
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
    if (result.kind === 'crashed' && result.failure) this.#penalise(executable, result.failure);
    else await this.#install(executable, result);
  }

  /** It is not tried again for a while: until then its code is unwound as that of a file without rules. */
  #penalise(executable: Executable, failure: WorkerFailure): void {
    const { key, path } = executable;
    if (this.#stopped || !this.#isCurrent(executable)) return;
    this.stats.failures.worker++;
    this.#giveUp(executable, 'no-table', failure.message);
    this.#forgets.add(key, this.#penalties.note(key, path, failure));
  }

  #announce(executable: Executable, runtime: DetectedRuntime): void {
    if (this.#stopped || !this.#isCurrent(executable)) return;
    // what is known of processes hangs on the object that was announced
    if (executable.runtime?.version === runtime.version) return;
    executable.runtime = runtime;
    void this.#tables.announce(executable.key, runtime).catch(() => {});
  }

  async #install(executable: Executable, result: TableResult): Promise<void> {
    const { key } = executable;
    if (this.#stopped || !this.#isCurrent(executable)) return;
    executable.builtAt = performance.now();
    executable.failures = 0;
    if (result.kind !== 'built') {
      this.stats[result.kind === 'not-elf' ? 'notElf' : 'broken']++;
      this.#giveUp(executable, 'not-elf', result.reason);
      return;
    }
    const { table, segments, ...built } = result.executable;
    executable.fileId = fileIdOf(executable, built);
    executable.gnuBuildId = built.gnuBuildId;
    executable.goBuildId = built.goBuildId;
    executable.goCode = built.goCode;
    executable.segments = loadedSegments(segments);
    executable.mappings = undefined;
    this.stats.badFdes += built.badFdes;
    if (built.usesSeparate) this.stats.separateRules++;
    if (executable.runtime?.version !== built.runtime?.version) executable.runtime = built.runtime;
    if (built.runtime) this.#noteRuntime(built.runtime, executable.path);
    if (built.runtimeProblem !== '') {
      this.stats.runtimesUnsupported++;
      this.#onUnsupportedRuntime(built.runtimeProblem, executable.path);
    }
    if (built.runtimeDamage !== '') this.stats.runtimesUnreadable++;
    if (!table) {
      this.stats.noTable++;
      this.#giveUp(executable, 'no-table', 'it has no unwind information');
      return;
    }
    try {
      await this.#tables.install(key, table, built.runtime);
      this.stats.installed++;
      executable.state = 'ready';
      executable.reason = '';
    } catch (error) {
      this.stats.installFailed++;
      this.#giveUp(executable, 'no-table', (error as Error).message);
    }
  }

  #noteRuntime(runtime: DetectedRuntime, path: string): void {
    this.stats.runtimes++;
    if (!isVerified(runtime)) this.stats.runtimesUnverified++;
    this.#onRuntime(runtime, path);
  }

  /** False where the bound on executables dropped it meanwhile: then BPF was told to forget it, too. */
  #isCurrent(executable: Executable): boolean {
    return executable === this.#vdso || this.#byKey.peek(executable.key) === executable;
  }

  /** For good: the file will not get any better. */
  #giveUp(executable: Executable, state: 'no-table' | 'not-elf', reason: string): void {
    executable.state = state;
    executable.reason = reason;
    // Memory that processes share or map twice (a memfd, /dev/zero, System V) is a file in no folder. JITs that never
    // have it writable and executable at one address put their code there; a memfd may be a program, too.
    if (state === 'not-elf' && executable.path === '') this.#tables.markMemory(executable.key);
    else this.#tables.markNoTable(executable.key);
  }

  /** For now: BPF reports the file again, and the next process that maps it may still be there. */
  #fail(executable: Executable, failure: Failure, reason: string): void {
    this.stats.failures[failure]++;
    executable.state = 'failed';
    executable.reason = reason;
    const delayMs = Math.min(this.#retryMs * 2 ** executable.failures, MAX_RETRY_MS);
    executable.failures++;
    if (!this.#stopped && this.#isCurrent(executable)) this.#forgets.add(executable.key, delayMs);
  }

  #forget(key: FileKey): void {
    void (async () => this.#tables.forget(key))().catch(() => {});
  }
}

/** A copy lacks the file's end, which the file ID is made of, too: so it gets the ID of an image that is no file. */
const fileIdOf = ({ copiedFrom }: Executable, built: { fileId: string; gnuBuildId: string }): FileId =>
  (copiedFrom && kernelFileId(built.gnuBuildId)) || (built.fileId as FileId);
