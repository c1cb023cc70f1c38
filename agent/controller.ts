/**
 * Wires the parts of the agent, starts them in order and stops them in reverse:
 *
 *   tracer -> records -> trace handler, process manager, executables
 *   every interval: trace handler -> profile maker -> sink (the reporter, or a recording)
 */

import type { Pid } from '../common/base/brand.ts';
import { APPROXIMATE_LINES } from '../common/profile/model/approximate-lines.ts';
import { loadNative } from './base/native.ts';
import type { ControllerOptions } from './controller-options.ts';
import { addParts } from './counted-parts.ts';
import { EventProbes } from './events/event-probes.ts';
import { sampledEvents, sourceTypes } from './events/event-types.ts';
import { Executables } from './executables/executables.ts';
import { FirstSamples } from './first-samples.ts';
import { onlineCpus } from './host/cpus.ts';
import { type IntervalOptions, Intervals, type ProfileSink } from './intervals.ts';
import { JitFrames } from './jit/jit-frames.ts';
import { type CodeTables, ProcessCode } from './jit/process-code.ts';
import { makeCpuBudget, makeMemoryBudget } from './limits/budgets.ts';
import { LoopDelay } from './limits/loop-delay.ts';
import { Maintenance } from './maintenance.ts';
import { PdbLines } from './pdb/pdb-lines.ts';
import { preloadTables } from './preload-tables.ts';
import { CgroupTargets } from './processes/cgroup-targets.ts';
import { addWithDescendants } from './processes/descendants.ts';
import { ForeignFiles } from './processes/foreign-files.ts';
import { ForeignReader } from './processes/foreign-reader.ts';
import { Penalties } from './processes/penalties.ts';
import { readOnCpuNs } from './processes/proc-files.ts';
import { ProcessContexts } from './processes/process-contexts.ts';
import { ProcessManager } from './processes/process-manager.ts';
import { RootViews } from './processes/root-views.ts';
import { RecordTakers } from './record-takers.ts';
import type { Clock } from './runtimes/naming-time.ts';
import { readPages } from './runtimes/process-memory.ts';
import { ProcessRuntimes, type RuntimeFiles } from './runtimes/process-runtimes.ts';
import { findRuntimeFiles } from './runtimes/runtime-file.ts';
import { RuntimeFrames } from './runtimes/runtime-frames.ts';
import { RUNTIMES } from './runtimes/runtimes.gen.ts';
import { tellRefused, tellUnsupported, tellUnverified } from './runtimes/verified.ts';
import { Sampling } from './sampling.ts';
import { SourceMaps } from './source-maps/source-maps.ts';
import { StatsRegistry } from './stats-registry.ts';
import { Debuginfod } from './symbolizer/debuginfod/debuginfod.ts';
import { BpfCode } from './symbolizer/kernel/bpf-code.ts';
import { Kernel } from './symbolizer/kernel/kernel.ts';
import { ThreadContexts } from './thread-contexts/thread-contexts.ts';
import type { EventTotals } from './tracer/event-sources.ts';
import { IdleTables } from './tracer/idle-tables.ts';
import { Tracer } from './tracer/tracer.ts';
import { FrameResolver } from './traces/frame-resolver.ts';
import type { KeysOf } from './traces/labels.ts';
import { LiveHeap } from './traces/live-heap.ts';
import { HOST, ProfileMaker } from './traces/profile-maker.ts';
import { Stacks } from './traces/stacks.ts';
import { ThreadTimes } from './traces/thread-times.ts';
import { TraceHandler } from './traces/trace-handler.ts';
import { TraceStore } from './traces/trace-store.ts';
import { createFileWorkers } from './workers/file-workers.ts';
import type { WorkerPool } from './workers/worker-pool.ts';

export interface Log {
  info(message: string): void;
  warn(message: string): void;
  debug(message: string): void;
}

/** Caches of traces and frames on a machine with few CPUs; with more samples a second they are larger. */
const TRACE_BYTES = 6 << 20;
const FRAMES = 32_768;
const FRAMES_A_LOCATION = 2.5;
const USUAL_SAMPLES_A_SECOND = 1000;
const MAX_SCALE = 4;
/** The begin of a recording waits no longer until all samples from before it are taken, which are no part of it. */
const MAX_BEGIN_MS = 2000;

