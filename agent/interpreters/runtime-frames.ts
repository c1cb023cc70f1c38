/**
 * Names the interpreted frames of traces out of the memory of their processes: at once when a trace arrives, and
 * each distinct frame of a process only once. What could not be named stays so: its process is gone.
 */
import { closeSync, openSync, readSync } from 'node:fs';
import { LRUCache } from 'lru-cache';
import type { FileKey, Pid } from '../../common/base/brand.ts';
import type {
  DetectedRuntime,
  FrameWords,
  NameFailure,
  ProcessMemory,
  RuntimeFrame,
  RuntimePlugin,
} from './contract.ts';
import { RUNTIMES } from './registry.ts';

/** The runtime that was found in a file. */
export type RuntimeOfFile = (key: FileKey) => DetectedRuntime | undefined;

const MAX_PROCESSES = 512;
/** Past this many a process's names are read anew: it may be making functions endlessly. */
const MAX_CACHED = 16_384;

const REASONS: Readonly<Record<NameFailure, string>> = {
  unreadable: 'its process ended before it could be read',
  replaced: 'it was gone before it could be read',
  malformed: 'its names contradict themselves',
};

export interface NamedRuntimeFrame extends RuntimeFrame {
  frameType: RuntimePlugin['frameType'];
}

export class RuntimeFrames {
  readonly stats = { named: 0, unreadable: 0, replaced: 0, malformed: 0, unknownFile: 0 };
  readonly #runtimeOf: RuntimeOfFile;
  readonly #proc: string;
  readonly #caches = new LRUCache<number, Map<number, unknown>>({ max: MAX_PROCESSES });

  constructor(runtimeOf: RuntimeOfFile, proc = '/proc') {
    this.#runtimeOf = runtimeOf;
    this.#proc = proc;
  }

  /** `key`: the file of the native frame that runs the interpreted one. */
  name(pid: Pid, key: FileKey, kind: number, words: FrameWords): NamedRuntimeFrame {
    const plugin = RUNTIMES.find(({ frameKind }) => frameKind === kind);
    const detected = this.#runtimeOf(key);
    if (!plugin || detected?.runtime !== plugin.name) {
      this.stats.unknownFile++;
      return unnamed('runtime', plugin?.frameType ?? '', 'the file of its interpreter is not known any more');
    }
    const frame = this.#read(pid, (memory, cache) => plugin.nameFrame(words, detected.facts, memory, cache));
    if (typeof frame === 'string') {
      this.stats[frame]++;
      return unnamed(plugin.name, plugin.frameType, REASONS[frame]);
    }
    this.stats.named++;
    return { ...frame, frameType: plugin.frameType };
  }

  #read<T>(pid: Pid, use: (memory: ProcessMemory, cache: Map<number, unknown>) => T): T {
    let cache = this.#caches.get(pid);
    if (!cache || cache.size > MAX_CACHED) {
      cache = new Map();
      this.#caches.set(pid, cache);
    }
    const memory = new OpenMemory(`${this.#proc}/${pid}/mem`);
    try {
      return use(memory, cache);
    } finally {
      memory.close();
    }
  }
}

const unnamed = (
  runtime: string,
  frameType: RuntimePlugin['frameType'],
  reason: string,
): NamedRuntimeFrame => ({
  name: `[${runtime}: ${reason}]`,
  file: '',
  line: 0,
  column: 0,
  startLine: 0,
  frameType,
});

/** Opened at the first read, since most frames are known without one. */
class OpenMemory implements ProcessMemory {
  readonly #path: string;
  #fd = -1;

  constructor(path: string) {
    this.#path = path;
  }

  read(address: number, length: number): Uint8Array | undefined {
    try {
      if (this.#fd < 0) this.#fd = openSync(this.#path, 'r');
      const bytes = new Uint8Array(length);
      const count = readSync(this.#fd, bytes, 0, length, address);
      return count > 0 ? bytes.subarray(0, count) : undefined;
    } catch {
      // gone, not mapped, or not allowed: for the caller all the same
      return undefined;
    }
  }

  close(): void {
    if (this.#fd >= 0) closeSync(this.#fd);
  }
}
