/**
 * Reads what may never come: memory of other processes, and what /proc makes of it. Behind a page can stand a file server
 * (FUSE, NFS) or a fault handler (userfaultfd) that does not answer. A small process of ours reads instead (addon/reader/):
 * it has 50 ms for each read, and is killed then. The process that it read pays, see {@link Penalties}.
 */
import { join } from 'node:path';
import type { Pid } from '../../common/base/brand.ts';
import { loadNative, type NativeReader } from '../base/native.ts';
import { packageRoot } from '../base/package-root.ts';
import { Penalties } from './penalties.ts';

const ETIMEDOUT = -110;
const EAGAIN = -11;
const EBUSY = -16;
/** There is no reader. */
const EPIPE = -32;
/** kMaxRead of addon/reader/protocol.hh. */
const MAX_READ_BYTES = 64 << 10;
/** For a read of many such pieces, each of which may come just in time. */
const MAX_READ_MS = 500;

export interface ForeignReaderOptions {
  proc?: string;
  now?: () => number;
  /** Shared with others that read. */
  penalties?: Penalties;
}

export class ForeignReader {
  readonly #stats = {
    reads: 0,
    /** Reads that were not answered in time: a reader was killed for each. */
    timedOut: 0,
    /** Reads that were not tried, of processes (or of their users) that did not answer before, or hold readers. */
    refused: 0,
    /** Reads that were not tried since too many readers wait in the kernel. */
    overloaded: 0,
    /** Reads of more than 64 KiB that were given up, since each piece came just in time. */
    cutShort: 0,
    /** Reads that failed since there was no reader: it could not be started, or it ended. */
    failed: 0,
  };
  readonly #proc: string;
  readonly #penalties: Penalties;
  #native: NativeReader | undefined;

  constructor({ proc = '/proc', now, penalties }: ForeignReaderOptions = {}) {
    this.#proc = proc;
    this.#penalties = penalties ?? new Penalties({ proc, ...(now && { now }) });
  }

  /** `stuck`: readers that were killed and still wait in the kernel. */
  get stats() {
    return { ...this.#stats, stuck: this.#native?.stuck() ?? 0 };
  }

  /**
   * Bytes that were read into `buffer`, up to the first that can't be. Within one `session` the process is the one that was
   * opened first.
   */
  readMemory(pid: Pid, address: number, session: number, buffer: Uint8Array): number {
    const end = performance.now() + MAX_READ_MS;
    for (let done = 0; done < buffer.length; done += MAX_READ_BYTES) {
      if (performance.now() > end) {
        this.#stats.cutShort++;
        return done;
      }
      const piece = buffer.subarray(done, done + MAX_READ_BYTES);
      const count = this.#readPiece(pid, address + done, session, piece);
      if (count < piece.length) return done + count;
    }
    return buffer.length;
  }

  #readPiece(pid: Pid, address: number, session: number, buffer: Uint8Array): number {
    if (this.#isRefused(pid)) return 0;
    this.#stats.reads++;
    const count = this.#reader.readMemory(pid, address, session, buffer);
    if (count < 0) this.#note(pid, count);
    return Math.max(count, 0);
  }

  /**
   * Pages of 4 KiB, at most 16, one behind the other in `buffer`. A bit for each that was read, the first one's the lowest.
   * Costs hardly more than one page alone.
   */
  readPages(pid: Pid, addresses: Float64Array, session: number, buffer: Uint8Array): number {
    if (this.#isRefused(pid)) return 0;
    this.#stats.reads++;
    const mask = this.#reader.readPages(pid, addresses, session, buffer);
    if (mask < 0) this.#note(pid, mask);
    return Math.max(mask, 0);
  }

  /** The begin of a file of its folder in /proc; undefined where it can't be read. */
  readFile(pid: Pid, name: string, maxBytes: number): Buffer | undefined {
    if (this.#isRefused(pid)) return undefined;
    const bytes = this.#reader.readFile(pid, name, maxBytes);
    if (typeof bytes !== 'number') return bytes;
    this.#note(pid, bytes);
    return undefined;
  }

  /** The process did not answer: for a while nothing is read of it. */
  isLeftAlone(pid: Pid): boolean {
    return this.#penalties.isRefused(pid);
  }

  /** PID of the reader process, if there is one. */
  get pids(): number[] {
    return [this.#native?.pid() ?? 0].filter((pid) => pid > 0);
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
    const isRefused = this.#penalties.isRefused(pid);
    if (isRefused) this.#stats.refused++;
    return isRefused;
  }

  #note(pid: Pid, error: number): void {
    if (error === EAGAIN) this.#stats.overloaded++;
    if (error === EPIPE) this.#stats.failed++;
    if (error === EBUSY) this.#stats.refused++;
    // else the process is gone, or has nothing there
    if (error !== ETIMEDOUT) return;
    this.#stats.timedOut++;
    this.#penalties.note(pid);
  }
}
