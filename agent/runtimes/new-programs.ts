/**
 * Programs that are called after a runtime: their files are read when their first process starts. A process may spend all
 * its time in code that a JIT has made, so that no sample comes to the file.
 */
import { basename } from 'node:path';
import { LRUCache } from 'lru-cache';
import { mayHoldRuntime } from './registry.ts';

const MAX_PROGRAMS = 256;

export class NewPrograms {
  readonly #seen = new LRUCache<string, true>({ max: MAX_PROGRAMS });

  /** True once for each path that may be a runtime's. */
  isNew(path: string): boolean {
    if (!mayHoldRuntime(basename(path)) || this.#seen.has(path)) return false;
    this.#seen.set(path, true);
    return true;
  }
}
