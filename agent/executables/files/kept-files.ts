/**
 * Descriptors of executables that stay open for a while, since their symbols are read when they are sampled, and
 * the file may have no name by then (compiled, run, deleted). Few and not for long: an open file keeps its disk
 * space and its mount busy.
 */
import { close } from 'node:fs';
import { LRUCache } from 'lru-cache';
import type { FileKey } from '../../../common/base/brand.ts';

export interface KeptFile {
  fd: number;
  /** A copy out of a process's memory: gives back its room. */
  release?: () => void;
}

interface Kept extends KeptFile {
  users: number;
  doomed: boolean;
  usedAt: number;
}

export interface KeptFilesOptions {
  max: number;
  idleMs: number;
  now?: () => number;
}

export class KeptFiles {
  readonly #files: LRUCache<FileKey, Kept>;
  readonly #idleMs: number;
  readonly #now: () => number;
  #sweeper: NodeJS.Timeout | undefined;

  constructor({ max, idleMs, now = () => performance.now() }: KeptFilesOptions) {
    this.#idleMs = idleMs;
    this.#now = now;
    this.#files = new LRUCache({ max, dispose: (kept) => closeWhenUnused(kept) });
  }

  get size(): number {
    return this.#files.size;
  }

  /** Takes over the descriptors; those that were kept under this key are closed. */
  put(key: FileKey, file: KeptFile): void {
    this.#files.set(key, { ...file, users: 0, doomed: false, usedAt: this.#now() });
    this.#sweeper ??= setInterval(() => this.sweep(), this.#idleMs / 2).unref();
  }

  /** Runs `use` with the descriptors, which stay open meanwhile; undefined if the file is not kept. */
  async use<T>(key: FileKey, use: (file: KeptFile) => Promise<T>): Promise<T | undefined> {
    const kept = this.#files.get(key);
    if (!kept) return undefined;
    kept.users++;
    try {
      return await use(kept);
    } finally {
      kept.users--;
      kept.usedAt = this.#now();
      if (kept.doomed) closeWhenUnused(kept);
    }
  }

  has(key: FileKey): boolean {
    return this.#files.has(key);
  }

  delete(key: FileKey): void {
    this.#files.delete(key);
  }

  /** Closes what was not used for a while. */
  sweep(): void {
    const oldest = this.#now() - this.#idleMs;
    for (const [key, kept] of [...this.#files.entries()]) {
      if (kept.users === 0 && kept.usedAt <= oldest) this.#files.delete(key);
    }
    if (this.#files.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }

  closeAll(): void {
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
    this.#files.clear();
  }
}

function closeWhenUnused(kept: Kept): void {
  kept.doomed = true;
  if (kept.users === 0) closeKept(kept);
}

export function closeKept({ fd, release }: KeptFile): void {
  release?.();
  // Errors of close() on a file that was only read mean nothing that could be acted on.
  close(fd, () => {});
}
