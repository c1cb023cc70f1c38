/**
 * Attaches to the runtimes of processes, for plug-ins that need it: BPF says in which process a runtime was detected, the
 * plug-in reads that process's memory, and what it found goes into the runtime's BPF map. BPF asks again about a process
 * that is not ready yet, less and less often: docs/decisions/runtimes/file-or-process-state.md.
 */
import { LRUCache } from 'lru-cache';
import type { FileKey, Pid } from '../../common/base/brand.ts';
import {
  type AttachedRuntime,
  type DetectedRuntime,
  type RuntimePlugin,
  UnsupportedRuntime,
} from '../interpreters/contract.ts';
import type { ForeignReader } from '../processes/foreign-reader.ts';
import { ATTACHMENT, Runtime } from '../records/records.gen.ts';
import type { ProcessIdentity, RuntimeRecord } from '../records/records.ts';
import { type Clock, NamingTime } from './naming-time.ts';
import { ProcessMemories } from './process-memory.ts';
import { RUNTIMES } from './runtimes.gen.ts';

/** Refused only then: while it starts a runtime may not make sense yet. BPF waits longer each time, so that is after 0.7 s. */
const REFUSALS = 5;
/** As many as the BPF maps of such runtimes hold. */
const MAX_PROCESSES = 512;

/** The BPF maps of runtimes that are attached to. */
export interface AttachmentMap {
  /** False where it is full, or not made yet. */
  publish(plugin: RuntimePlugin, process: ProcessIdentity, entry: Buffer): boolean;
  withdraw(plugin: RuntimePlugin, process: ProcessIdentity): void;
  /** Which runtimes the process has, in which files; BPF does not ask again once that is complete. */
  tellRuntimes(
    process: ProcessIdentity,
    files: readonly { id: number; key: FileKey }[],
    isComplete: boolean,
  ): void;
}

/** Where the file of a runtime is in a process. */
export interface RuntimePlace {
  /** Name of the plug-in. */
  runtime: string;
  key: FileKey;
  /** Address at which its offset 0 would be, in the mapping with the code. */
  base: number;
}

export interface RuntimeFiles {
  places: RuntimePlace[];
  /** False where a file may hold a runtime that is not known yet, or the process's files can't be read. */
  isComplete: boolean;
}

export interface ProcessRuntimesOptions {
  runtimeOf(key: FileKey): DetectedRuntime | undefined;
  /** What the process has mapped of files with runtimes. */
  filesOf(pid: Pid): RuntimeFiles;
  map: AttachmentMap;
  onRefused(problem: string): void;
  /** Lines and inlined callees of that process's compiled code are not exact. */
  onApproximateLines?(process: ProcessIdentity): void;
  clock: Clock;
  reader: ForeignReader;
}

interface Attachment {
  plugin: RuntimePlugin;
  process: ProcessIdentity;
  /** What BPF has. */
  entry: Uint8Array;
  /** What naming is given. */
  facts: unknown;
  hasApproximateLines: boolean;
}

interface Refusals {
  process: ProcessIdentity;
  times: number;
}

