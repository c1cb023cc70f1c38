/**
 * Names the interpreted frames of traces out of the memory of their processes: at once when a trace arrives, and
 * each distinct frame of a process only once. What could not be named stays so: its process is gone. One that did not answer in
 * time, or has used up the time that it may cost, is asked again.
 */
import { LRUCache } from 'lru-cache';
import type { FileKey, Pid } from '../../common/base/brand.ts';
import { UNNAMED_REASONS, unnamedMarker } from '../../common/profile/model/unnamed-markers.ts';
import {
  type DetectedRuntime,
  type FrameWords,
  type LinesFrom,
  NameCache,
  type ProcessMemory,
  type RuntimeFrame,
  type RuntimePlugin,
} from '../interpreters/contract.ts';
import type { ForeignReader } from '../processes/foreign-reader.ts';
import type { FunctionRecord } from '../records/records.ts';
import { type Clock, NamingTime } from './naming-time.ts';
import { type OpenMemory, ProcessMemories } from './process-memory.ts';
import { RUNTIMES } from './runtimes.gen.ts';

/** The runtime that was found in a file. */
export type RuntimeOfFile = (key: FileKey) => DetectedRuntime | undefined;
/** What a plug-in that attaches to processes found in one; undefined: it is not attached to. */
export type FactsOfProcess = (pid: Pid, plugin: RuntimePlugin) => unknown;

const MAX_PROCESSES = 256;
/** Past this many a process's names are read anew: it may be making functions endlessly. */
const MAX_CACHED = 16_384;
/** Past this what is known of the process that holds most of it is read anew. */
const MAX_CACHED_BYTES = 32 << 20;
/** Reads that depend on one another, until a frame is named by reads of its own. */
const MAX_ROUNDS = 16;
/** So few of a process are not worth a round: trying costs more than it saves. */
const FEW_FRAMES = 3;
/** A slice of them. */
const ATTEMPTS_MS = 2;

/** A frame that has no name yet. */
export interface UnnamedFrame {
  pid: Pid;
  /**
   * The file of the runtime, undefined where the trace names none, as a stack that was cut in JIT code: then that of an
   * earlier trace of the process.
   */
  key: FileKey | undefined;
  kind: number;
  words: FrameWords;
}

export interface NamedRuntimeFrame {
  frameType: RuntimePlugin['frameType'];
  /** See {@link RuntimePlugin}. */
  linesFrom: LinesFrom | undefined;
  /** The innermost inlined function first; at least one. */
  lines: readonly RuntimeFrame[];
  /** Its process did not answer, or costs too much at the moment: it may say more later. */
  isForNow?: boolean;
}

export interface RuntimeFramesOptions {
  reader: ForeignReader;
  factsOf?: FactsOfProcess;
  /** See {@link RuntimePlugin.nameFrame}. */
  baseOf?: (pid: Pid, file: FileKey) => number | undefined;
  clock: Clock;
  warn?: (message: string) => void;
}

interface KnownProcess {
  cache: NameCache;
  time: NamingTime;
  /** The runtime's file, once a trace has named it. */
  file: FileKey | undefined;
  /** Where that is in the process; undefined until it is asked for. */
  base: number | undefined;
}

type Attempt = (
  memory: OpenMemory,
  read: (memory: ProcessMemory) => ReturnType<RuntimePlugin['nameFrame']>,
) => ReturnType<RuntimePlugin['nameFrame']> | undefined;

export class RuntimeFrames {
  readonly stats = {
    named: 0,
    unreadable: 0,
    replaced: 0,
    malformed: 0,
    costly: 0,
    /** A plug-in threw: an error of the agent's, which costs the frame. */
    failed: 0,
    unknownFile: 0,
    cachesDropped: 0,
    /** Names that were read at the sample. */
    received: 0,
  };
  readonly #runtimeOf: RuntimeOfFile;
  readonly #factsOfProcess: FactsOfProcess;
  readonly #baseOfFile: NonNullable<RuntimeFramesOptions['baseOf']>;
  readonly #reader: ForeignReader;
  readonly #memories: ProcessMemories;
  readonly #clock: Clock;
  readonly #warn: (message: string) => void;
  #cachedBytes = 0;
  /** By {@link processKey}. */
  readonly #processes = new LRUCache<number, KnownProcess>({ max: MAX_PROCESSES });

