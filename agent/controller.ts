/**
 * Wires the parts of the agent, starts them in order and stops them in reverse:
 *
 *   tracer -> records -> trace handler, process manager, executables
 *   every interval: trace handler -> profile maker -> sink (the reporter, or a recording)
 */

import type { Pid } from '../common/base/brand.ts';
import { APPROXIMATE_LINES } from '../common/profile/model/approximate-lines.ts';
import type { Profile } from '../common/profile/model/profile.ts';
import { collectBetweenWork } from './base/collect-garbage.ts';
import { loadNative } from './base/native.ts';
import { runInSlices } from './base/slices.ts';
import { within } from './base/within.ts';
import { Executables } from './executables/executables.ts';
import { onlineCpus } from './host/cpus.ts';
import { JitFrames } from './jit/jit-frames.ts';
import { type CodeTables, ProcessCode } from './jit/process-code.ts';
import { CpuBudget } from './limits/cpu-budget.ts';
import { LoopDelay } from './limits/loop-delay.ts';
import { MemoryBudget } from './limits/memory-budget.ts';
import { addWithDescendants } from './processes/descendants.ts';
import { ForeignFiles } from './processes/foreign-files.ts';
import { ForeignReader } from './processes/foreign-reader.ts';
import { runningFiles } from './processes/mapped-files.ts';
import { Penalties } from './processes/penalties.ts';
import { ProcessManager } from './processes/process-manager.ts';
import { RootViews } from './processes/root-views.ts';
import { readAhead } from './read-ahead.ts';
import { RecordType } from './records/records.gen.ts';
import {
  type ExitRecord,
  type ProcessRecord,
  readExitRecord,
  readFileRecord,
  readProcessRecord,
  readRuntimeRecord,
} from './records/records.ts';
import type { Clock } from './runtimes/naming-time.ts';
import { ProcessRuntimes } from './runtimes/process-runtimes.ts';
import { mayHoldRuntime } from './runtimes/registry.ts';
import { findRuntimeFiles } from './runtimes/runtime-file.ts';
import { RuntimeFrames } from './runtimes/runtime-frames.ts';
import { RUNTIMES } from './runtimes/runtimes.gen.ts';
import { tellRefused, tellUnsupported, tellUnverified } from './runtimes/verified.ts';
import { Sampling, type SamplingOptions } from './sampling.ts';
import { SourceMaps } from './source-maps/source-maps.ts';
import { Debuginfod, type DebuginfodOptions } from './symbolizer/debuginfod/debuginfod.ts';
import { BpfCode } from './symbolizer/kernel/bpf-code.ts';
import { Kernel } from './symbolizer/kernel/kernel.ts';
import type { SymbolDetail } from './symbolizer/worker/messages.ts';
import { IdleTables } from './tracer/idle-tables.ts';
import { RecordDispatch } from './tracer/record-dispatch.ts';
import type { Steps } from './tracer/record-stream.ts';
import { Tracer } from './tracer/tracer.ts';
import { FrameResolver } from './traces/frame-resolver.ts';
import type { Interval } from './traces/interval.ts';
import { ProfileMaker } from './traces/profile-maker.ts';
import { Stacks } from './traces/stacks.ts';
import { TraceHandler } from './traces/trace-handler.ts';
import { TraceStore } from './traces/trace-store.ts';
import { TracesToName } from './traces/traces-to-name.ts';
import { createFileWorkers } from './workers/file-workers.ts';
import type { WorkerPool } from './workers/worker-pool.ts';

export interface Log {
  info(message: string): void;
  warn(message: string): void;
  debug(message: string): void;
}

