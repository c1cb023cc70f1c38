/** Names of native addresses: asks the symbol worker, and gives it the file when it needs one. */

import type { FileKey } from '../../../common/base/brand.ts';
import type { NamedRange } from '../../../common/symbols/source.ts';
import { type Executable, placesOf } from '../../executables/files/executable.ts';
import { closeKept, type KeptFile, type KeptFiles } from '../../executables/files/kept-files.ts';
import type { MappedImages } from '../../executables/files/mapped-image.ts';
import { isSameFile, openVerified } from '../../executables/files/open-file.ts';
import type { ForeignFiles } from '../../processes/foreign-files.ts';
import { OWN_VIEW, type RootViews } from '../../processes/root-views.ts';
import type { FilePenalties } from '../../workers/file-penalties.ts';
import { RequestBatches } from '../../workers/request-batches.ts';
import { WorkerClient } from '../../workers/worker-client.ts';
import { WorkerFailure } from '../../workers/worker-failure.ts';
import type { WorkerPool } from '../../workers/worker-pool.ts';
import type { Debuginfod } from '../debuginfod/debuginfod.ts';
import type { SymbolAnswer, SymbolDetail, SymbolRequest } from '../worker/messages.ts';
import type { RootRequest } from '../worker/open-files.ts';

const MAX_CPU_MS = 30_000;
/** Profiles wait for names: on a machine that has no CPU to spare it is better to see code without names than nothing. */
const MAX_WAIT_MS = 30_000;
/** What was at a path is believed for so long: each interval has new addresses of the same files. */
const PLACE_MS = 30_000;
/** It could not be looked up. */
export const UNKNOWN: NamedRange = { frames: [], start: 0, end: 0 };

export interface SymbolNamesOptions {
  kept: KeptFiles;
  /** Resolves paths as the processes see them. */
  views: RootViews;
  /** Opens the executables again. */
  files: ForeignFiles;
  /** Copies executables that can't be opened. */
  images: MappedImages;
  detail: SymbolDetail;
  workers: WorkerPool;
  /** Fetches debug information that is missing on this machine. */
  debuginfod: Debuginfod | undefined;
  /** More is known of a file now: what was resolved before may be asked for again. */
  onBetterNames: (key: FileKey) => void;
}

export class SymbolNames {
  readonly stats = {
    asked: 0,
    named: 0,
    /** Addresses that an earlier run knew. */
    fromCache: 0,
    /** Addresses of files that could not be opened again. */
    fileGone: 0,
    /** Addresses of files without readable symbol tables. */
    unreadable: 0,
    /** Addresses of files that took the worker down, or too long. */
    workerFailed: 0,
    /** Other files that executables named for their symbols. */
    debugFilesOpened: 0,
    /** Debug files that are not regular files, that somebody else can change, or that the executable's owner may not read. */
    debugFilesRefused: 0,
    /** Compressed symbol tables (.gnu_debugdata) that can't be read, or exceed a limit. */
    miniDebugInfoDamaged: 0,
    /** Units, tables and sections of DWARF that are broken or exceed a limit, as compressed ones that get too large. */
    dwarfDamaged: 0,
  };
  readonly #kept: KeptFiles;
  readonly #views: RootViews;
  readonly #files: ForeignFiles;
  readonly #images: MappedImages;
  readonly #detail: SymbolDetail;
  readonly #worker: WorkerClient<SymbolRequest[], SymbolAnswer[]>;
  readonly #batches: RequestBatches<SymbolRequest, SymbolAnswer>;
  readonly #penalties: FilePenalties;
  readonly #debuginfod: Debuginfod | undefined;
  /** Paths of fetched debug files by build ID, for executables that have any. */
  readonly #fetched = new WeakMap<Executable, Record<string, string>>();
  /** Executables that were found at their own paths, and until when that is believed. */
  readonly #inPlaceUntil = new WeakMap<Executable, number>();
  readonly #onBetterNames: (key: FileKey) => void;

