/**
 * Reads what may never come: memory of other processes, and what /proc makes of it. Behind a page can stand a file server
 * (FUSE, NFS) or a fault handler (userfaultfd) that does not answer. A small process of ours reads instead (addon/reader/):
 * it has 50 ms for each read, and is killed then. The process that it read pays, and the others of its user after a second
 * one: what is asked of them is not read for a while, which doubles.
 */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { LRUCache } from 'lru-cache';
import type { Pid } from '../../common/base/brand.ts';
import { loadNative, type NativeReader } from '../tracer/native.ts';
import { packageRoot } from '../tracer/package-root.ts';

const ETIMEDOUT = -110;
const EAGAIN = -11;
/** There is no reader. */
const EPIPE = -32;
const FIRST_WAIT_MS = 1000;
const MAX_WAIT_MS = 600_000;
const MAX_KNOWN = 4096;
/** Of a user's processes; root's are whoever's. */
const MAX_A_USER = 2;

interface Unresponsive {
  times: number;
  until: number;
}

export interface ForeignReaderOptions {
  proc?: string;
  now?: () => number;
}

export class ForeignReader {
  readonly #stats = {
    reads: 0,
    /** Reads that were not answered in time: a reader was killed for each. */
    timedOut: 0,
    /** Reads that were not tried, of processes (or of their users) that did not answer before. */
    refused: 0,
    /** Reads that were not tried since too many readers wait in the kernel. */
    overloaded: 0,
    /** Reads that failed since there was no reader: it could not be started, or it ended. */
    failed: 0,
  };
  readonly #proc: string;
  readonly #now: () => number;
  readonly #processes = new LRUCache<Pid, Unresponsive>({ max: MAX_KNOWN });
  readonly #users = new LRUCache<number, Unresponsive>({ max: MAX_KNOWN });
  #native: NativeReader | undefined;

  constructor({ proc = '/proc', now = () => performance.now() }: ForeignReaderOptions = {}) {
    this.#proc = proc;
    this.#now = now;
  }

  /** `stuck`: readers that were killed and still wait in the kernel. */
  get stats() {
    return { ...this.#stats, stuck: this.#native?.stuck() ?? 0 };
  }

  /**
   * Bytes that were read into `buffer`, at most 64 KiB; 0 where nothing can be. Within one `session` the process is the
   * one that was opened first.
   */
  readMemory(pid: Pid, address: number, session: number, buffer: Uint8Array): number {
    if (this.#isRefused(pid)) return 0;
    this.#stats.reads++;
    const count = this.#reader.readMemory(pid, address, session, buffer);
    if (count < 0) this.#note(pid, count);
    return Math.max(count, 0);
  }

  /** The begin of a file of its folder in /proc; undefined where it can't be read. */
  readFile(pid: Pid, name: string, maxBytes: number): Buffer | undefined {
    if (this.#isRefused(pid)) return undefined;
    const bytes = this.#reader.readFile(pid, name, maxBytes);
    if (typeof bytes !== 'number') return bytes;
    this.#note(pid, bytes);
    return undefined;
  }

  close(): void {
    this.#native?.close();
    this.#native = undefined;
  }

  get #reader(): NativeReader {
    this.#native ??= new (loadNative().Reader)(join(packageRoot(), 'build/everyframe-reader'), this.#proc);
    return this.#native;
  }

  #isRefused(pid: Pid): boolean {
    // the usual case costs nothing
    if (this.#processes.size === 0) return false;
    const now = this.#now();
    const isRefused =
      (this.#processes.get(pid)?.until ?? 0) > now || (this.#users.size > 0 && this.#isUserRefused(pid, now));
    if (isRefused) this.#stats.refused++;
    return isRefused;
  }

  #isUserRefused(pid: Pid, now: number): boolean {
    const user = this.#userOf(pid);
    const known = user === undefined ? undefined : this.#users.get(user);
    return known !== undefined && known.times >= MAX_A_USER && known.until > now;
  }

  #note(pid: Pid, error: number): void {
    if (error === EAGAIN) this.#stats.overloaded++;
    if (error === EPIPE) this.#stats.failed++;
    // the process is gone, or has nothing there
    if (error !== ETIMEDOUT) return;
    this.#stats.timedOut++;
    punish(this.#processes, pid, this.#now());
    const user = this.#userOf(pid);
    if (user !== undefined && user !== 0) punish(this.#users, user, this.#now());
  }

  /** Who owns it, by its effective user; undefined where it is gone. */
  #userOf(pid: Pid): number | undefined {
    return statSync(`${this.#proc}/${pid}`, { throwIfNoEntry: false })?.uid;
  }
}

function punish<Key extends number>(all: LRUCache<Key, Unresponsive>, key: Key, now: number): void {
  const times = (all.get(key)?.times ?? 0) + 1;
  all.set(key, { times, until: now + Math.min(FIRST_WAIT_MS * 2 ** (times - 1), MAX_WAIT_MS) });
}
