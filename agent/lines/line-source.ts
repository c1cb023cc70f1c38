/**
 * Turns places in what runs into places in what was written, as a file says that the process has: a script's source map, an
 * assembly's PDB. Files are read and decoded by a worker, at the first frame, since the process may end soon.
 */

import { LRUCache } from 'lru-cache';
import type { Pid } from '../../common/base/brand.ts';
import { loadNative } from '../base/native.ts';
import { withTimeout } from '../base/with-timeout.ts';
import type { RuntimeFrame } from '../interpreters/contract.ts';
import type { RootViews } from '../processes/root-views.ts';
import type { ProcessIdentity } from '../records/records.ts';
import type { Frame } from '../traces/frame.ts';
import type { FilePenalties } from '../workers/file-penalties.ts';
import type { WorkKind } from '../workers/protocol.ts';
import { RequestBatches } from '../workers/request-batches.ts';
import { WorkerClient } from '../workers/worker-client.ts';
import { WorkerFailure } from '../workers/worker-failure.ts';
import type { WorkerPool } from '../workers/worker-pool.ts';
import type { LineAnswer, LineRequest, NoLines } from './line-request.ts';

/** A file that takes longer says nothing. */
const MAX_CPU_MS = 10_000;
/** On the clock, while others have the CPUs. */
const MAX_WALL_MS = 200_000;
/** A report does not wait longer; the frames are in the next one with their sources. */
const MAX_WAIT_MS = 2000;
const MAX_FILES = 8192;
const MAX_WAITING = 32_768;
/** Files in one request: a thread that is woken for each of them spends more on that than on the file. */
const MAX_BATCH = 64;

/** Lines of frames that ask for their source, of one file. */
interface Asking<Place> {
  key: string;
  pid: Pid;
  execution: number;
  file: string;
  lines: { frame: Frame; index: number; place: Place }[];
}

/** What differs between the kinds of files that tell lines. */
export interface LineKind<Place, Found> {
  work: WorkKind;
  /** What frames lack without such a file, for a person. */
  lacks: string;
  /** Whom to ask about a line as its runtime has it; undefined where nobody knows more. */
  placeOf(line: RuntimeFrame): { file: string; place: Place } | undefined;
  put(frame: Frame, index: number, found: Found): void;
}

export class LineSource<Place, Found> {
  readonly stats = {
    /** Files that were looked at, once a process. */
    files: 0,
    /** Places in them that have a source. */
    places: 0,
    none: 0,
    gone: 0,
    changed: 0,
    refused: 0,
    tooLarge: 0,
    malformed: 0,
    /** Files that took the worker down, or too long. */
    workerFailed: 0,
    /** Files that did so before. */
    leftAlone: 0,
    /** Reports that did not wait longer. */
    late: 0,
    /** Frames that came while too many were waiting. */
    dropped: 0,
  };
  /** Tells programs apart that run under one PID, one after the other. */
  readonly #executions = new LRUCache<Pid, number>({ max: MAX_FILES });
  #lastExecution = 0;
  /** By {@link keyOf}: whether it is known that the file says nothing. */
  readonly #hasNone = new LRUCache<string, boolean>({ max: MAX_FILES });
  readonly #kind: LineKind<Place, Found>;
  readonly #views: RootViews;
  readonly #worker: WorkerClient<LineRequest<Place>[], LineAnswer<Found>[]>;
  readonly #penalties: FilePenalties;
  readonly #batches: RequestBatches<LineRequest<Place>, LineAnswer<Found>>;
  #asking = new Map<string, Asking<Place>>();
  #waiting = 0;
  #updating: Promise<void> | undefined;