  constructor({
    kept,
    views,
    files,
    images,
    detail,
    workers,
    debuginfod,
    onBetterNames,
  }: SymbolNamesOptions) {
    this.#kept = kept;
    this.#views = views;
    this.#files = files;
    this.#images = images;
    this.#detail = detail;
    this.#debuginfod = debuginfod;
    this.#penalties = workers.penalties;
    this.#onBetterNames = onBetterNames;
    this.#worker = new WorkerClient(workers, {
      kind: 'symbols',
      maxCpuMs: MAX_CPU_MS,
      maxWaitMs: MAX_WAIT_MS,
    });
    this.#batches = new RequestBatches(this.#worker);
  }

  /** The functions at ELF virtual addresses, as processes of a view have them; none where nothing covers one. Never rejects. */
  async resolve(executable: Executable, addresses: number[], view = OWN_VIEW): Promise<NamedRange[]> {
    if (this.#detail === 'off') return addresses.map(() => UNKNOWN);
    this.stats.asked += addresses.length;
    const names = await this.#ask(executable, addresses, view);
    return names ?? addresses.map(() => UNKNOWN);
  }

  async stop(): Promise<void> {
    await Promise.all([this.#worker.stop(), this.#debuginfod?.stop()]);
  }

  async #ask(executable: Executable, addresses: number[], view: number): Promise<NamedRange[] | undefined> {
    if (performance.now() < executable.symbolsBrokenUntil) {
      this.stats.workerFailed += addresses.length;
      return undefined;
    }
    try {
      const answer = await this.#inRoot(executable, view, (root) =>
        this.#request(executable, Float64Array.from(addresses), { view, root }),
      );
      if (answer?.kind === 'names') {
        executable.symbolsRead = true;
        void this.#fetch(executable, answer.debugFiles.missing);
      }
      return this.#read(answer, addresses.length);
    } catch (error) {
      this.#noteFailure(executable, error);
      this.stats.workerFailed += addresses.length;
      return undefined;
    }
  }

  async #fetch(executable: Executable, buildIds: readonly string[]): Promise<void> {
    const known = this.#fetched.get(executable);
    const wanted = buildIds.filter((buildId) => known?.[buildId] === undefined);
    const paths = await Promise.all(wanted.map((buildId) => this.#debuginfod?.find(buildId)));
    const found = wanted.flatMap((buildId, i) => (paths[i] === undefined ? [] : [[buildId, paths[i]]]));
    if (found.length === 0) return;
    this.#fetched.set(executable, { ...this.#fetched.get(executable), ...Object.fromEntries(found) });
    this.#onBetterNames(executable.key);
  }

  /** Notes a failure. An error of the worker is final; a file that took the worker down is tried again. */
  #noteFailure(executable: Executable, error: unknown): void {
    const failure = error instanceof WorkerFailure ? error : undefined;
    const pauseMs = failure
      ? this.#penalties.note(
          { key: `symbols ${executable.key}`, path: executable.path, lacks: 'frames in it have no names' },
          failure,
        )
      : Number.POSITIVE_INFINITY;
    executable.symbolsBrokenUntil = performance.now() + pauseMs;
  }

  #read(answer: SymbolAnswer | undefined, count: number): NamedRange[] | undefined {
    if (!answer || answer.kind === 'need-file') {
      this.stats.fileGone += count;
      return undefined;
    }
    if (answer.kind === 'unreadable') {
      this.stats.unreadable += count;
      return undefined;
    }
    this.stats.fromCache += answer.cached;
    this.stats.debugFilesOpened += answer.debugFiles.opened;
    this.stats.debugFilesRefused += answer.debugFiles.refused;
    this.stats.miniDebugInfoDamaged += answer.debugFiles.damaged;
    this.stats.dwarfDamaged += answer.debugFiles.dwarfDamaged;
    for (const { frames } of answer.names) if (frames.length > 0) this.stats.named++;
    return this.#detail === 'full' ? answer.names : answer.names.map(outermost);
  }

  /** In the agent's own root paths lead to what belongs to the file only where it is the file at its own path. */
  async #inRoot<T>(executable: Executable, view: number, use: (root: RootRequest) => Promise<T>): Promise<T> {
    // what a copy names beside it belongs to nobody
    if (executable.copiedFrom) return use(undefined);
    if (view !== OWN_VIEW) return this.#views.use(view, use);
    return use((await this.#isInPlace(executable)) ? 'own' : undefined);
  }

  async #isInPlace(executable: Executable): Promise<boolean> {
    const now = performance.now();
    if (now < (this.#inPlaceUntil.get(executable) ?? 0)) return true;
    const { path, identity } = executable;
    const isInPlace = path.startsWith('/') && (await isSameFile(path, identity, this.#files));
    if (isInPlace) this.#inPlaceUntil.set(executable, now + PLACE_MS);
    return isInPlace;
  }

  /** Undefined where the worker needs the file and the file can't be had any more. */
  async #request(
    executable: Executable,
    addresses: Float64Array,
    from: { view: number; root: RootRequest },
  ): Promise<SymbolAnswer | undefined> {
    const { key, fileId, bytes, path, symbolsRead } = executable;
    const fetched = this.#fetched.get(executable);
    const isCopy = executable.copiedFrom !== undefined;
    const common = { key, fileId, path, ...from, fetched, addresses, ...(isCopy && { isCopy }) };
    const ask = (file: Partial<SymbolRequest>): Promise<SymbolAnswer> => {
      const request = { ...common, ...file };
      return symbolsRead ? this.#batches.ask(request) : this.#batches.askAlone(request);
    };
    if (bytes) return ask({ bytes });
    const kept = await this.#kept.use(key, ({ fd }) => ask({ fd }));
    if (kept) return kept;
    const cached = await ask({});
    if (cached.kind !== 'need-file' || !(await this.#reopen(executable))) return cached;
    return this.#kept.use(key, ({ fd }) => ask({ fd }));
  }

  async #reopen(executable: Executable): Promise<boolean> {
    const { key, identity } = executable;
    if (executable.copiedFrom) {
      const copy = await this.#images.copy(executable.copiedFrom);
      if (copy) this.#keep(key, copy);
      return copy !== undefined;
    }
    for (const place of placesOf(executable)) {
      const opened = await openVerified(place, identity, this.#files);
      if (opened.kind !== 'opened') continue;
      this.#keep(key, { fd: opened.fd });
      return true;
    }
    return false;
  }

  #keep(key: FileKey, file: KeptFile): void {
    if (this.#kept.has(key)) closeKept(file);
    else this.#kept.put(key, file);
  }
}

/** The function alone. */
const outermost = ({ frames, ...range }: NamedRange): NamedRange => ({
  frames: frames.slice(-1).map((frame) => ({ ...frame, file: '', line: 0, column: 0 })),
  ...range,
});
