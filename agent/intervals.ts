/** Makes a profile of what was sampled, interval by interval, and hands it on. */
import type { Profile } from '../common/profile/model/profile.ts';
import type { Tracer } from './tracer/tracer.ts';
import type { Interval } from './traces/interval.ts';
import type { LiveHeap } from './traces/live-heap.ts';
import type { ProfileMaker } from './traces/profile-maker.ts';
import type { ThreadTimes } from './traces/thread-times.ts';
import type { TraceHandler } from './traces/trace-handler.ts';

export interface ProfileSink {
  push(profile: Profile): void | Promise<void>;
}

export interface IntervalOptions {
  /** Time between two profiles, and its random share either way; the first one comes after a second. */
  intervalMs: number;
  jitter: number;
}

export interface IntervalParts {
  tracer: Pick<Tracer, 'drain' | 'isDrained' | 'catchUp' | 'reportWaiting'> & {
    native: Pick<Tracer['native'], 'monotonicNs'>;
  };
  traces: Pick<TraceHandler, 'takeInterval' | 'release' | 'waiting'>;
  maker: Pick<ProfileMaker, 'make'>;
  threadTimes: Pick<ThreadTimes, 'takeProfile'>;
  liveHeap: Pick<LiveHeap, 'isAskedFor' | 'read' | 'report' | 'leaveOut'>;
  sink: ProfileSink;
  /** After each interval: all that was sampled before `untilNs` of the monotonic clock is handed on. */
  afterwards(untilNs: bigint): Promise<void>;
  warn(message: string): void;
}

/** Whoever has just started it waits for something to see, and for whether a receiver takes it. */
const FIRST_INTERVAL_MS = 1000;
/** A profile that takes longer than the interval is late, with short ones not before. */
const LATE_MS = 5000;
/** An interval with so many samples ends early: what a profile takes while it is made grows with them. */
const FULL_INTERVAL_SAMPLES = 30_000;
/** An interval waits no longer for the records that say whose the live heap is. */
const MAX_CATCH_UP_MS = 1000;

/** Records come in the order of time: those of before the newest sample were taken. */
function takenUntil({ lastKtimeNs }: Interval, beganNs: bigint): bigint {
  const takenNs = BigInt(lastKtimeNs);
  return takenNs < beganNs ? takenNs : beganNs;
}

export class Intervals {
  /** Samples that were handed on; and those whose interval could not be made into a profile, which is an error of the agent's. */
  readonly stats = { reported: 0, failed: 0 };
  #options: IntervalOptions;
  readonly #parts: IntervalParts;
  #timer: NodeJS.Timeout | undefined;
  #flushing: Promise<void> = Promise.resolve();
  #isFlushing = false;
  /** When the newest flush began. */
  #flushedAtMs = 0;
  #isStopped = false;

  constructor(options: IntervalOptions, parts: IntervalParts) {
    this.#options = options;
    this.#parts = parts;
  }

  start(): void {
    this.#schedule(FIRST_INTERVAL_MS);
  }

  /** Ends the interval now. */
  flush(): Promise<void> {
    return this.#inTurn(() => this.#flush());
  }

  /** As {@link flush}; what `begin` does comes before anything else is handed on. */
  beginAnew(begin: () => void): Promise<void> {
    return this.#inTurn(() => this.#flush().then(begin));
  }

  #inTurn(act: () => Promise<void>): Promise<void> {
    const done = this.#flushing.then(act);
    this.#flushing = done.catch(() => {});
    return done;
  }

  flushIfFull(): void {
    if (this.#parts.traces.waiting >= FULL_INTERVAL_SAMPLES && !this.#isFlushing) void this.flush();
  }

  /** The profile of an interval takes as long as the interval. */
  get isLate(): boolean {
    const limitMs = Math.max(this.#options.intervalMs, LATE_MS);
    return this.#isFlushing && performance.now() - this.#flushedAtMs > limitMs;
  }

  /** From the interval after the one under way. */
  change(options: IntervalOptions): void {
    this.#options = options;
  }

  /** No more intervals but those that {@link flush} and {@link finish} end. */
  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  /** Hands on what is left, once nothing is sampled any more. */
  async finish(): Promise<void> {
    // a record that a CPU is still writing holds back those behind it
    do {
      await this.flush();
      this.#parts.tracer.drain();
    } while (this.#parts.traces.waiting > 0);
  }

  #schedule(maxMs = Infinity): void {
    if (this.#isStopped) return;
    const { intervalMs, jitter } = this.#options;
    const delay = Math.min(intervalMs * (1 + jitter * (Math.random() * 2 - 1)), maxMs);
    this.#timer = setTimeout(() => void this.flush().then(() => this.#schedule()), delay);
  }

  async #flush(): Promise<void> {
    const { tracer, traces, threadTimes, sink, afterwards, warn } = this.#parts;
    this.#isFlushing = true;
    this.#flushedAtMs = performance.now();
    try {
      const beganNs = tracer.native.monotonicNs();
      const isWhole = !this.#isStopped && (await this.#takeRecords());
      const endNs = tracer.native.monotonicNs();
      const interval = traces.takeInterval();
      await this.#report(interval);
      const times = threadTimes.takeProfile(endNs);
      if (times) await sink.push(times);
      await afterwards(isWhole ? beganNs : takenUntil(interval, beganNs));
    } catch (error) {
      // one interval is lost, the agent goes on
      warn(`an interval could not be made into a profile: ${(error as Error).stack}`);
    } finally {
      this.#isFlushing = false;
    }
  }

  /** False: of those that waited some were not taken. */
  async #takeRecords(): Promise<boolean> {
    const { tracer, liveHeap } = this.#parts;
    tracer.reportWaiting();
    if (liveHeap.isAskedFor) return this.#reportLiveHeap();
    tracer.drain();
    return tracer.isDrained;
  }

  async #reportLiveHeap(): Promise<boolean> {
    const { tracer, liveHeap } = this.#parts;
    liveHeap.read();
    const isWhole = await tracer.catchUp(MAX_CATCH_UP_MS);
    if (isWhole) liveHeap.report();
    else liveHeap.leaveOut();
    return isWhole;
  }

  async #report(interval: Interval): Promise<void> {
    const { traces, maker, sink } = this.#parts;
    if (interval.samples === 0) {
      traces.release(interval);
      return;
    }
    try {
      const profiles = await maker.make(interval).finally(() => traces.release(interval));
      for (const profile of profiles) await sink.push(profile);
      this.stats.reported += interval.samples;
    } catch (error) {
      this.stats.failed += interval.samples;
      throw error;
    }
  }
}