export class Controller {
  readonly #options: ControllerOptions;
  readonly #log: Log;
  readonly #tracer: Tracer;
  readonly #records: RecordTakers;
  readonly #kernel: Kernel;
  readonly #processes = new ProcessManager();
  readonly #views = new RootViews();
  readonly #penalties = new Penalties();
  readonly #reader = new ForeignReader({ penalties: this.#penalties });
  readonly #files = new ForeignFiles({ penalties: this.#penalties });
  readonly #threadContexts: ThreadContexts;
  readonly #contexts: ProcessContexts | undefined;
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
  readonly #pdbs: PdbLines;
  readonly #frames: FrameResolver;
  readonly #stacks: Stacks;
  readonly #threadTimes: ThreadTimes;
  readonly #liveHeap: LiveHeap;
  readonly #maker: ProfileMaker;
  readonly #sampling: Sampling;
  readonly #loopDelay = new LoopDelay();
  readonly #intervals: Intervals;
  readonly #maintenance: Maintenance;
  readonly #firstSamples: FirstSamples;
  readonly #stats = new StatsRegistry();
  readonly #cgroups: CgroupTargets | undefined;
  #probes: EventProbes | undefined;
  /** The last event totals, once the agent is stopped. */
  #eventTotals: EventTotals[] | undefined;
  #stopped = false;

