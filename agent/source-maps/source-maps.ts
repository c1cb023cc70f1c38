/**
 * Turns places in scripts into places in the sources that they were made from, where there is a source map. Files
 * are read and decoded by a worker, at the first frame of a script, since its process may end soon.
 */

import { LRUCache } from 'lru-cache';
import type { Pid } from '../../common/base/brand.ts';
import { loadNative } from '../base/native.ts';
import { withTimeout } from '../base/with-timeout.ts';
import type { RootViews } from '../processes/root-views.ts';
import type { ProcessIdentity } from '../records/records.ts';
import type { Frame, FrameLine } from '../traces/frame.ts';
import type { FilePenalties } from '../workers/file-penalties.ts';
import { RequestBatches } from '../workers/request-batches.ts';
import { WorkerClient } from '../workers/worker-client.ts';
import { WorkerFailure } from '../workers/worker-failure.ts';
import type { WorkerPool } from '../workers/worker-pool.ts';
import type { OriginalPlace } from './script-map.ts';
import type { NoMap, SourceMapAnswer, SourceMapRequest } from './source-map-service.ts';

/** A script whose map takes longer has none. */
const MAX_CPU_MS = 10_000;
/** On the clock, while others have the CPUs. */
const MAX_WALL_MS = 200_000;
/** A report does not wait longer; the frames are in the next one with their sources. */
const MAX_WAIT_MS = 2000;
const MAX_SCRIPTS = 8192;
const MAX_WAITING = 32_768;
/** Scripts in one request: a thread that is woken for each of them spends more on that than on the script. */
const MAX_BATCH = 64;

/** Lines of frames that ask for their source, of one script. */
interface Asking {
  key: string;
  pid: Pid;
  execution: number;
  file: string;
  lines: { frame: Frame; index: number }[];
}

export class SourceMaps {
  readonly stats = {
    /** Scripts that were looked at, once a process. */
    scripts: 0,
    /** Places in them that have a source. */
    places: 0,
    none: 0,
    gone: 0,
    changed: 0,
    refused: 0,
    tooLarge: 0,
    malformed: 0,
    /** Scripts that took the worker down, or too long. */
    workerFailed: 0,
    /** Scripts that did so before. */
    leftAlone: 0,
    /** Reports that did not wait longer. */
    late: 0,
    /** Frames that came while too many were waiting. */
    dropped: 0,
  };
  /** Tells programs apart that run under one PID, one after the other. */
  readonly #executions = new LRUCache<Pid, number>({ max: MAX_SCRIPTS });
  #lastExecution = 0;
  /** Scripts by {@link keyOf}: whether it is known that there is no map. */
  readonly #hasNone = new LRUCache<string, boolean>({ max: MAX_SCRIPTS });
  readonly #views: RootViews;
  readonly #worker: WorkerClient<SourceMapRequest[], SourceMapAnswer[]>;
  readonly #penalties: FilePenalties;
  readonly #batches: RequestBatches<SourceMapRequest, SourceMapAnswer>;
  #asking = new Map<string, Asking>();
  #waiting = 0;
  #updating: Promise<void> | undefined;

  constructor(workers: WorkerPool, views: RootViews) {
    this.#views = views;
    this.#worker = new WorkerClient(workers, {
      kind: 'source-map',
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

  /** Completed in place, at the latest by {@link symbolizeFrames}. */
  add(pid: Pid, frame: Frame): void {
    const execution = this.#executionOf(pid);
    for (const [index, { file, line }] of frame.lines.entries()) {
      const key = keyOf(execution, file);
      if (line === 0 || !file.startsWith('/') || this.#hasNone.get(key)) continue;
      if (this.#waiting >= MAX_WAITING) {
        this.stats.dropped++;
        return;
      }
      const asking = this.#asking.get(key) ?? { key, pid, execution, file, lines: [] };
      asking.lines.push({ frame, index });
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
        if (!this.#hasNone.has(key)) this.stats.scripts++;
      }
      await Promise.all(batch.map((asking) => this.#ask(asking)));
    }
  }

  async #ask(asking: Asking): Promise<void> {
    // by the file, not the process: it is the same for those that come later
    const root = loadNative().rootIdentity(`/proc/${asking.pid}/root/`);
    const file = `source map ${root} ${asking.file}`;
    try {
      if (this.#penalties.isLeftAlone(file)) this.stats.leftAlone++;
      else return this.#take(asking, await this.#batches.ask(requestOf(asking)));
    } catch (error) {
      this.stats.workerFailed++;
      if (error instanceof WorkerFailure) this.#penalties.note(file, asking.file, error);
    }
    this.#hasNone.set(asking.key, true);
  }

  #take({ key, lines }: Asking, answer: SourceMapAnswer): void {
    this.#hasNone.set(key, answer.kind !== 'places');
    if (answer.kind === 'places') this.#apply(lines, answer.places);
    else this.stats[counterOf(answer.kind)]++;
  }

  #apply(lines: Asking['lines'], places: (OriginalPlace | undefined)[]): void {
    for (const [i, { frame, index }] of lines.entries()) {
      const place = places[i];
      if (!place) continue;
      this.stats.places++;
      const before = frame.lines[index]!;
      const { name, ...rest } = place;
      frame.lines[index] = { ...rest, function: name, systemName: '' };
      frame.isChanged = true;
      frame.generated = frame.generated ? `${frame.generated}, ${textOf(before)}` : textOf(before);
    }
  }
}

const keyOf = (execution: number, file: string): string => `${execution} ${file}`;

const textOf = ({ file, line, column }: FrameLine): string => `${file}:${line}:${column}`;

const counterOf = (kind: NoMap): Exclude<NoMap, 'too-large'> | 'tooLarge' =>
  kind === 'too-large' ? 'tooLarge' : kind;

function requestOf({ pid, execution, file, lines }: Asking): SourceMapRequest {
  const places = lines.map(({ frame, index }) => {
    const { function: name, line, column, startLine = 0, startColumn = 0 } = frame.lines[index]!;
    return { name, line, column, startLine, startColumn };
  });
  return { pid, execution, file, places };
}