export interface ControllerOptions extends SamplingOptions {
  samplesPerSecond: number;
  symbols: SymbolDetail;
  /** Directory where names of native code are kept for later runs. */
  symbolCache?: string | undefined;
  /** Servers to fetch debug information from; none unless a person asks for it. */
  debuginfod?: DebuginfodOptions;
  sendIdleFrames: boolean;
  maxUserFrames: number;
  maxTableBytes: number;
  /** Of the process and its BPF maps, bytes. */
  maxMemoryBytes: number;
  /** CPU time that the agent may take in the long run, as a share of one core: samples are left out beyond it. Undefined: any. */
  maxCpu?: number | undefined;
  /** Show sources in place of the scripts that were made from them. */
  sourceMaps: boolean;
  /** Sample only these processes and their descendants, those that exist too; undefined: every process. */
  targets?: Pid[];
  /** With targets: files that they will run or run already. Their tables are made before sampling starts. */
  expectedFiles?: readonly string[];
  /** Time between two profiles, and its random share either way; the first one comes after a second. */
  intervalMs: number;
  jitter: number;
  /** Measure how long the main loop is kept from its work. */
  watchLoop?: boolean;
}

export interface ProfileSink {
  push(profile: Profile): void | Promise<void>;
}

/** Whoever has just started it waits for something to see, and for whether a receiver takes it. */
const FIRST_INTERVAL_MS = 1000;
/** What is kept of traces and frames on a machine with few CPUs; with more samples a second it is more. */
const TRACE_BYTES = 6 << 20;
const FRAMES = 32_768;
const FRAMES_A_LOCATION = 2.5;
const USUAL_SAMPLES_A_SECOND = 1000;
const MAX_SCALE = 4;
/** A profile that takes longer than the interval is late, with short ones not before. */
const LATE_MS = 5000;
/** An interval with so many samples ends early: what a profile takes while it is made grows with them. */
const FULL_INTERVAL_SAMPLES = 30_000;
/** At the start runtimes wait for each other, at most so long: the sampler is verified anew for each change. */
const GATHER_RUNTIMES_MS = 2000;
/** Until then sampling waits for the tables of what JITs have compiled in the targets. */
const LOOK_AHEAD_MS = 2000;
const FIRST_SAMPLES_MS = 2000;
const DRAIN_FIRST_MS = 10;
const BUDGET_LOOK_MS = 1000;
const TABLE_SWEEP_MS = 30_000;
/** Parsing leaves much that is free, in the first seconds most of all. */
const RELEASE_MEMORY_MS = 10_000;
/** The first time; four times as long after each time, since less and less is left that only starting needed. */
const RELEASE_CODE_MS = 10_000;
const MAX_RELEASE_CODE_MS = 600_000;

