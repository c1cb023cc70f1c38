/** Files as a process sees them, read by a worker on its behalf. */
import { closeSync, readFileSync } from 'node:fs';
import { fileOpener, type ProcessFile } from '../files/file-opener.ts';
import { type FileOwner, type Reader, type RegularFile, RootDirectory } from '../files/root-directory.ts';
import { createBootClock } from '../processes/boot-clock.ts';
import { parseStat } from '../processes/proc-files.ts';
import { type NoLines, NoLinesError } from './line-request.ts';

const TICK_NS = 10_000_000n;
export const NS_PER_MS = 1_000_000n;

export class ProcessRoots {
  readonly #proc: string;
  readonly #clock: ReturnType<typeof createBootClock>;

  constructor(proc = '/proc') {
    this.#proc = proc;
    this.#clock = createBootClock(proc);
  }

  /** What `read` gives, or why it does not: it throws {@link NoLinesError}, and anything where a file makes no sense. */
  read<T>(pid: number, read: (root: ProcessRoot) => T): T | { kind: NoLines } {
    let root: ProcessRoot | undefined;
    try {
      root = this.#open(pid);
      return read(root);
    } catch (error) {
      return { kind: error instanceof NoLinesError ? error.kind : 'malformed' };
    } finally {
      root?.close();
    }
  }

  #open(pid: number): ProcessRoot {
    try {
      const stat = parseStat(this.#readOf(pid, 'stat'));
      const reader = readerOf(this.#readOf(pid, 'status'));
      const root = new RootDirectory(fileOpener().openOfProcess(this.#proc, pid, 'root'));
      const startNs = this.#clock.toUnixNanos((stat?.startTicks ?? 0n) * TICK_NS);
      return new ProcessRoot(root, reader, Number(startNs / NS_PER_MS));
    } catch {
      throw new NoLinesError('gone');
    }
  }

  #readOf(pid: number, which: ProcessFile): string {
    const fd = fileOpener().openOfProcess(this.#proc, pid, which);
    try {
      return readFileSync(fd, 'utf8');
    } finally {
      closeSync(fd);
    }
  }
}

/** With the rights that it has: who owns /proc/PID is root, where the process may not be dumped. */
function readerOf(status: string): Reader {
  const [, uid] = /^Uid:\t\d+\t(\d+)\t/m.exec(status) ?? [];
  const [, gid] = /^Gid:\t\d+\t(\d+)\t/m.exec(status) ?? [];
  if (uid === undefined || gid === undefined) throw new NoLinesError('gone');
  return { uid: BigInt(uid), gid: BigInt(gid) };
}

/** A process's root, and what may be read there. */
export class ProcessRoot {
  /** When the process began. */
  readonly startMs: number;
  readonly #root: RootDirectory;
  readonly #reader: Reader;

  constructor(root: RootDirectory, reader: Reader, startMs: number) {
    this.#root = root;
    this.#reader = reader;
    this.startMs = startMs;
  }

  /** Opens a file for as long as `read` runs. `owner` as for {@link RootDirectory.openRegular}. Throws {@link NoLinesError}. */
  withFile<T>(path: string, owner: FileOwner | undefined, read: (file: RegularFile) => T): T {
    const opened = this.#root.openRegular(path, owner, this.#reader);
    if (typeof opened === 'string') throw new NoLinesError(opened === 'missing' ? 'none' : 'refused');
    try {
      return read(opened);
    } finally {
      closeSync(opened.fd);
    }
  }

  close(): void {
    this.#root.close();
  }
}
