/**
 * Owns the BPF object, its perf events and its ring buffer. Records are drained in batches: once a second, or as
 * soon as BPF asks for it (a new file, a ring buffer that fills up); their meaning is left to the consumer.
 */

import { type Pid, toPid } from '../../common/base/brand.ts';
import { loadNative, type Native, type NativeBpfObject, type NativeRing } from '../base/native.ts';
import type { EventSourcesOptions } from '../events/event-types.ts';
import { onlineCpus } from '../host/cpus.ts';
import type { RuntimePlugin } from '../interpreters/contract.ts';
import { BPF_COUNTERS, type BpfCounter } from '../records/counters.gen.ts';
import { Targets } from '../records/records.gen.ts';
import { Attachments } from './attachments.ts';
import { BpfPrograms, type BpfSettings, explainLoadFailure } from './bpf-object.ts';
import type { EventSources, FindCode } from './event-sources.ts';
import type { ReadPages } from './kept-pages.ts';
import { openMapBytes } from './map-bytes.ts';
import type { OffCpuOptions, OnThreads } from './off-cpu.ts';
import { CPU_CLOCK, PerfEvents } from './perf-events.ts';
import { ProcessCodeMap } from './process-code-map.ts';
import { type RecordConsumer, RecordStream } from './record-stream.ts';
import type { Samplers } from './samplers.ts';
import { SEEN_BYTES, SeenTraces } from './seen-traces.ts';
import { Tables } from './tables.ts';

export interface TracerOptions {
  samplesPerSecond: number;
  sendIdleFrames: boolean;
  maxUserFrames: number;
  /** Sample only these processes and their children; undefined: every process. */
  targets?: Pid[];
  /** Sample only the processes of these cgroups and their children; undefined: every process. */
  cgroups?: readonly string[] | undefined;
  /** None of the processes of these cgroups is sampled, chosen or not. */
  excludedCgroups?: readonly string[] | undefined;
  maxTableBytes: number;
  /** All runtimes that can be unwound: each is loaded once it is detected. */
  runtimes: readonly RuntimePlugin[];
  /** Limit for the agent and its BPF maps; undefined: none. */
  maxMemoryBytes?: number;
  /** See {@link BpfSettings}. */
  labels?: boolean | undefined;
  goroutineIds?: boolean | undefined;
  /** Undefined: waits are not sampled. */
  offCpu?: OffCpuOptions | undefined;
  /** Undefined: no events but the clock are sampled. */
  events?: EventSourcesOptions | undefined;
  /** No sample of CPU time is taken: others were asked for. */
  withoutClock?: boolean | undefined;
  /** Finds code of the kernel, once its symbols are read, which is before start(). */
  findCode?: FindCode;
  onThreads?: OnThreads;
  /** Undefined: no stacks are taken of threads that wait already. */
  readPages?: ReadPages | undefined;
}

const DRAIN_INTERVAL_MS = 1000;
/** Twice as many as the map has room for. */
const MAX_TARGETS = 32_768;
/** A drain that takes longer is behind: with the second before it, one of the ring buffer's four is left by then. */
const MAX_BEHIND_MS = 2000;
const HOTPLUG_INTERVAL_MS = 5000;

const SETTINGS = { maxFiles: 16384, maxTables: 8192 };

/** A sample with a new trace of usual depth, bytes. */
const USUAL_RECORD_BYTES = 1024;
/** Seconds of samples that the ring buffer holds undrained: a busy machine may keep the agent waiting that long. */
const RING_SECONDS = 4;

const MAX_RING_BYTES = 32 << 20;
/** Share of the agent's memory; the process maps the ring buffer twice, so each MiB of it counts as three. */
const MAX_RING_SHARE = 1 / 32;