export class ProcessRuntimes {
  readonly stats = {
    /** Processes with code that no file backs of which BPF asked which runtimes they have. */
    asked: 0,
    attached: 0,
    /** Asked for again later: the runtime is still starting, or its memory can't be read. */
    notYet: 0,
    /** What the process has is not what its file has: given up. */
    refused: 0,
    /** The process has no file of the runtime: its code is something else's. */
    noFile: 0,
    /** Left for later, since attaching took too much of the agent's time. */
    costly: 0,
    /** Found, but BPF's map is full. */
    unpublished: 0,
    /** A plug-in threw: an error of the agent's. */
    failed: 0,
  };
  readonly #options: ProcessRuntimesOptions;
  readonly #memories: ProcessMemories;
  /** Of all processes together: a hostile program can always start another. */
  readonly #time: NamingTime;
  /** By {@link processKey}. */
  readonly #attached = new LRUCache<number, Attachment>({
    max: MAX_PROCESSES,
    // frames that BPF goes on to send would have no names
    dispose: ({ plugin, process }, _key, reason) => {
      if (reason !== 'set') this.#options.map.withdraw(plugin, process);
    },
  });
  readonly #refused = new LRUCache<number, Refusals>({ max: MAX_PROCESSES });

  constructor(options: ProcessRuntimesOptions) {
    this.#options = options;
    this.#memories = new ProcessMemories(options.reader);
    this.#time = new NamingTime(options.clock);
  }

  /** How many are attached to. */
  get size(): number {
    return this.#attached.size;
  }

  /** Is one attached to in that process? */
  has(pid: Pid): boolean {
    return RUNTIMES.some((plugin) => this.#attached.has(processKey(pid, plugin)));
  }

  /** Those whose compiled code has lines and inlined callees that are not exact. */
  get approximate(): number {
    let count = 0;
    for (const { hasApproximateLines } of this.#attached.values()) count += Number(hasApproximateLines);
    return count;
  }

  /** What a plug-in found in the process; undefined where it is not attached to. */
  factsOf(pid: Pid, plugin: RuntimePlugin): unknown {
    return this.#attached.get(processKey(pid, plugin))?.facts;
  }

  /** BPF has detected a runtime, or code that may be its, in a process of which it lacks something. */
  onDetected(record: RuntimeRecord): void {
    if (record.runtime === Runtime.NONE) {
      this.#tellRuntimes(record);
      return;
    }
    const plugin = RUNTIMES.find(({ id }) => id === record.runtime);
    if (!plugin?.attach || this.#refusals(plugin, record) >= REFUSALS) return;
    const { pid, key, base } = record;
    const ofPlugin = ({ runtime }: RuntimePlace): boolean => runtime === plugin.name;
    const place = key
      ? { runtime: plugin.name, key, base }
      : this.#options.filesOf(pid).places.find(ofPlugin);
    const detected = place && this.#options.runtimeOf(place.key);
    if (detected?.runtime !== plugin.name) this.stats.noFile++;
    else if (this.#time.isUp) this.stats.costly++;
    else {
      const found = this.#time.spend(() =>
        this.#attach(plugin, record, this.#basesOf(record, place!), detected),
      );
      if (found) this.#publish(plugin, record, place!.key, found);
    }
  }

  /** That of the mapping that BPF has come to, then of others of the file: a program may have mapped parts of its own file once more. */
  *#basesOf({ pid }: RuntimeRecord, { key, base }: RuntimePlace): Generator<number> {
    yield base;
    const places = this.#options.filesOf(pid).places.filter((place) => place.key === key);
    const others = new Set(places.map((place) => place.base));
    others.delete(base);
    yield* others;
  }

  #tellRuntimes({ pid, execId, startBoottimeNs }: RuntimeRecord): void {
    this.stats.asked++;
    const { places, isComplete } = this.#options.filesOf(pid);
    const files = places.flatMap(({ runtime, key, base }) => {
      const plugin = RUNTIMES.find(({ name }) => name === runtime);
      return plugin ? [{ id: plugin.id, key, base }] : [];
    });
    this.#options.map.tellRuntimes({ pid, execId, startBoottimeNs }, files, isComplete);
  }

  /** The process has ended, or runs another program now. */
  forget(pid: Pid): void {
    if (this.#attached.size === 0) return;
    for (const plugin of RUNTIMES) if (plugin.attach) this.#attached.delete(processKey(pid, plugin));
  }

  /** How often this very execution was refused. */
  #refusals(plugin: RuntimePlugin, process: ProcessIdentity): number {
    const known = this.#refused.get(processKey(process.pid, plugin));
    return known && isSameExecution(known.process, process) ? known.times : 0;
  }

  #attach(
    plugin: RuntimePlugin,
    process: ProcessIdentity,
    bases: Iterable<number>,
    { facts, version }: DetectedRuntime,
  ): AttachedRuntime | undefined {
    // what was read for an earlier record is older than this one
    this.#memories.renew();
    try {
      for (const base of bases) {
        const found = plugin.attach!(this.#memories.of(process.pid), base, facts);
        if (found) return found;
      }
      this.stats.notYet++;
      return undefined;
    } catch (error) {
      const isRefusal = error instanceof UnsupportedRuntime;
      const times = isRefusal ? this.#refusals(plugin, process) + 1 : REFUSALS;
      const { pid, execId, startBoottimeNs } = process;
      this.#refused.set(processKey(pid, plugin), { process: { pid, execId, startBoottimeNs }, times });
      if (times < REFUSALS) {
        this.stats.notYet++;
        return undefined;
      }
      this.stats[isRefusal ? 'refused' : 'failed']++;
      const reason = isRefusal ? error.message : (error as Error).stack;
      this.#options.onRefused(`${plugin.name} ${version} can't be attached to: ${reason}`);
      return undefined;
    }
  }

  #publish(
    plugin: RuntimePlugin,
    record: RuntimeRecord,
    key: FileKey,
    { entry, facts, hasApproximateLines = false }: AttachedRuntime,
  ): void {
    const { pid, execId, startBoottimeNs } = record;
    const process = { pid, execId, startBoottimeNs };
    const bytes = Buffer.from(entry);
    bytes.writeBigUInt64LE(BigInt(`0x${key}`), ATTACHMENT.fileKey);
    bytes.writeUInt32LE(1, ATTACHMENT.isAttached);
    const known = this.#attached.get(processKey(pid, plugin));
    // writing it again would let BPF forget how long it waits before it asks
    if (record.isAttached && known && bytes.equals(known.entry)) return;
    if (!this.#options.map.publish(plugin, process, bytes)) {
      this.stats.unpublished++;
      return;
    }
    this.stats.attached++;
    this.#attached.set(processKey(pid, plugin), {
      plugin,
      process,
      entry: bytes,
      facts,
      hasApproximateLines,
    });
    if (hasApproximateLines) this.#options.onApproximateLines?.(process);
  }
}

/** Of a process and a runtime in it. */
const processKey = (pid: Pid, { id }: RuntimePlugin): number => pid * 256 + id;

const isSameExecution = (a: ProcessIdentity, b: ProcessIdentity): boolean =>
  a.execId === b.execId && a.startBoottimeNs === b.startBoottimeNs;
