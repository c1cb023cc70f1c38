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

export interface NamedRuntimeFrame {
  frameType: RuntimePlugin['frameType'];
  /** The innermost inlined function first; at least one. */
  lines: readonly RuntimeFrame[];
}

interface KnownProcess {
  cache: Map<number, unknown>;
  /** The runtime's file, once a trace has named it. */
  file: FileKey | undefined;
}

export class RuntimeFrames {
  readonly stats = { named: 0, unreadable: 0, replaced: 0, malformed: 0, unknownFile: 0 };
  readonly #runtimeOf: RuntimeOfFile;
  readonly #proc: string;
  #memory: OpenMemory | undefined;
  /** By process and runtime. */
  readonly #processes = new LRUCache<string, KnownProcess>({ max: MAX_PROCESSES });

  constructor(runtimeOf: RuntimeOfFile, proc = '/proc') {
    this.#runtimeOf = runtimeOf;
    this.#proc = proc;
  }

  /** Does the file hold the runtime whose frames are of that kind? */
  runs(key: FileKey, kind: number): boolean {
    const runtime = this.#runtimeOf(key)?.runtime;
    return runtime !== undefined && runtime === pluginOf(kind)?.name;
  }

  /**
   * `key`: the file of the runtime, undefined where the trace names none, as a stack that was cut in JIT code: then
   * that of an earlier trace of the process.
   */
  name(pid: Pid, key: FileKey | undefined, kind: number, words: FrameWords): NamedRuntimeFrame {
    const plugin = pluginOf(kind);
    const known = this.#processOf(pid, kind);
    if (key !== undefined) known.file = key;
    const detected = known.file === undefined ? undefined : this.#runtimeOf(known.file);
    if (!plugin || detected?.runtime !== plugin.name) {
      this.stats.unknownFile++;
      return unnamed('runtime', plugin?.frameType ?? '', 'the file of its interpreter is not known any more');
    }
    const frame = plugin.nameFrame(words, detected.facts, this.#memoryOf(pid), known.cache);
    if (typeof frame === 'string') {
      this.stats[frame]++;
      return unnamed(plugin.name, plugin.frameType, REASONS[frame]);
    }
    this.stats.named++;
    return { frameType: plugin.frameType, lines: Array.isArray(frame) ? frame : [frame] };
  }

  #processOf(pid: Pid, kind: number): KnownProcess {
    const key = `${pid} ${kind}`;
    let known = this.#processes.get(key);
    if (!known || known.cache.size > MAX_CACHED) {
      known = { cache: new Map(), file: known?.file };
      this.#processes.set(key, known);
    }
    return known;
  }

  /** The memory stays open until the event loop goes on: a trace has many frames of one process. */
  #memoryOf(pid: Pid): ProcessMemory {
    const path = `${this.#proc}/${pid}/mem`;
    if (this.#memory?.path === path) return this.#memory;
    if (!this.#memory) setImmediate(() => this.#closeMemory());
    else this.#memory.close();
    this.#memory = new OpenMemory(path);
    return this.#memory;
  }

  #closeMemory(): void {
    this.#memory?.close();
    this.#memory = undefined;
  }
}

const pluginOf = (kind: number): RuntimePlugin | undefined =>
  RUNTIMES.find(({ frameKind }) => frameKind === kind);

const unnamed = (
  runtime: string,
  frameType: RuntimePlugin['frameType'],
  reason: string,
): NamedRuntimeFrame => ({
  frameType,
  lines: [{ name: `[${runtime}: ${reason}]`, file: '', line: 0, column: 0, startLine: 0 }],
});

/** Opened at the first read, since most frames are known without one. */
class OpenMemory implements ProcessMemory {
  readonly path: string;
  #fd = -1;

  constructor(path: string) {
    this.path = path;
  }

  read(address: number, length: number): Uint8Array | undefined {
    try {
      if (this.#fd < 0) this.#fd = openSync(this.path, 'r');
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