  constructor(
    runtimeOf: RuntimeOfFile,
    {
      reader,
      factsOf = () => undefined,
      baseOf = () => undefined,
      clock,
      warn = () => {},
    }: RuntimeFramesOptions,
  ) {
    this.#factsOfProcess = factsOf;
    this.#baseOfFile = baseOf;
    this.#clock = clock;
    this.#warn = warn;
    this.#runtimeOf = runtimeOf;
    this.#reader = reader;
    this.#memories = new ProcessMemories(reader);
  }

  /** Frames that are named from now on are newer than those named so far. */
  beginBatch(): void {
    this.#memories.renew();
  }

  /** The name of a function that frames to come have. */
  onFunction(record: FunctionRecord): void {
    const known = this.#processOf(record.pid, record.frameKind);
    const before = known.cache.bytes;
    pluginOf(record.frameKind)?.takeFunction?.(record, known.cache);
    this.stats.received++;
    this.#countBytes(known.cache.bytes - before);
  }

  /** Does the file hold the runtime whose frames are of that kind? */
  runs(key: FileKey, kind: number): boolean {
    const runtime = this.#runtimeOf(key)?.runtime;
    return runtime !== undefined && runtime === pluginOf(kind)?.name;
  }

  name(frame: UnnamedFrame): NamedRuntimeFrame {
    const { time } = this.#processOf(frame.pid, frame.kind);
    const name = (): NamedRuntimeFrame => this.#name(frame, (memory, read) => read(memory))!;
    // nothing is read then, and what it takes to say so is not worth two looks at a clock
    return time.isUp ? name() : time.spend(name);
  }

  /**
   * Many frames, with what they need of their processes read together: in as many rounds as reads of one of them depend on
   * one another. A step for each few.
   */
  *nameAll<T extends UnnamedFrame>(
    frames: readonly T[],
    take: (frame: T, named: NamedRuntimeFrame) => void,
  ): Generator<void, void> {
    for (const ofProcess of groupsOf(frames, ({ pid, kind }) => processKey(pid, kind)))
      yield* this.#nameProcess(ofProcess, take);
  }

