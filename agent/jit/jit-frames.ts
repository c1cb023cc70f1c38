/**
 * Frames in executable memory that no file backs. Each belongs to one execution of a process: at the same address
 * another process has something else, and so has this one after an exec.
 */

import { LRUCache } from 'lru-cache';
import { noJitCodeStats } from '../../common/jit/jit-code.ts';
import { withTimeout } from '../base/with-timeout.ts';
import { createBootClock } from '../processes/boot-clock.ts';
import { ForeignFiles } from '../processes/foreign-files.ts';
import type { ProcessIdentity } from '../records/records.ts';
import type { Frame } from '../traces/frame.ts';
import { type JitContext, JitProcess, type JitStats } from './jit-process.ts';

/** Executions followed at a time; each holds up to two open files. */
const MAX_PROCESSES = 128;
const MAX_BYTES = 16 << 20;
/** A report does not wait longer for names; they are in the next one then. */
const MAX_WAIT_MS = 2000;

export interface JitFramesOptions {
  proc?: string;
  files?: ForeignFiles;
  /** Is told of each address once, until frames are forgotten. */
  onAddress?: (process: ProcessIdentity, address: number) => void;
  /** Milliseconds, for tests. */
  nowMs?: () => number;
}

export class JitFrames {
  readonly stats: JitStats = {
    processes: 0,
    perfMaps: 0,
    jitDumps: 0,
    registered: 0,
    ...noJitCodeStats(),
    named: 0,
    renamed: 0,
    notOwned: 0,
    notRegular: 0,
    outdated: 0,
    tooLong: 0,
    evicted: 0,
    late: 0,
  };
  readonly #context: JitContext;
  readonly #onAddress: JitFramesOptions['onAddress'];
  readonly #byPid: LRUCache<number, JitProcess>;
  /** Gone, replaced by an exec, or one too many: updated once more and closed. */
  #leaving: JitProcess[] = [];
  #updating: Promise<void> | undefined;
  #count = 0;

  constructor(options: JitFramesOptions = {}) {
    const proc = options.proc ?? '/proc';
    this.#onAddress = options.onAddress;
    const clock = createBootClock(proc);
    this.#context = {
      files: options.files ?? new ForeignFiles({ proc }),
      proc,
      stats: this.stats,
      toUnixMs: (boottimeNs) => Number(clock.toUnixNanos(boottimeNs) / 1_000_000n),
      nowMs: options.nowMs ?? (() => performance.now()),
    };
    this.#byPid = new LRUCache({
      max: MAX_PROCESSES,
      dispose: (process, _pid, reason) => {
        if (reason === 'evict') this.stats.evicted++;
        this.#leaving.push(process);
      },
    });
  }

  /** Frames made since the last {@link forgetFrames}. */
  get count(): number {
    return this.#count;
  }

  /** The same object each time; {@link symbolizeFrames} completes it in place, and again where its code was replaced. */
  frameOf(identity: ProcessIdentity, address: number): Frame {
    let process = this.#byPid.get(identity.pid);
    if (!process || !isSame(process.identity, identity)) {
      process = new JitProcess(identity, this.#context);
      this.#byPid.set(identity.pid, process);
      // what it has open survives it, so its files are opened while it lives
      // where that fails, the next report says so
      this.#update().catch(() => {});
    }
    const known = process.frameCount;
    const frame = process.frameOf(address);
    if (process.frameCount > known) {
      this.#count++;
      this.#onAddress?.(identity, address);
    }
    return frame;
  }

  /** Resolves when all names are there that can be had, or when that takes too long. */
  async symbolizeFrames(): Promise<void> {
    if (this.#byPid.size === 0 && this.#leaving.length === 0) return;
    // one under way may have passed by the frames that came last
    const all = (this.#updating ?? Promise.resolve()).then(() => this.#update()).then(() => true);
    if (!(await withTimeout(MAX_WAIT_MS, all))) this.stats.late++;
  }

  /** The process has ended: its files are read once more. */
  onExit(identity: ProcessIdentity): void {
    const process = this.#byPid.get(identity.pid);
    if (process && isSame(process.identity, identity)) this.#byPid.delete(identity.pid);
  }

  /** Forgets frames, not what is known of processes. */
  forgetFrames(): void {
    for (const process of this.#byPid.values()) process.forgetFrames();
    this.#count = 0;
  }

  async stop(): Promise<void> {
    await this.symbolizeFrames();
    this.#byPid.clear();
    for (const process of this.#leaving) process.close();
    this.#leaving = [];
  }

  /** Process by process: one whose files do not answer holds up the others for a second, and is left alone then. */
  #update(): Promise<void> {
    this.#updating ??= this.#updateAll().finally(() => {
      this.#updating = undefined;
    });
    return this.#updating;
  }

  async #updateAll(): Promise<void> {
    // let frames gather that come with the first one
    await new Promise(setImmediate);
    for (const process of [...this.#byPid.values()]) await process.update();
    for (const process of this.#leaving.splice(0)) {
      await process.update();
      process.close();
    }
    this.#shrink();
  }

  /** The ones that were not sampled for longest go first. */
  #shrink(): void {
    let bytes = 0;
    for (const process of this.#byPid.values()) bytes += process.byteLength;
    while (bytes > MAX_BYTES) bytes -= this.#byPid.pop()!.byteLength;
  }
}

const isSame = (a: ProcessIdentity, b: ProcessIdentity): boolean =>
  a.pid === b.pid && a.execId === b.execId && a.startBoottimeNs === b.startBoottimeNs;
