/**
 * Opens and reads other people's files, and what other processes have in memory, where a page may never come: as
 * {@link ForeignReader}, but beside the main thread and within a second. Whoever does not answer pays, see
 * {@link Penalties}; the others' reads wait for that second at most.
 */
import { close } from 'node:fs';
import { join } from 'node:path';
import type { Pid } from '../../common/base/brand.ts';
import { loadNative, type NativeAsyncReader, type NativeFile } from '../base/native.ts';
import { packageRoot } from '../base/package-root.ts';
import { Penalties } from './penalties.ts';

const ETIMEDOUT = -110;
const EBUSY = -16;
const EAGAIN = -11;
const EPIPE = -32;
const EIO = -5;

/** For whose sake something is read: who pays where it does not answer. */
export interface OnBehalfOf {
  /** 0: nobody's. */
  pid: Pid | 0;
  /** The kernel's number of the device that the file lies on, for when the process is gone; 0: unknown. */
  device: number;
}

export const NOBODY: OnBehalfOf = { pid: 0, device: 0 };

/** Pages of a mapped file, to be copied: address, offset in the file and length of each range. */
type PageRanges = Float64Array;

export interface ForeignFilesOptions {
  proc?: string;
  penalties?: Penalties;
}

export class ForeignFiles {
  readonly #stats = {
    /** Requests that were not answered in time: a reader was killed for each. */
    filesTimedOut: 0,
    /** Requests that were not made, for processes (or users) that did not answer before. */
    filesRefused: 0,
    /** Requests that were not made since too many readers wait in the kernel. */
    filesOverloaded: 0,
    /** Requests that failed since there was no reader. */
    filesFailed: 0,
  };
  readonly #proc: string;
  readonly #penalties: Penalties;
  #native: NativeAsyncReader | undefined;
  #sessions = 0;

  constructor({ proc = '/proc', penalties = new Penalties({ proc }) }: ForeignFilesOptions = {}) {
    this.#proc = proc;
    this.#penalties = penalties;
  }

  /** `filesStuck`: readers that were killed and still wait in the kernel. */
  get stats() {
    return { ...this.#stats, filesStuck: this.#native?.stuck() ?? 0 };
  }

  /** Looks a path up, and opens it for reading if it is a regular file and `open` is true. A negative errno on failure. */
  lookAt(path: string, open: boolean, { pid, device }: OnBehalfOf): Promise<NativeFile | number> {
    return this.#ask(pid, () => this.#reader.lookAt(pid, device, path, open));
  }

  /** A regular file below a process's root, opened for reading; no symbolic link is followed. */
  openBelowRoot(pid: Pid, path: string): Promise<NativeFile | number> {
    return this.#ask(pid, () => this.#reader.openBelow(pid, `${this.#proc}/${pid}/root`, path));
  }

  /** Up to `length` bytes of an open file, at most 64 KiB. */
  read(pid: Pid, fd: number, offset: number, length: number): Promise<Buffer | number> {
    return this.#ask(pid, () => this.#reader.read(pid, fd, offset, length));
  }

  stat(pid: Pid, fd: number): Promise<NativeFile | number> {
    return this.#ask(pid, () => this.#reader.stat(pid, fd));
  }

  /** The begin of a file of the process's folder in /proc. */
  readProcFile(pid: Pid, name: string, maxBytes: number): Promise<Buffer | number> {
    return this.#ask(pid, () => this.#reader.readFile(pid, name, maxBytes));
  }

  /** For {@link readMemory}: within one session the process is the one that was read first. */
  newSession(): number {
    this.#sessions = (this.#sessions + 1) % 2 ** 31;
    return this.#sessions;
  }

  /** Up to `length` bytes of its memory, at most 64 KiB. */
  readMemory(pid: Pid, address: number, length: number, session: number): Promise<Buffer | number> {
    return this.#ask(pid, () => this.#reader.readMemory(pid, address, length, session));
  }

  /**
   * Copies pages of a file that a process has mapped to where they stand in the file, into `fd`, or a new file in memory of
   * `size` bytes, whose descriptor comes with the answer. Only the file's own pages: not what the process wrote over.
   */
  copyPages(
    { pid, device }: OnBehalfOf,
    target: { fd: number; size: number },
    ranges: PageRanges,
  ): Promise<NativeFile | number> {
    const { fd, size } = target;
    return this.#ask(pid, () =>
      this.#reader.copyPages(pid, device, `${this.#proc}/${pid}`, fd, size, ranges),
    );
  }

  /** Waits for requests that are under way, a second at most. */
  close(): void {
    this.#native?.close();
    this.#native = undefined;
  }

  get #reader(): NativeAsyncReader {
    this.#native ??= new (loadNative().AsyncReader)(
      join(packageRoot(), 'build/everyframe-reader'),
      this.#proc,
    );
    return this.#native;
  }

  async #ask<T>(pid: Pid | 0, ask: () => Promise<T | number>): Promise<T | number> {
    if (pid !== 0 && this.#penalties.isRefused(pid)) {
      this.#stats.filesRefused++;
      return ETIMEDOUT;
    }
    const answer = await ask();
    if (typeof answer === 'number') return this.#note(pid, answer);
    return answer;
  }

  #note(pid: Pid | 0, error: number): number {
    if (error === EAGAIN) this.#stats.filesOverloaded++;
    if (error === EPIPE) this.#stats.filesFailed++;
    if (error === EBUSY) this.#stats.filesRefused++;
    if (error === ETIMEDOUT) {
      this.#stats.filesTimedOut++;
      if (pid !== 0) this.#penalties.note(pid);
    }
    return error === EBUSY ? ETIMEDOUT : error < 0 ? error : EIO;
  }
}

const MAX_READ_BYTES = 64 << 10;

/** Reads `bytes.length` bytes of a process's memory or of a file; how many it got. */
export type ReadAt = (position: number, bytes: Buffer) => Promise<number>;

/** The memory of a process, which is the same one for all that is read. */
export function memoryReader(files: ForeignFiles, pid: Pid): ReadAt {
  const session = files.newSession();
  return inPieces((position, length) => files.readMemory(pid, position, length, session));
}

/** An open file; `pid` pays. */
export const fileReader = (files: ForeignFiles, pid: Pid, fd: number): ReadAt =>
  inPieces((position, length) => files.read(pid, fd, position, length));

function inPieces(read: (position: number, length: number) => Promise<Buffer | number>): ReadAt {
  return async (position, bytes) => {
    let done = 0;
    while (done < bytes.length) {
      const piece = await read(position + done, Math.min(bytes.length - done, MAX_READ_BYTES));
      if (typeof piece === 'number' || piece.length === 0) break;
      piece.copy(bytes, done);
      done += piece.length;
    }
    return done;
  };
}

export function closeFile({ fd }: { fd: number }): void {
  // Errors of close() on a file that was only read mean nothing that could be acted on.
  if (fd >= 0) close(fd, () => {});
}