/** A power of two from 1 to 32 MiB. */
export function ringBytesFor(samplesPerSecond: number, cpus: number, maxMemoryBytes = Infinity): number {
  const wanted = samplesPerSecond * cpus * USUAL_RECORD_BYTES * RING_SECONDS;
  const limit = Math.min(2 ** Math.floor(Math.log2(maxMemoryBytes * MAX_RING_SHARE)), MAX_RING_BYTES);
  return Math.max(Math.min(2 ** Math.ceil(Math.log2(wanted)), limit), 1 << 20);
}

/** Of the processes in the map `targets`. */
function meaningOfTargets({ targets, cgroups, excludedCgroups }: TracerOptions): number {
  if (targets ?? cgroups) return Targets.CHOSEN;
  return excludedCgroups ? Targets.EXCLUDED : Targets.NONE;
}

function targetKey(pid: Pid): Buffer {
  const key = Buffer.alloc(4);
  key.writeUInt32LE(pid);
  return key;
}

const periodOf = (samplesPerSecond: number): number => Math.round(1e9 / samplesPerSecond);

export class Tracer {
  readonly native: Native;
  readonly tables: Tables;
  /** Between two ticks of a CPU's timer. */
  readonly periodNs: number;
  /** The CPUs' timers. */
  readonly events: PerfEvents;
  readonly samplers: Samplers;
  readonly attachments: Attachments;
  readonly processCode: ProcessCodeMap;
  readonly seen: SeenTraces;
  readonly #programs: BpfPrograms;
  readonly #hasClock: boolean;
  readonly #findCode: FindCode;
  readonly #object: NativeBpfObject;
  readonly #consumer: RecordConsumer;
  #ring: NativeRing | undefined;
  #records: RecordStream | undefined;
  #timers: NodeJS.Timeout[] = [];
  #lostInRing = 0;
  #stoppedAtMs: number | undefined;
  #fixedMaps: { runtimes: number; bytes: number } | undefined;

