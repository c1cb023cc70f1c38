/**
 * Sends encoded requests one after the other out of a bounded queue, with retries.
 *
 * Every sample is accounted for. At any time
 *   samplesPushed = samplesSent + samplesDroppedOverflow + samplesRefused + samplesRejectedPartial
 *                 + samplesDroppedStop + samplesTooLarge + samplesQueued
 * where the request on the wire is still the head of the queue. Samples here are sampling events. Of the dropped ones,
 * samplesDroppedUnanswered were sent at least once: a receiver that died or stalled may have them.
 */
import { type ObservedRequest, requestsSent } from '../common/base/observed.ts';
import type { ExportResult, Transport } from './exporter.ts';
import type { ConnectionOptions } from './grpc-client.ts';
import { type LinkHints, LinkLog, type SenderLog } from './link-log.ts';
import { type QueueEntry, RequestQueue } from './queue.ts';
import { countProfiles, splitRequest } from './request-parts.ts';
import { makeTransport } from './transport.ts';

export interface SenderOptions extends ConnectionOptions {
  /** Largest request before compression. */
  maxRequestBytes: number;
  /** A request that is refused for its size is split down to this size, then dropped. */
  minRequestBytes: number;
  maxQueueBytes: number;
  maxQueueEntries: number;
  requestTimeoutMs: number;
  /** Shortest and longest wait after a failure, unless the receiver asks for another (RetryInfo). */
  backoffMinMs: number;
  backoffMaxMs: number;
  /** What a person should know about how their settings were read; logged once. */
  notes: readonly string[];
  hints: LinkHints;
}

/** A receiver that asks for more than this is not believed. */
const MAX_RETRY_INFO_MS = 300_000;
/** Each request that got no answer in time is given twice as long, up to this. */
const MAX_REQUEST_TIMEOUT_MS = 60_000;

export type SenderStats = Record<
  | 'samplesPushed'
  | 'samplesSent'
  | 'samplesRefused'
  | 'samplesRejectedPartial'
  | 'samplesDroppedStop'
  | 'samplesTooLarge'
  | 'requestsSent'
  | 'retries'
  | 'samplesDroppedOverflow'
  | 'samplesDroppedUnanswered'
  | 'queueBytes'
  | 'queueEntries'
  | 'samplesQueued',
  number
>;