  constructor(kind: LineKind<Place, Found>, workers: WorkerPool, views: RootViews) {
    this.#kind = kind;
    this.#views = views;
    this.#worker = new WorkerClient(workers, {
      kind: kind.work,
      maxCpuMs: MAX_CPU_MS,
      maxWaitMs: MAX_WALL_MS,
    });
    this.#batches = new RequestBatches(this.#worker);
    this.#penalties = workers.penalties;
  }

  /** Which files it sees; that of the agent's own root where the process has ended. */
  rootOf(process: ProcessIdentity): number {
    return this.#views.of(process);
  }

  /** Completed in place, at the latest by {@link symbolizeFrames}; `lines` are those of the frame, as the runtime has them. */
  add(pid: Pid, frame: Frame, lines: readonly RuntimeFrame[]): void {
    const execution = this.#executionOf(pid);
    for (const [index, line] of lines.entries()) {
      const asked = this.#kind.placeOf(line);
      if (!asked) continue;
      const { file, place } = asked;
      const key = keyOf(execution, file);
      if (!file.startsWith('/') || this.#hasNone.get(key)) continue;
      if (this.#waiting >= MAX_WAITING) {
        this.stats.dropped++;
        return;
      }
      const asking = this.#asking.get(key) ?? { key, pid, execution, file, lines: [] };
      asking.lines.push({ frame, index, place });
      this.#waiting++;
      this.#asking.set(key, asking);
    }
    if (this.#asking.size > 0) void this.#update();
  }

  /** It ended, or runs another program now. */
  forgetProcess(pid: Pid): void {
    this.#executions.delete(pid);
  }

  /** Resolves when all sources are there that can be had, or when that takes too long. */
  async symbolizeFrames(): Promise<void> {
    if (this.#asking.size === 0 && !this.#updating) return;
    const all = this.#update().then(() => true);
    if (!(await withTimeout(MAX_WAIT_MS, all))) this.stats.late++;
  }

  stop(): Promise<void> {
    return this.#worker.stop();
  }

  #executionOf(pid: Pid): number {
    const execution = this.#executions.get(pid) ?? ++this.#lastExecution;
    this.#executions.set(pid, execution);
    return execution;
  }

  #update(): Promise<void> {
    this.#updating ??= this.#updateAll().finally(() => {
      this.#updating = undefined;
    });
    return this.#updating;
  }

  /** Until nobody asks any more. */
  async #updateAll(): Promise<void> {
    // let frames gather that come with the first one
    await new Promise(setImmediate);
    while (this.#asking.size > 0) {
      const batch = [...this.#asking.values()].slice(0, MAX_BATCH);
      for (const { key, lines } of batch) {
        this.#asking.delete(key);
        this.#waiting -= lines.length;
        if (!this.#hasNone.has(key)) this.stats.files++;
      }
      await Promise.all(batch.map((asking) => this.#ask(asking)));
    }
  }

  async #ask(asking: Asking<Place>): Promise<void> {
    // by the file, not the process: it is the same for those that come later
    const root = loadNative().rootIdentity(`/proc/${asking.pid}/root/`);
    const file = `${this.#kind.work} ${root} ${asking.file}`;
    try {
      if (this.#penalties.isLeftAlone(file)) this.stats.leftAlone++;
      else return this.#take(asking, await this.#batches.ask(requestOf(asking)));
    } catch (error) {
      this.stats.workerFailed++;
      if (error instanceof WorkerFailure)
        this.#penalties.note({ key: file, path: asking.file, lacks: this.#kind.lacks }, error);
    }
    this.#hasNone.set(asking.key, true);
  }

  #take({ key, lines }: Asking<Place>, answer: LineAnswer<Found>): void {
    this.#hasNone.set(key, answer.kind !== 'places');
    if (answer.kind === 'places') this.#apply(lines, answer.places);
    else this.stats[counterOf(answer.kind)]++;
  }

  #apply(lines: Asking<Place>['lines'], places: (Found | undefined)[]): void {
    for (const [i, { frame, index }] of lines.entries()) {
      const place = places[i];
      if (!place) continue;
      this.stats.places++;
      this.#kind.put(frame, index, place);
      frame.isChanged = true;
    }
  }
}

const keyOf = (execution: number, file: string): string => `${execution} ${file}`;

const counterOf = (kind: NoLines): Exclude<NoLines, 'too-large'> | 'tooLarge' =>
  kind === 'too-large' ? 'tooLarge' : kind;

const requestOf = <Place>({ pid, execution, file, lines }: Asking<Place>): LineRequest<Place> => ({
  pid,
  execution,
  file,
  places: lines.map(({ place }) => place),
});