  /** Loads and verifies, but does not sample yet. Throws CannotProfile. */
  constructor(options: TracerOptions, consumer: RecordConsumer, warn: (message: string) => void) {
    this.#consumer = consumer;
    this.native = loadNative();
    this.#findCode = options.findCode ?? (() => undefined);
    const targets = meaningOfTargets(options);
    const settings: BpfSettings = {
      ...SETTINGS,
      ringBytes: ringBytesFor(options.samplesPerSecond, onlineCpus().length, options.maxMemoryBytes),
      maxUserFrames: options.maxUserFrames,
      sendIdleFrames: options.sendIdleFrames,
      targets,
      runtimes: options.runtimes,
      labels: options.labels,
      goroutineIds: options.goroutineIds,
      offCpu: options.offCpu,
      events: options.events,
      findCode: this.#findCode,
      onThreads: options.onThreads,
      readPages: options.readPages,
    };
    this.#programs = new BpfPrograms(this.native, settings, warn);
    this.#object = this.#programs.base;
    this.samplers = this.#programs.samplers;
    this.seen = new SeenTraces(this.native.mapMemory(this.#object.mapFd('seen'), SEEN_BYTES));
    this.attachments = new Attachments(this.native, this.samplers);
    this.processCode = new ProcessCodeMap(this.native, this.#object);
    this.tables = new Tables(this.native, this.#object, this.samplers, {
      maxTables: SETTINGS.maxTables,
      maxBytes: options.maxTableBytes,
      runtimes: options.runtimes,
    });
    this.periodNs = periodOf(options.samplesPerSecond);
    this.#hasClock = !options.withoutClock;
    this.events = this.#clock(this.periodNs, options.sendIdleFrames, this.#object.programFd('tick'));
    // before the first target is there, and with the exits: else children would be missed, and numbers kept for others
    if (targets !== Targets.NONE) this.#object.attachRawTracepoint('on_fork', 'sched_process_fork');
    if (targets === Targets.EXCLUDED) this.#object.attachRawTracepoint('on_task_free', 'sched_process_free');
    this.#object.attachRawTracepoint('on_exec', 'sched_process_exec');
    this.#object.attachRawTracepoint('on_exit', 'sched_process_exit');
  }

  #clock(periodNs: number, includeIdle: boolean, programFd: number): PerfEvents {
    return new PerfEvents(this.native, {
      spreadNs: periodNs,
      open: (cpu) => this.native.perfOpen(cpu, { ...CPU_CLOCK, period: periodNs, includeIdle }, programFd),
    });
  }

  /**
   * Makes BPF report a file as if the agent had been sampled in it. Call the returned function once the file was opened.
   * Throws where the file can't be mapped.
   */
  reportFile(fd: number): () => void {
    this.#openRing();
    const address = this.native.mapFile(fd);
    try {
      this.native.runProgram(this.#object.programFd('report_mapped'), address);
    } catch (error) {
      this.native.unmapFile(address);
      throw error;
    }
    return () => this.native.unmapFile(address);
  }

  #openRing(): void {
    this.#ring ??= new this.native.Ring(this.#object.mapFd('records'), () => this.drain());
    this.#records ??= new RecordStream(this.#ring, this.#consumer);
  }

  async start(): Promise<void> {
    this.#openRing();
    await this.#followCpus();
    this.#timers = [
      setInterval(() => this.#look(), DRAIN_INTERVAL_MS),
      setInterval(() => void this.#followCpus().catch(() => {}), HOTPLUG_INTERVAL_MS),
    ];
    if (this.#hasClock) await this.events.enable();
    await this.#startOffCpu();
    await this.#startEvents();
  }

  async #followCpus(): Promise<void> {
    const cpus = onlineCpus();
    await this.#programs.events?.followCpus(cpus);
    if (this.#hasClock) await this.events.follow(cpus);
  }

  /** Counts stacks of threads that wait already; undefined: none are taken. */
  get waitingStats(): Readonly<Record<string, number>> | undefined {
    return this.#programs.offCpu?.waitingStats;
  }

  /** The events of --event, beside or in place of the clock. */
  get otherEvents(): EventSources | undefined {
    return this.#programs.events;
  }

  /** See LiveHeap. */
  get liveHeapFd(): number | undefined {
    return this.#programs.events?.liveHeapFd;
  }

  /** Throws CannotProfile. */
  async #startEvents(): Promise<void> {
    const { events } = this.#programs;
    if (!events) return;
    try {
      await this.samplers.addFollower(events);
      await events.start(onlineCpus(), this.#findCode);
    } catch (error) {
      throw explainLoadFailure(error as Error);
    }
  }

  /** Throws CannotProfile. */
  async #startOffCpu(): Promise<void> {
    const { offCpu } = this.#programs;
    if (!offCpu) return;
    try {
      await this.samplers.addFollower(offCpu);
      await offCpu.start();
    } catch (error) {
      throw explainLoadFailure(error as Error);
    }
  }

  /** Makes BPF report waits that last. */
  reportWaiting(): void {
    this.#programs.offCpu?.reportWaiting();
  }

  /** Waits until now are reported, or left out: what is reported afterwards has begun now. */
  beginWaits(): void {
    this.#programs.offCpu?.begin();
  }

  /** Takes stacks of threads that wait already; returns how many have to wait until unwind information is there. */
  async takeWaiting(): Promise<number> {
    return (await this.#programs.offCpu?.takeWaiting()) ?? 0;
  }

  #look(): void {
    this.drain();
    if (this.#programs.offCpu?.isWorthALook) void this.takeWaiting();
    // most machines never need it: it is loaded once a stack was cut for want of it
    if (this.samplers.mayDefer && this.#counter('stacks_not_deferred') > 0) void this.samplers.deferStacks();
  }

  /** False where the map has no room for more. */
  addTarget(pid: Pid): boolean {
    const one = Buffer.alloc(4);
    one.writeUInt32LE(1);
    try {
      this.native.mapUpdate(this.#object.mapFd('targets'), targetKey(pid), one, 0);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'E2BIG') return false;
      throw error;
    }
  }

  removeTarget(pid: Pid): void {
    this.native.mapDelete(this.#object.mapFd('targets'), targetKey(pid));
  }

  /** Those that were added, and those of their descendants that live. */
  targets(): Pid[] {
    const pids: Pid[] = [];
    let key: Buffer | undefined;
    do {
      key = this.native.mapNextKey(this.#object.mapFd('targets'), key, 4);
      if (key) pids.push(toPid(key.readUInt32LE()));
      // one that goes meanwhile makes the walk begin again
    } while (key && pids.length < MAX_TARGETS);
    return [...new Set(pids)];
  }

  /** False once all of them have ended, with their children. */
  get hasTargets(): boolean {
    return this.native.mapNextKey(this.#object.mapFd('targets'), undefined, 4) !== undefined;
  }

  /** Leaves out that share of the samples from now on, by chance: 0 none, at most 1. */
  shed(share: number): void {
    const value = Buffer.alloc(4);
    value.writeUInt32LE(Math.min(Math.round(share * 2 ** 32), 2 ** 32 - 1));
    this.native.mapUpdate(this.#object.mapFd('shed_share'), Buffer.alloc(4), value, 0);
  }

  /** Every counter of ebpf/counters.h, summed over the CPUs. */
  counters(): Record<BpfCounter, number> {
    const sums = this.native.sumPerCpu(this.#object.mapFd('counters'), 0, BPF_COUNTERS.length);
    return Object.fromEntries(BPF_COUNTERS.map(({ name }, i) => [name, sums[i] ?? 0])) as Record<
      BpfCounter,
      number
    >;
  }

  /**
   * True where user space does not keep up with the records: the ring buffer had no room for some since the last call, or a
   * drain does not come to an end.
   */
  isBehind(): boolean {
    const lost = this.#counter('traces_lost_ring') + this.#counter('samples_lost_ring');
    const isLosing = lost > this.#lostInRing;
    this.#lostInRing = lost;
    return isLosing || (this.#records?.behindMs ?? 0) > MAX_BEHIND_MS;
  }

  /** Reads one counter: each takes a system call. */
  #counter(name: BpfCounter): number {
    const index = BPF_COUNTERS.findIndex((counter) => counter.name === name);
    return this.native.sumPerCpu(this.#object.mapFd('counters'), index, 1)[0]!;
  }

  /** Kernel memory of all BPF maps, bytes. */
  get mapBytes(): number {
    const { runtimes } = this.samplers.stats;
    // maps other than tables come with runtimes only
    if (this.#fixedMaps?.runtimes !== runtimes) this.#fixedMaps = { runtimes, bytes: openMapBytes() };
    return this.#fixedMaps.bytes + this.tables.bytes;
  }

  /** Takes what waits in the ring buffer; the rest, if it takes long, in the next turns of the event loop. */
  drain(): void {
    this.#records?.drain();
  }

  /** Nothing of what waited at the last {@link drain} still waits. */
  get isDrained(): boolean {
    return (this.#records?.behindMs ?? 0) === 0;
  }

  /** Takes all that waits in the ring buffer now. False: that took longer than `maxMs`. */
  async catchUp(maxMs: number): Promise<boolean> {
    return (await this.#records?.catchUp(maxMs)) ?? true;
  }

  /** Stops the timers of all CPUs and takes what they left. */
  async stopSampling(): Promise<void> {
    this.events.disable();
    await this.#programs.offCpu?.stop();
    this.#programs.events?.stop();
    this.#stoppedAtMs = performance.now();
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [];
    await this.catchUp(Infinity);
  }

  /** When the last was counted, by performance.now(); undefined while more is. */
  get stoppedAtMs(): number | undefined {
    return this.#stoppedAtMs;
  }

  async close(): Promise<void> {
    this.events.close();
    this.#ring?.close();
    this.#ring = undefined;
    this.#records = undefined;
    await this.#programs.close();
  }
}