  private constructor(options: ControllerOptions, sink: ProfileSink, log: Log, kernel: Kernel) {
    this.#options = options;
    this.#log = log;
    this.#kernel = kernel;
    const scale = scaleOf(options);
    this.#store = new TraceStore({
      maxBytes: TRACE_BYTES * scale,
      forget: (low, high) => this.#tracer.seen.forget(low, high),
    });
    const sources = sourceTypes(options.events?.specs);
    const keysOf: KeysOf = (pid) => this.#threadContexts.keysOf(pid);
    this.#traces = new TraceHandler(this.#store, { origins: sources.length, keysOf });
    this.#tracer = this.#openTracer(options);
    const warn = (message: string): void => log.warn(message);
    this.#debuginfod = options.debuginfod && new Debuginfod(options.debuginfod, warn);
    this.#workers = this.#fileWorkers(options);
    this.#threadContexts = new ThreadContexts(this.#parts());
    this.#contexts =
      options.labels === false
        ? undefined
        : new ProcessContexts(this.#files, this.#processes, this.#threadContexts);
    this.#executables = new Executables({
      symbols: options.symbols,
      tables: this.#tracer.tables,
      workers: this.#workers,
      views: this.#views,
      files: this.#files,
      debuginfod: this.#debuginfod,
      onBetterNames: (key) => this.#frames.renameFile(key),
      onRuntime: tellUnverified(warn),
      onUnsupportedRuntime: tellUnsupported(warn),
    });
    this.#processCode = this.#codeWithoutFile();
    this.#idleTables = new IdleTables((key) => this.#executables.isThere(key));
    const reading = { reader: this.#reader, clock: this.#clock() };
    this.#attached = new ProcessRuntimes({
      runtimeOf: (key) => this.#executables.get(key)?.runtime,
      filesOf: (pid) => this.#runtimeFilesOf(pid),
      map: this.#tracer.attachments,
      onRefused: tellRefused(warn),
      onApproximateLines: (process) => this.#processes.noteAttribute(process, APPROXIMATE_LINES),
      ...reading,
    });
    this.#runtimes = new RuntimeFrames((key) => this.#executables.get(key)?.runtime, {
      factsOf: (pid, plugin) => this.#attached.factsOf(pid, plugin),
      baseOf: (pid, file) => this.#runtimeFilesOf(pid).places.find(({ key }) => key === file)?.base,
      ...reading,
      warn,
    });
    this.#sourceMaps = options.sourceMaps ? new SourceMaps(this.#workers, this.#views) : undefined;
    this.#pdbs = new PdbLines(this.#workers, this.#views);
    this.#frames = new FrameResolver(
      this.#executables,
      kernel,
      this.#runtimes,
      this.#jit,
      { pdb: this.#pdbs, ...(this.#sourceMaps && { 'source-map': this.#sourceMaps }) },
      FRAMES * scale,
    );
    this.#stacks = new Stacks(this.#store, this.#frames, (process) => this.#views.of(process));
    this.#maker = new ProfileMaker({
      periodNs: this.#tracer.periodNs,
      sources,
      stacks: this.#stacks,
      processes: this.#processes,
      maxLocations: (FRAMES * scale) / FRAMES_A_LOCATION,
      unixOffsetNs: () => this.#tracer.native.unixOffsetNs(),
    });
    this.#threadTimes = this.#countThreadTimes();
    this.#liveHeap = new LiveHeap({ ...this.#parts(), native: this.#tracer.native });
    this.#sampling = new Sampling(options, this.#tracer.events);
    this.#records = new RecordTakers({ ...this.#parts(), read: (files) => this.#read(files) }, warn);
    this.#intervals = this.#profileIntervals(sink);
    this.#maintenance = this.#maintain();
    this.#firstSamples = new FirstSamples(options, this.#parts());
    const { cgroups, excludedCgroups } = options;
    if (cgroups)
      this.#cgroups = new CgroupTargets({ groups: cgroups, except: excludedCgroups }, this.#tracer);
    else if (excludedCgroups) this.#cgroups = new CgroupTargets({ groups: excludedCgroups }, this.#tracer);
  }

  /** Throws CannotProfile. */
  #openTracer(options: ControllerOptions): Tracer {
    return new Tracer(
      {
        ...options,
        ...sampledEvents(options),
        runtimes: RUNTIMES,
        findCode: (name) => this.#kernel.rangeOf(name),
        readPages: (pid, addresses) => readPages(this.#reader, pid, addresses),
        onThreads: options.offCpu?.isOfLocks
          ? () => {}
          : (threads, nowNs) => this.#threadTimes.onThreads(threads, nowNs),
      },
      {
        beginBatch: () => this.#records.beginBatch(),
        onRecord: (buffer, at, size) => this.#records.onRecord(buffer, at, size),
        endBatch: () => this.#records.endBatch(),
        drained: () => this.#records.drained(),
      },
      (message) => this.#log.warn(message),
    );
  }

  #countThreadTimes(): ThreadTimes {
    return new ThreadTimes({
      processes: this.#processes,
      host: HOST,
      unixOffsetNs: () => this.#tracer.native.unixOffsetNs(),
      onCpuNs: (tid) => readOnCpuNs('/proc', tid),
    });
  }

  /** The parts by name, for functions that take several of them. */
  #parts() {
    return {
      tracer: this.#tracer,
      traces: this.#traces,
      threadTimes: this.#threadTimes,
      liveHeap: this.#liveHeap,
      store: this.#store,
      stacks: this.#stacks,
      frames: this.#frames,
      maker: this.#maker,
      processes: this.#processes,
      contexts: this.#contexts,
      views: this.#views,
      executables: this.#executables,
      debuginfod: this.#debuginfod,
      idleTables: this.#idleTables,
      kernel: this.#kernel,
      attached: this.#attached,
      runtimes: this.#runtimes,
      reader: this.#reader,
      files: this.#files,
      jit: this.#jit,
      processCode: this.#processCode,
      sourceMaps: this.#sourceMaps,
      pdbs: this.#pdbs,
      workers: this.#workers,
      records: this.#records,
      intervals: this.#intervals,
    };
  }

  /** Reads files that no sample has come to yet; they are asked for again then. */
  #runtimeFilesOf(pid: Pid): RuntimeFiles {
    const found = findRuntimeFiles(pid, this.#executables.all(), this.#reader);
    if (found.unmet.length > 0) this.#read(found.unmet);
    return found;
  }

  #read(files: readonly string[]): void {
    void preloadTables(files, this.#tracer, this.#executables, this.#files);
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

  #profileIntervals(sink: ProfileSink): Intervals {
    return new Intervals(this.#options, {
      ...this.#parts(),
      sink,
      afterwards: async (untilNs) => {
        this.#loopDelay.takeInterval();
        this.#processes.releaseUntil(untilNs);
        this.#maintenance.afterInterval();
        if (await this.#kernel.refresh()) this.#frames.forgetKernel();
      },
      warn: (message) => this.#log.warn(message),
    });
  }

  /** Also registers what all parts count. */
  #maintain(): Maintenance {
    const tracer = this.#tracer;
    const { maxMemoryBytes: maxBytes, maxTableBytes, maxCpu, watchLoop } = this.#options;
    const warn = (message: string): void => this.#log.warn(message);
    const parts = { ...this.#parts(), native: tracer.native, maps: tracer, tables: tracer.tables, warn };
    const cpu = makeCpuBudget(maxCpu, {
      ...parts,
      isBehind: () => tracer.isBehind() || this.#intervals.isLate,
      shed: (share) => tracer.shed(share),
    });
    const memory = makeMemoryBudget(
      { maxBytes, maxTableBytes },
      { ...parts, isStopped: () => this.#stopped },
    );
    const loopDelay = watchLoop ? this.#loopDelay : undefined;
    addParts(this.#stats, { ...parts, memory, cpu, loopDelay });
    this.#stats.add('processes', () => this.#contexts?.stats);
    this.#stats.add('threadContexts', () => this.#threadContexts.stats);
    this.#stats.add('targets', () => this.#cgroups?.stats);
    return new Maintenance({ ...parts, cpu, memory, look: () => this.#intervals.flushIfFull() });
  }

  /** Loads and attaches everything, and samples from then on. Throws CannotProfile. */
  static async start(options: ControllerOptions, sink: ProfileSink, log: Log): Promise<Controller> {
    const kernel = new Kernel({ bpf: new BpfCode(loadNative()) });
    const controller = new Controller(options, sink, log, kernel);
    if (options.targets) controller.#addTargets(options.targets);
    controller.#cgroups?.start();
    // after the programs are loaded, so that their names are among the symbols: reading these twice costs twice as much
    await kernel.open();
    if (kernel.unavailable !== '') log.warn(kernel.unavailable);
    await controller.#executables.loadVdso();
    await controller.#firstSamples.prepare();
    await controller.#tracer.start();
    await controller.#setProbes();
    controller.#sampling.start();
    controller.#firstSamples.hasten();
    if (options.watchLoop) controller.#loopDelay.start();
    controller.#intervals.start();
    controller.#maintenance.start();
    controller.#contexts?.start();
    return controller;
  }

  /** Throws CannotProfile. */
  async #setProbes(): Promise<void> {
    const { otherEvents } = this.#tracer;
    if (!otherEvents) return;
    this.#probes = new EventProbes(this.#workers, otherEvents, (message) => this.#log.warn(message));
    this.#stats.add('probes', () => this.#probes?.stats);
    await this.#probes.start(otherEvents.specs, this.#options.expectedFiles);
  }

  /** Of --event: all that happened, whatever was sampled. */
  eventTotals(): EventTotals[] {
    return this.#eventTotals ?? this.#tracer.otherEvents?.totals() ?? [];
  }

  /**
   * Stops sampling, sends what was counted, detaches everything.
   *
   * @param namingMs how long what was sampled last may wait for its names; for all of them unless given
   */
  async stop(namingMs?: number): Promise<void> {
    if (this.#stopped) return;
    this.#cgroups?.stop();
    this.#contexts?.stop();
    this.#stopped = true;
    const naming = namingMs === undefined ? undefined : setTimeout(() => this.#stopNaming(), namingMs);
    this.#intervals.stop();
    this.#maintenance.stop();
    this.#firstSamples.stop();
    this.#loopDelay.stop();
    this.#sampling.stop();
    await this.#probes?.stop();
    this.#liveHeap.read();
    await this.#tracer.stopSampling();
    this.#liveHeap.report();
    this.#eventTotals = this.eventTotals();
    await this.#intervals.finish();
    clearTimeout(naming);
    await this.#processCode.stop();
    await Promise.all([
      this.#threadContexts.stop(),
      this.#executables.stop(),
      this.#jit.stop(),
      this.#stopNaming(),
      this.#maintenance.settled(),
    ]);
    await this.#workers.stop();
    this.#stats.freeze();
    await this.#tracer.close();
    this.#reader.close();
    this.#files.close();
  }

  /** Profiles that wait for names go on without them. */
  async #stopNaming(): Promise<void> {
    await Promise.all([this.#executables.names.stop(), this.#sourceMaps?.stop(), this.#pdbs.stop()]);
  }

  /**
   * Resolves when the tables of all files that were reported so far are there, or after `limitMs`. False: some threads that
   * wait already have no stack yet.
   */
  async tablesReady(limitMs: number): Promise<boolean> {
    const end = performance.now() + limitMs;
    const waiting = await this.#tracer.takeWaiting();
    this.#tracer.drain();
    await this.#executables.settled(Math.max(0, end - performance.now()));
    return waiting === 0;
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

  /** A recording begins: from `onBegin` on the sink gets what was sampled since, and event totals are those since. */
  async begin(onBegin: () => void): Promise<void> {
    await this.#tracer.catchUp(MAX_BEGIN_MS);
    await this.#intervals.beginAnew(() => {
      if (this.#stopped) return;
      this.#tracer.beginWaits();
      this.#liveHeap.begin();
      const beginNs = this.#tracer.native.monotonicNs();
      this.#threadTimes.takeProfile(beginNs);
      this.#traces.begin(beginNs);
      this.#tracer.otherEvents?.begin();
      onBegin();
    });
  }

  /** When the last was counted, by performance.now(); undefined while more is. */
  get stoppedAtMs(): number | undefined {
    return this.#tracer.stoppedAtMs;
  }

  /** Makes a profile of what was counted so far and hands it to the sink. */
  flush(): Promise<void> {
    return this.#intervals.flush();
  }

  changeIntervals(options: IntervalOptions): void {
    this.#intervals.change(options);
  }

  /** Every counter of the agent by name, the kernel side's first; losses begin with what lost them. */
  counters(): Record<string, number> {
    return this.#stats.read();
  }
}

/** How much more is kept than on a machine with few CPUs: distinct stacks come with samples. */
function scaleOf({ samplesPerSecond }: ControllerOptions): number {
  const scale = (samplesPerSecond * onlineCpus().length) / USUAL_SAMPLES_A_SECOND;
  return Math.min(Math.max(scale, 1), MAX_SCALE);
}