  *#nameProcess<T extends UnnamedFrame>(
    frames: readonly T[],
    take: (frame: T, named: NamedRuntimeFrame) => void,
  ): Generator<void, void> {
    const { pid, kind } = frames[0]!;
    const { time } = this.#processOf(pid, kind);
    let waiting = frames;
    for (let round = 0; waiting.length > FEW_FRAMES && round < MAX_ROUNDS; round++) {
      const next: T[] = [];
      const tell = (frame: T, named: NamedRuntimeFrame | undefined): unknown =>
        named ? take(frame, named) : next.push(frame);
      for (let at = 0; at < waiting.length; ) {
        const from = at;
        at = time.spend(() => this.#tryFrom(waiting, from, tell));
        yield;
      }
      if (next.length > 0) time.spend(() => this.#memories.of(pid).readMissed());
      waiting = next;
    }
    for (const frame of waiting) {
      take(frame, this.name(frame));
      yield;
    }
  }

  /** One frame at least, with what was read until now. Returns the index of the next one. */
  #tryFrom<T extends UnnamedFrame>(
    frames: readonly T[],
    from: number,
    tell: (frame: T, named: NamedRuntimeFrame | undefined) => void,
  ): number {
    const end = performance.now() + ATTEMPTS_MS;
    let at = from;
    do {
      const frame = frames[at++]!;
      tell(
        frame,
        this.#name(frame, (memory, read) => memory.tryReading(read)),
      );
    } while (at < frames.length && performance.now() < end);
    return at;
  }

  /** Undefined where `attempt` has come to nothing. */
  #name({ pid, key, kind, words }: UnnamedFrame, attempt: Attempt): NamedRuntimeFrame | undefined {
    const plugin = pluginOf(kind);
    const known = this.#processOf(pid, kind);
    if (key !== undefined) known.file = key;
    const facts = plugin && this.#factsOf(pid, plugin, known.file);
    if (!plugin || facts === undefined) {
      this.stats.unknownFile++;
      return unnamed(plugin, UNNAMED_REASONS.unknownFile, 'runtime');
    }
    const baseOf = () => this.#baseOf(pid, known);
    const frame = this.#read(pid, known, (opened) => {
      try {
        return attempt(opened, (memory) => plugin.nameFrame(words, facts, memory, known.cache, baseOf));
      } catch (error) {
        return this.#fail(plugin, error as Error);
      }
    });
    if (frame === undefined) return undefined;
    this.stats[typeof frame === 'string' ? frame : 'named']++;
    const named =
      typeof frame === 'string'
        ? unnamed(plugin, UNNAMED_REASONS[frame])
        : { ...kindOf(plugin), lines: Array.isArray(frame) ? frame : [frame] };
    const isForNow = frame === 'costly' || (!named.lines.every(isPlaced) && this.#reader.isLeftAlone(pid));
    return isForNow ? { ...named, isForNow } : named;
  }

  #baseOf(pid: Pid, known: KnownProcess): number | undefined {
    if (known.file !== undefined) known.base ??= this.#baseOfFile(pid, known.file);
    return known.base;
  }

  #factsOf(pid: Pid, plugin: RuntimePlugin, file: FileKey | undefined): unknown {
    if (plugin.attach) return this.#factsOfProcess(pid, plugin);
    const detected = file === undefined ? undefined : this.#runtimeOf(file);
    return detected?.runtime === plugin.name ? (detected.facts ?? null) : undefined;
  }

  /** Within the time that one process may take of the agent's, and the memory that all of them may. */
  #read<T>(pid: Pid, known: KnownProcess, read: (memory: OpenMemory) => T): T | 'costly' {
    if (known.time.isUp) return 'costly';
    const before = known.cache.bytes;
    const result = read(this.#memories.of(pid));
    this.#countBytes(known.cache.bytes - before);
    return result;
  }

  #countBytes(added: number): void {
    this.#cachedBytes += added;
    if (this.#cachedBytes > MAX_CACHED_BYTES) this.#dropLargest();
  }

  #fail({ name }: RuntimePlugin, error: Error): 'failed' {
    if (this.stats.failed === 0)
      this.#warn(`a frame of ${name} could not be named: ${error.stack}; others are counted`);
    return 'failed';
  }

  #dropLargest(): void {
    let largest: KnownProcess | undefined;
    let bytes = 0;
    for (const known of this.#processes.values()) {
      bytes += known.cache.bytes;
      if (known.cache.bytes > (largest?.cache.bytes ?? 0)) largest = known;
    }
    // processes that are gone have taken theirs along
    this.#cachedBytes = bytes;
    if (!largest || bytes <= MAX_CACHED_BYTES) return;
    this.#cachedBytes -= largest.cache.bytes;
    largest.cache.clear();
    this.stats.cachesDropped++;
  }

  /** How many processes names are known of, one for each runtime in them. */
  get processes(): number {
    return this.#processes.size;
  }

  /** The process has ended, or runs another program now. */
  forget(pid: Pid): void {
    if (this.#processes.size === 0) return;
    for (let i = 0; i < RUNTIMES.length; i++) this.#processes.delete(processKey(pid, RUNTIMES[i]!.frameKind));
  }

  #processOf(pid: Pid, kind: number): KnownProcess {
    const key = processKey(pid, kind);
    let known = this.#processes.get(key);
    if (!known || known.cache.size > MAX_CACHED) {
      known = {
        cache: new NameCache(),
        time: known?.time ?? new NamingTime(this.#clock),
        file: known?.file,
        base: known?.base,
      };
      this.#processes.set(key, known);
    }
    return known;
  }
}

/** Is it told where in a source it is, or that it is in none? */
export const isPlaced = ({ line, assembly, isPlaceless }: RuntimeFrame): boolean =>
  line > 0 || assembly !== undefined || isPlaceless === true;

function groupsOf<T>(items: readonly T[], keyOf: (item: T) => number): T[][] {
  const groups = new Map<number, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group) group.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return [...groups.values()];
}

/** Of a process and a runtime in it. */
const processKey = (pid: Pid, kind: number): number => pid * 256 + kind;

const pluginOf = (kind: number): RuntimePlugin | undefined =>
  RUNTIMES.find(({ frameKind }) => frameKind === kind);

const kindOf = (plugin: RuntimePlugin | undefined): Omit<NamedRuntimeFrame, 'lines'> => ({
  frameType: plugin?.frameType ?? '',
  linesFrom: plugin?.linesFrom,
});

const unnamed = (
  plugin: RuntimePlugin | undefined,
  reason: string,
  runtime = plugin?.name ?? 'runtime',
): NamedRuntimeFrame => ({
  ...kindOf(plugin),
  lines: [{ name: unnamedMarker(runtime, reason), file: '', line: 0, column: 0, startLine: 0 }],
});