export class Controller {
  readonly #options: ControllerOptions;
  readonly #sink: ProfileSink;
  readonly #log: Log;
  readonly #tracer: Tracer;
  readonly #records: RecordDispatch;
  readonly #kernel: Kernel;
  readonly #processes = new ProcessManager();
  readonly #views = new RootViews();
  readonly #penalties = new Penalties();
  readonly #reader = new ForeignReader({ penalties: this.#penalties });
  readonly #files = new ForeignFiles({ penalties: this.#penalties });
  readonly #debuginfod: Debuginfod | undefined;
  readonly #workers: WorkerPool;
  readonly #executables: Executables;
  readonly #idleTables: IdleTables;
  readonly #store: TraceStore;
  readonly #traces: TraceHandler;
  readonly #attached: ProcessRuntimes;
  readonly #runtimes: RuntimeFrames;
  readonly #processCode: ProcessCode;
  readonly #jit = new JitFrames({
    files: this.#files,
    onAddress: (process, address) => this.#processCode.onAddress(process, address),
  });
  readonly #sourceMaps: SourceMaps | undefined;
  readonly #frames: FrameResolver;
  readonly #stacks: Stacks;
  readonly #toName = new TracesToName();
  readonly #maker: ProfileMaker;
  readonly #sampling: Sampling;
  readonly #loopDelay = new LoopDelay();
  readonly #memory: MemoryBudget;
  readonly #cpu?: CpuBudget;
  #timer: NodeJS.Timeout | undefined;
  #budgetTimer: NodeJS.Timeout | undefined;
  #sweptAtMs = performance.now();
  #releasedAtMs = performance.now();
  #releasedCodeAtMs = performance.now();
  #releaseCodeWaitMs = RELEASE_CODE_MS;
  #isShrinking = false;
  #sweep: Promise<void> = Promise.resolve();
  #flushing: Promise<void> = Promise.resolve();
  #isFlushing = false;
  /** When the newest flush began. */
  #flushedAtMs = 0;
  #stopped = false;
  #samplesReported = 0;
  /** What was counted by the end. */
  #lastCounters: Record<string, number> | undefined;

  private constructor(options: ControllerOptions, sink: ProfileSink, log: Log, kernel: Kernel) {
    this.#options = options;
    this.#sink = sink;
    this.#log = log;
    this.#kernel = kernel;
    const scale = scaleOf(options);
    this.#store = new TraceStore({
      maxBytes: TRACE_BYTES * scale,
      forget: (low, high) => this.#tracer.seen.forget(low, high),
    });
    this.#traces = new TraceHandler(this.#store);
    this.#records = new RecordDispatch(
      {
        [RecordType.SAMPLE]: (buffer, at, size) => this.#traces.onSample(buffer, at, size),
        [RecordType.TRACE]: (buffer, at, size) => this.#onTrace(buffer, at, size),
        [RecordType.PROCESS]: (buffer, at, size) =>
          this.#onceNamed(readProcessRecord(buffer, at, size), (record) => this.#onProcess(record)),
        [RecordType.EXIT]: (buffer, at) =>
          this.#onceNamed(readExitRecord(buffer, at), (record) => this.#onExit(record)),
        [RecordType.FILE]: (buffer, at, size) => this.#executables.onFile(readFileRecord(buffer, at, size)),
        [RecordType.RUNTIME]: (buffer, at) => this.#attached.onMet(readRuntimeRecord(buffer, at)),
      },
      (message) => log.warn(message),
    );
    this.#tracer = new Tracer(
      { ...options, runtimes: RUNTIMES },
      {
        beginBatch: () => this.#runtimes.beginBatch(),
        onRecord: (buffer, at, size) => this.#records.take(buffer, at, size),
        endBatch: () => this.#nameTraces(),
        drained: () => this.#traces.drained(),
      },
      (message) => log.warn(message),
    );
    this.#debuginfod =
      options.debuginfod && new Debuginfod(options.debuginfod, (message) => log.warn(message));
    this.#workers = this.#fileWorkers(options);
    this.#executables = new Executables({
      symbols: options.symbols,
      tables: this.#tracer.tables,
      workers: this.#workers,
      views: this.#views,
      files: this.#files,
      debuginfod: this.#debuginfod,
      onBetterNames: (key) => this.#frames.renameFile(key),
      onRuntime: tellUnverified((message) => log.warn(message)),
      onUnsupportedRuntime: tellUnsupported((message) => log.warn(message)),
    });
    this.#processCode = this.#codeWithoutFile();
    this.#idleTables = new IdleTables((key) => this.#executables.isThere(key));
    const reading = { reader: this.#reader, clock: this.#clock() };
    this.#attached = new ProcessRuntimes({
      runtimeOf: (key) => this.#executables.get(key)?.runtime,
      filesOf: (pid) => findRuntimeFiles(pid, this.#executables.all(), this.#reader),
      map: this.#tracer.attachments,
      onRefused: tellRefused((message) => log.warn(message)),
      onApproximateLines: (process) => this.#processes.noteAttribute(process, APPROXIMATE_LINES),
      ...reading,
    });
    this.#runtimes = new RuntimeFrames((key) => this.#executables.get(key)?.runtime, {
      factsOf: (pid, plugin) => this.#attached.factsOf(pid, plugin),
      ...reading,
      warn: (message) => log.warn(message),
    });
    this.#sourceMaps = options.sourceMaps ? new SourceMaps(this.#workers, this.#views) : undefined;
    this.#frames = new FrameResolver(
      this.#executables,
      kernel,
      this.#runtimes,
      this.#jit,
      this.#sourceMaps,
      FRAMES * scale,
    );
    this.#stacks = new Stacks(this.#store, this.#frames, (process) => this.#views.of(process));
    this.#maker = new ProfileMaker({
      periodNs: this.#tracer.events.periodNs,
      stacks: this.#stacks,
      processes: this.#processes,
      maxLocations: (FRAMES * scale) / FRAMES_A_LOCATION,
      unixOffsetNs: () => this.#tracer.native.unixOffsetNs(),
    });
    this.#sampling = new Sampling(options, this.#tracer.events);
    this.#memory = this.#memoryBudget();
    if (options.maxCpu !== undefined) this.#cpu = this.#cpuBudget(options.maxCpu);
  }

  #codeWithoutFile(): ProcessCode {
    const tables: CodeTables = {
      publish: (entry) => this.#tracer.processCode.publish(entry),
      withdraw: (process, start) => this.#tracer.processCode.withdraw(process, start),
      keyOf: (identity) => this.#executables.keyOf(identity),
      hasTable: (key) => this.#tracer.tables.has(key),
      hasRuntime: (pid) => this.#attached.has(pid),
      onFile: (record) => this.#executables.onFile(record),
      installImage: (key, image) => this.#executables.installImage(key, image),
      forget: (key) => void this.#tracer.tables.forget(key),
    };
    return new ProcessCode(tables, this.#files);
  }

  #clock(): Clock {
    return { cpuMicros: this.#tracer.native.threadCpuMicros, wallMs: () => performance.now() };
  }

  #fileWorkers({ symbolCache, symbols, maxMemoryBytes }: ControllerOptions): WorkerPool {
    return createFileWorkers({
      cache: symbolCache,
      detail: symbols === 'full' ? 'full' : 'names',
      maxMemory: maxMemoryBytes,
      warn: (message) => this.#log.warn(message),
    });
  }

  #memoryBudget(): MemoryBudget {
    const { maxMemoryBytes, maxTableBytes } = this.#options;
    return new MemoryBudget(
      { maxBytes: maxMemoryBytes, maxTableBytes },
      {
        residentBytes: () => process.memoryUsage.rss() + this.#workers.privateBytes,
        mapBytes: () => this.#tracer.mapBytes,
        releaseFreeMemory: () => {
          this.#tracer.native.releaseFreeMemory();
          this.#tracer.native.releaseCode();
        },
        dropCaches: () => this.#dropCaches(),
        tableBytes: () => this.#tracer.tables.bytes,
        limitTables: (bytes) => this.#tracer.tables.limit(bytes, () => this.#stopped),
      },
      (message) => this.#log.warn(message),
    );
  }

  #cpuBudget(limit: number): CpuBudget {
    return new CpuBudget({
      limit,
      cpuMs: () => this.#tracer.native.familyCpuMicros([...this.#workers.pids, ...this.#reader.pids]) / 1000,
      nowMs: () => performance.now(),
      isBehind: () => this.#isBehind(),
      shed: (share) => this.#tracer.shed(share),
    });
  }

  /** Loads and attaches everything, and samples from then on. Throws CannotProfile. */
  static async start(options: ControllerOptions, sink: ProfileSink, log: Log): Promise<Controller> {
    const kernel = new Kernel({ bpf: new BpfCode(loadNative()) });
    const controller = new Controller(options, sink, log, kernel);
    if (options.targets) controller.#addTargets(options.targets);
    // now that the programs are loaded: reading the symbols again for the sake of their names would cost as much
    await kernel.open();
    if (kernel.unavailable !== '') log.warn(kernel.unavailable);
    await controller.#executables.loadVdso();
    await controller.#readAhead();
    await controller.#tracer.start();
    controller.#sampling.start();
    controller.#awaitFirstSamples();
    if (options.watchLoop) controller.#loopDelay.start();
    controller.#schedule(FIRST_INTERVAL_MS);
    controller.#budgetTimer = setInterval(() => controller.#keepBudgets(), BUDGET_LOOK_MS).unref();
    return controller;
  }

  /** Resolves when the tables of all files that were met so far are there, or after `limitMs`. */
  tablesReady(limitMs: number): Promise<void> {
    this.#tracer.drain();
    return this.#executables.settled(limitMs);
  }

  addTarget(pid: Pid): void {
    this.#addTargets([pid]);
  }

  /** False once all of them have ended, with their descendants. */
  get hasTargets(): boolean {
    return !this.#stopped && this.#tracer.hasTargets;
  }

  #addTargets(pids: readonly Pid[]): void {
    const { leftOut } = addWithDescendants(pids, this.#tracer);
    if (leftOut > 0)
      this.#log.warn(`${leftOut} of the processes below ${pids.join(', ')} are left out: they are too many`);
  }

  /** Stops sampling, sends what was counted, detaches everything. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    clearTimeout(this.#timer);
    clearInterval(this.#budgetTimer);
    this.#loopDelay.stop();
    this.#sampling.stop();
    await this.#tracer.stopSampling();
    // a record that a CPU is still writing holds back those behind it
    do {
      await this.flush();
      this.#tracer.drain();
    } while (this.#traces.waiting > 0);
    await this.#processCode.stop();
    await Promise.all([this.#executables.stop(), this.#jit.stop(), this.#sourceMaps?.stop(), this.#sweep]);
    await this.#workers.stop();
    this.#lastCounters = this.counters();
    await this.#tracer.close();
    this.#reader.close();
    this.#files.close();
  }

  /** Makes a profile of what was counted so far and hands it to the sink. */
  flush(): Promise<void> {
    this.#flushing = this.#flushing.then(() => this.#flush());
    return this.#flushing;
  }

  /** Every counter of the agent by name, the kernel side's first; losses begin with what lost them. */
  counters(): Record<string, number> {
    if (this.#lastCounters) return this.#lastCounters;
    const { failures, ...executables } = this.#executables.stats;
    return {
      ...prefixed('bpf', this.#tracer.counters()),
      ...prefixed('traces', this.#traces.stats),
      ...prefixed('traceStore', this.#store.stats),
      ...prefixed('processes', this.#processes.stats),
      ...prefixed('executables', executables),
      ...prefixed('executables.failed', failures),
      ...prefixed('executables', this.#executables.tableStats),
      'executables.learning': this.#executables.learning,
      ...prefixed('symbols', this.#executables.names.stats),
      ...(this.#debuginfod && prefixed('debuginfod', this.#debuginfod.stats)),
      ...prefixed('tables', {
        ...this.#tracer.tables.stats,
        ...this.#idleTables.stats,
        bytes: this.#tracer.tables.bytes,
        count: this.#tracer.tables.count,
      }),
      ...prefixed('samplers', this.#tracer.samplers.stats),
      ...prefixed('memory', this.#memory.stats),
      ...(this.#cpu && prefixed('cpuBudget', this.#cpu.stats)),
      ...prefixed('kernel', this.#kernel.stats),
      ...prefixed('processRuntimes', {
        ...this.#attached.stats,
        processes: this.#attached.size,
        approximate: this.#attached.approximate,
      }),
      ...prefixed('runtimeFrames', { ...this.#runtimes.stats, processes: this.#runtimes.processes }),
      ...prefixed('reader', { ...this.#reader.stats, ...this.#files.stats }),
      ...prefixed('jit', { ...this.#jit.stats }),
      ...prefixed('processCode', { ...this.#processCode.stats }),
      ...prefixed('sourceMaps', { ...this.#sourceMaps?.stats }),
      ...prefixed('workers', {
        ...this.#workers.stats,
        ...this.#workers.penalties.stats,
        bytes: this.#workers.privateBytes,
      }),
      ...(this.#options.watchLoop && prefixed('loop', this.#loopDelay.stats)),
      ...prefixed('records', this.#records.stats),
      'samples.reported': this.#samplesReported,
      'memory.rssBytes': process.memoryUsage.rss(),
      'cpu.userMicros': process.cpuUsage().user,
      'cpu.systemMicros': process.cpuUsage().system,
    };
  }

  #onTrace(buffer: Buffer, at: number, size: number): void {
    const ofProcess = this.#traces.onTrace(buffer, at, size);
    if (ofProcess) this.#toName.add(ofProcess, this.#store.read(ofProcess).pid);
  }

  #nameTraces(): Steps | undefined {
    const ids = this.#toName.take();
    return ids.length > 0 ? this.#records.guard(RecordType.TRACE, this.#stacks.resolveNow(ids)) : undefined;
  }

  /** What is known of a process is needed until its traces have their names. */
  #onceNamed<T extends { pid: Pid }>(record: T, take: (record: T) => void): Steps | undefined {
    const steps = this.#toName.has(record.pid) ? this.#nameTraces() : undefined;
    if (steps) return followedBy(steps, () => take(record));
    take(record);
    return undefined;
  }

  #onProcess(record: ProcessRecord): void {
    this.#processes.onProcess(record);
    this.#views.forget(record.pid);
    this.#forgetProcess(record.pid);
  }

  #onExit(record: ExitRecord): void {
    this.#processes.onExit(record);
    this.#forgetProcess(record.pid);
    this.#jit.onExit(record);
    this.#processCode.onExit(record);
  }

  /** Waits for what a person wants to see; of the whole machine runtimes are read while sampling begins. */
  async #readAhead(): Promise<void> {
    const { targets, expectedFiles } = this.#options;
    const reading = readAhead(
      targets ? (expectedFiles ?? []) : runningFiles(mayHoldRuntime, this.#reader),
      this.#tracer,
      this.#executables,
      this.#files,
    );
    const looking = (targets ?? []).map((pid) => this.#processCode.lookAhead(pid));
    if (targets) await Promise.all([reading, within(LOOK_AHEAD_MS, Promise.all(looking))]);
    else void this.#tracer.samplers.gather(this.#executables.runtimesKnown(GATHER_RUNTIMES_MS));
  }

  /** Their process is known by its first sample, which otherwise waits in the ring buffer for up to a second. */
  #awaitFirstSamples(): void {
    if (!this.#processCode.isAhead) return;
    const end = performance.now() + FIRST_SAMPLES_MS;
    const timer = setInterval(() => {
      if (!this.#stopped) this.#tracer.drain();
      if (this.#stopped || !this.#processCode.isAhead || performance.now() > end) clearInterval(timer);
    }, DRAIN_FIRST_MS).unref();
  }

  /** What is known of a program that ran under this number. */
  #forgetProcess(pid: Pid): void {
    this.#attached.forget(pid);
    this.#runtimes.forget(pid);
    this.#sourceMaps?.forgetProcess(pid);
  }

  #schedule(maxMs = Infinity): void {
    if (this.#stopped) return;
    const { intervalMs, jitter } = this.#options;
    const delay = Math.min(intervalMs * (1 + jitter * (Math.random() * 2 - 1)), maxMs);
    this.#timer = setTimeout(() => void this.flush().then(() => this.#schedule()), delay);
  }

  async #flush(): Promise<void> {
    this.#isFlushing = true;
    this.#flushedAtMs = performance.now();
    try {
      if (!this.#stopped) this.#tracer.drain();
      const takenAt = this.#tracer.native.monotonicNs();
      const interval = this.#traces.takeInterval();
      if (interval.samples > 0) {
        for (const profile of await this.#makeProfiles(interval)) await this.#sink.push(profile);
        this.#samplesReported += interval.samples;
      } else this.#traces.release(interval);
      this.#loopDelay.takeInterval();
      this.#processes.releaseUntil(takenAt);
      this.#sweepTables();
      this.#releaseMemory();
      if (await this.#kernel.refresh()) this.#frames.forgetKernel();
    } catch (error) {
      // one interval is lost, the agent goes on
      this.#log.warn(`an interval could not be made into a profile: ${(error as Error).stack}`);
    } finally {
      this.#isFlushing = false;
    }
  }

  #makeProfiles(interval: Interval): Promise<Profile[]> {
    return this.#maker.make(interval).finally(() => this.#traces.release(interval));
  }

  #keepBudgets(): void {
    if (this.#stopped) return;
    this.#cpu?.check();
    if (this.#traces.waiting >= FULL_INTERVAL_SAMPLES && !this.#isFlushing) void this.flush();
    this.#keepMemory();
  }

  /** Records come late, or the profile of an interval takes as long as the interval. */
  #isBehind(): boolean {
    const limitMs = Math.max(this.#options.intervalMs, LATE_MS);
    const isLate = this.#isFlushing && performance.now() - this.#flushedAtMs > limitMs;
    return this.#tracer.isBehind() || isLate;
  }

  /** Caches go at once, tables beside the intervals, as in {@link #sweepTables}; not before the last ones are gone. */
  #keepMemory(): void {
    if (this.#isShrinking) return;
    this.#isShrinking = true;
    const check = this.#memory
      .check()
      .catch((error: Error) => this.#log.warn(`memory can't be given up: ${error.message}`))
      .finally(() => {
        this.#isShrinking = false;
      });
    this.#sweep = this.#sweep.then(() => check);
  }

  /** What they held is made again as it is needed, at the cost of some CPU time. In turns: all at once takes too long. */
  async #dropCaches(): Promise<void> {
    await runInSlices(this.#store.dropHalf());
    this.#frames.forget();
    this.#maker.forget();
    this.#workers.release();
    await collectBetweenWork(() => this.#tracer.native.beginCollection());
    this.#tracer.native.releaseFreeMemory();
  }

  #releaseMemory(): void {
    if (performance.now() - this.#releasedAtMs < RELEASE_MEMORY_MS) return;
    this.#releasedAtMs = performance.now();
    this.#tracer.native.releaseFreeMemory();
    if (performance.now() - this.#releasedCodeAtMs < this.#releaseCodeWaitMs) return;
    this.#releasedCodeAtMs = performance.now();
    this.#releaseCodeWaitMs = Math.min(this.#releaseCodeWaitMs * 4, MAX_RELEASE_CODE_MS);
    this.#tracer.native.releaseCode();
  }

  /** Beside the intervals: each table that goes waits for a grace period of the kernel. */
  #sweepTables(): void {
    if (this.#stopped || performance.now() - this.#sweptAtMs < TABLE_SWEEP_MS) return;
    this.#sweptAtMs = performance.now();
    this.#sweep = this.#sweep
      .then(() => this.#tracer.tables.dropIdle(this.#idleTables, () => this.#stopped))
      .catch((error: Error) => this.#log.warn(`tables that are not used can't be dropped: ${error.message}`));
  }
}

/** How much more is kept than on a machine with few CPUs: distinct stacks come with samples. */
function scaleOf({ samplesPerSecond }: ControllerOptions): number {
  const scale = (samplesPerSecond * onlineCpus().length) / USUAL_SAMPLES_A_SECOND;
  return Math.min(Math.max(scale, 1), MAX_SCALE);
}

function* followedBy(steps: Steps, act: () => void): Generator<void, void> {
  yield* steps;
  act();
}

const prefixed = (prefix: string, stats: Record<string, number>): Record<string, number> =>
  Object.fromEntries(Object.entries(stats).map(([name, value]) => [`${prefix}.${name}`, value]));
