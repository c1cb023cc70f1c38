/**
 * Files that are read in parts, of which only the last used ones are open: a program with split DWARF has thousands.
 * One that was closed meanwhile is opened again, if it is still the same.
 */
import { closeSync, readSync } from 'node:fs';
import { LRUCache } from 'lru-cache';
import { type ByteSource, OutOfBounds } from '../../common/base/byte-source.ts';
import type { NoFile } from './file-opener.ts';
import { type FileOwner, identityOf, type RegularFile } from './root-directory.ts';

/** A path that was tried for the sake of a file's symbols. */
export interface Probe {
  /** Below our own root, or below that of the process. */
  where: 'host' | 'root';
  path: string;
  /** '' where there was nothing. */
  identity: string;
}

type Open = () => RegularFile | NoFile;

export interface FileStats {
  opened: number;
  /** Names that lead to no regular file, or to one that others can change, or that the naming file's owner may not read. */
  refused: number;
  /** Compressed symbol tables (.gnu_debugdata) that can't be read, or exceed a limit. */
  damaged: number;
  /** Units, tables and sections of DWARF that are broken or exceed a limit. */
  dwarfDamaged: number;
  /** Build IDs of files with debug information that were looked for in vain. */
  missing: string[];
}

const MAX_MISSING = 8;
const MAX_PROBES = 64;

export const noStats = (): FileStats => ({
  opened: 0,
  refused: 0,
  damaged: 0,
  dwarfDamaged: 0,
  missing: [],
});

export class FilePool {
  #stats = noStats();
  #probes: Probe[] | undefined = [];
  readonly #fds: LRUCache<PooledFile, number>;

  /** Four files suffice for one program: its separate debug information, what that shares with others, and two units. */
  constructor(max = 4) {
    this.#fds = new LRUCache({ max, dispose: (fd) => closeSync(fd) });
  }

  /** Paths that were tried up to now; undefined where that is too much, or depends on more than the files. */
  get probes(): readonly Probe[] | undefined {
    return this.#probes;
  }

  /** The file that `open` opens, now and whenever it is needed again. */
  add(
    open: Open,
    where: Probe['where'],
    path: string,
  ): { source: ByteSource; identity: string; owner: FileOwner } | undefined {
    const opened = open();
    if (typeof opened === 'string') {
      if (opened === 'refused') {
        this.#stats.refused++;
        this.#probes = undefined;
      } else this.#note({ where, path, identity: '' });
      return undefined;
    }
    const identity = identityOf(opened.stats);
    this.#note({ where, path, identity });
    this.#stats.opened++;
    const file = new PooledFile(this, open, opened);
    this.#fds.set(file, opened.fd);
    return { source: file, identity, owner: opened.stats };
  }

  #note(probe: Probe): void {
    if (this.#probes && this.#probes.length >= MAX_PROBES) this.#probes = undefined;
    this.#probes?.push(probe);
  }

  /** Throws OutOfBounds where the file is no longer what it was. */
  fdOf(file: PooledFile): number {
    const kept = this.#fds.get(file);
    if (kept !== undefined) return kept;
    const fd = file.reopen();
    this.#fds.set(file, fd);
    return fd;
  }

  noteMissing(buildId: string): void {
    const { missing } = this.#stats;
    if (missing.length < MAX_MISSING && !missing.includes(buildId)) missing.push(buildId);
  }

  countDamaged(): void {
    this.#stats.damaged++;
  }

  /** Since the last call. */
  takeStats(): FileStats {
    const taken = this.#stats;
    this.#stats = noStats();
    return taken;
  }

  close(): void {
    this.#fds.clear();
  }
}

class PooledFile implements ByteSource {
  readonly size: number;
  readonly #pool: FilePool;
  readonly #open: Open;
  readonly #identity: string;

  constructor(pool: FilePool, open: Open, opened: RegularFile) {
    this.#pool = pool;
    this.#open = open;
    this.#identity = identityOf(opened.stats);
    this.size = Number(opened.stats.size);
  }

  read(offset: number, length: number): Uint8Array {
    if (!(offset >= 0 && length >= 0 && offset + length <= this.size)) {
      throw new OutOfBounds(`${length} bytes at ${offset} of ${this.size}`);
    }
    const fd = this.#pool.fdOf(this);
    const bytes = new Uint8Array(length);
    for (let done = 0; done < length; ) {
      const n = readSync(fd, bytes, done, length - done, offset + done);
      if (n === 0) throw new OutOfBounds(`${length} bytes at ${offset}: the file ends at ${offset + done}`);
      done += n;
    }
    return bytes;
  }

  reopen(): number {
    const opened = this.#open();
    if (typeof opened === 'string') throw new OutOfBounds('the file is gone');
    if (identityOf(opened.stats) === this.#identity) return opened.fd;
    closeSync(opened.fd);
    throw new OutOfBounds('the file was replaced');
  }
}