export class RequestSender {
  readonly #options: SenderOptions;
  readonly #transport: Transport;
  readonly #queue: RequestQueue;
  readonly #link: LinkLog;
  /** Falls where the receiver finds requests too large. */
  #maxRequestBytes: number;
  /** The limit never falls below what was taken, until that size is refused too. */
  #largestTaken = 0;
  /** The head of the queue while it is on the wire. */
  #sending: QueueEntry | undefined;
  #failures = 0;
  /** Times that the oldest request got no answer in time since one was answered. */
  #timeouts = 0;
  #backoff: NodeJS.Timeout | undefined;
  #flush: { done: Promise<void>; end(): void; endsAtMs: number } | undefined;
  #closed = false;
  #stoppedUnanswered = 0;
  readonly #counters = {
    samplesPushed: 0,
    samplesSent: 0,
    samplesRefused: 0,
    samplesRejectedPartial: 0,
    samplesDroppedStop: 0,
    samplesTooLarge: 0,
    requestsSent: 0,
    retries: 0,
  };

  constructor(options: SenderOptions, log: SenderLog, transport: Transport = makeTransport(options)) {
    this.#options = options;
    this.#transport = transport;
    this.#queue = new RequestQueue({ maxBytes: options.maxQueueBytes, maxEntries: options.maxQueueEntries });
    this.#link = new LinkLog(options.address, log, options.hints);
    this.#maxRequestBytes = options.maxRequestBytes;
    for (const note of options.notes) log.warn(note);
  }

  /** What a request may have now, in bytes before compression; larger ones are split. */
  get maxRequestBytes(): number {
    return this.#maxRequestBytes;
  }

  /** Takes a request. */
  push(entry: QueueEntry): void {
    this.#counters.samplesPushed += entry.samples;
    if (this.#closed) this.#counters.samplesDroppedStop += entry.samples;
    else this.#enqueue(entry);
    this.#sendNext();
  }

  /** Sends all that waits, without regard to backoff, for at most `timeoutMs`; what is left then is dropped and counted. */
  flush(timeoutMs: number): Promise<void> {
    if (this.#flush) return this.#flush.done;
    if (this.#closed || this.#queue.length === 0) return Promise.resolve();
    let resolve = (): void => {};
    const done = new Promise<void>((settle) => {
      resolve = settle;
    });
    // Not unref'd: the process is to live until all is sent.
    const timer = setTimeout(() => this.#dropAll(), timeoutMs);
    const end = (): void => {
      clearTimeout(timer);
      this.#flush = undefined;
      resolve();
    };
    this.#flush = { done, end, endsAtMs: performance.now() + timeoutMs };
    this.#failures = 0;
    this.#stopBackoff();
    this.#sendNext();
    return done;
  }

  /** Drops what still waits, counted, and closes the connection. */
  close(): void {
    if (this.#closed) return;
    this.#dropAll();
    this.#closed = true;
    this.#transport.close();
  }

  stats(): SenderStats {
    return {
      ...this.#counters,
      samplesDroppedOverflow: this.#queue.dropped.samples,
      samplesDroppedUnanswered: this.#queue.dropped.unansweredSamples + this.#stoppedUnanswered,
      queueBytes: this.#queue.bytes,
      queueEntries: this.#queue.length,
      samplesQueued: this.#queue.samples,
    };
  }

  #enqueue(entry: QueueEntry): void {
    if (entry.bytes.length <= this.#maxRequestBytes) {
      this.#queue.push(entry, this.#sending !== undefined);
      return;
    }
    for (const half of this.#halvesOf(entry)) this.#enqueue(half);
  }

  #sendNext(): void {
    if (this.#sending || this.#backoff || this.#closed) return;
    const entry = this.#queue.peek();
    if (!entry) {
      this.#flush?.end();
      return;
    }
    this.#sending = entry;
    const requestTimeoutMs = Math.min(
      this.#options.requestTimeoutMs * 2 ** this.#timeouts,
      Math.max(MAX_REQUEST_TIMEOUT_MS, this.#options.requestTimeoutMs),
    );
    const timeoutMs = this.#flush ? Math.min(requestTimeoutMs, this.#flushRemainingMs()) : requestTimeoutMs;
    const startMs = Date.now();
    void this.#transport.send(entry.bytes, timeoutMs).then((result) => {
      if (requestsSent.hasSubscribers) requestsSent.publish(observed(entry, startMs, result));
      // Otherwise a flush has given the entry up.
      if (this.#sending === entry) this.#settle(entry, result);
    });
  }

  #settle(entry: QueueEntry, result: ExportResult): void {
    this.#sending = undefined;
    if (result.kind === 'retry') {
      this.#link.unreachable(result);
      this.#counters.retries++;
      entry.mayHaveArrived = true;
      // A busy machine may need longer for a large request each time: it must get through in the end.
      if (result.code === 'DEADLINE_EXCEEDED') this.#timeouts = Math.min(this.#timeouts + 1, 30);
      // It may come back with another configuration.
      this.#maxRequestBytes = this.#options.maxRequestBytes;
      this.#waitToRetry(result.delayMs);
      return;
    }
    this.#failures = 0;
    this.#timeouts = 0;
    this.#queue.shift();
    if (result.kind === 'ok') {
      this.#noteSent(entry, result.rejectedProfiles, result.message);
    } else if (result.kind === 'refused') {
      this.#link.refused(result);
      this.#counters.samplesRefused += entry.samples;
    } else {
      this.#link.tooLarge(entry.bytes.length, result.message);
      this.#splitQueued(entry);
    }
    this.#sendNext();
  }

  /** OTLP counts rejected profiles, not samples: without knowing which, each is taken as of average size. */
  #noteSent(entry: QueueEntry, rejectedProfiles: number, message: string): void {
    this.#link.up();
    this.#counters.requestsSent++;
    this.#largestTaken = Math.max(this.#largestTaken, entry.bytes.length);
    this.#maxRequestBytes = Math.max(this.#maxRequestBytes, entry.bytes.length);
    let rejected = 0;
    if (rejectedProfiles > 0) {
      const share = rejectedProfiles / Math.max(1, countProfiles(entry.bytes));
      rejected = Math.min(entry.samples, Math.max(1, Math.round(entry.samples * share)));
    }
    if (rejected > 0 || message !== '') this.#link.partial(rejectedProfiles, message);
    this.#counters.samplesRejectedPartial += rejected;
    this.#counters.samplesSent += entry.samples - rejected;
  }

  #splitQueued(entry: QueueEntry): void {
    const { minRequestBytes } = this.#options;
    const size = entry.bytes.length;
    if (size <= this.#largestTaken) this.#largestTaken = 0;
    const likely = Math.max(minRequestBytes, this.#largestTaken, size >> 1);
    this.#maxRequestBytes = Math.min(this.#maxRequestBytes, likely);
    for (const half of this.#halvesOf(entry).reverse()) this.#queue.unshift(half);
  }

  /** None, counted, where it can't be made smaller. */
  #halvesOf({ bytes, samples }: QueueEntry): QueueEntry[] {
    const halves = bytes.length > this.#options.minRequestBytes ? splitRequest(bytes) : undefined;
    if (!halves) {
      this.#counters.samplesTooLarge += samples;
      return [];
    }
    // The parts together are what the entry was, whatever a part says of itself.
    const first = Math.min(halves[0].samples, samples);
    return [
      { bytes: halves[0].bytes, samples: first },
      { bytes: halves[1].bytes, samples: samples - first },
    ];
  }

  #waitToRetry(retryInfoMs: number | undefined): void {
    const { backoffMinMs, backoffMaxMs } = this.#options;
    if (!this.#flush) this.#failures++;
    const longest = Math.min(backoffMaxMs, backoffMinMs * 2 ** Math.min(this.#failures, 30));
    const backoffMs = Math.max(backoffMinMs, longest * (0.5 + Math.random() / 2));
    const delayMs = retryInfoMs === undefined ? backoffMs : Math.min(retryInfoMs, MAX_RETRY_INFO_MS);
    if (this.#flush && delayMs >= this.#flushRemainingMs()) {
      this.#dropAll();
      return;
    }
    this.#backoff = setTimeout(() => {
      this.#backoff = undefined;
      this.#sendNext();
    }, delayMs);
    this.#backoff.unref();
  }

  #flushRemainingMs(): number {
    return this.#flush ? Math.max(0, this.#flush.endsAtMs - performance.now()) : 0;
  }

  #stopBackoff(): void {
    clearTimeout(this.#backoff);
    this.#backoff = undefined;
  }

  #dropAll(): void {
    this.#stopBackoff();
    const onWire = this.#sending !== undefined;
    if (this.#sending) this.#sending.mayHaveArrived = true;
    this.#sending = undefined;
    for (let entry = this.#queue.shift(); entry; entry = this.#queue.shift()) {
      this.#counters.samplesDroppedStop += entry.samples;
      if (entry.mayHaveArrived) this.#stoppedUnanswered += entry.samples;
    }
    if (onWire) this.#transport.cancel();
    this.#flush?.end();
  }
}

const observed = (
  { bytes, samples }: QueueEntry,
  startMs: number,
  result: ExportResult,
): ObservedRequest => ({
  ...{ startMs, endMs: Date.now(), bytes: bytes.length, samples },
  result: result.kind === 'ok' ? 'ok' : `${result.kind}: ${result.message}`,
});
