/**
 * Takes profiles, keeps them as encoded requests in a bounded queue, and pushes them one after the other.
 *
 * Every sample is accounted for. At any time
 *   samplesPushed = samplesSent + samplesDroppedOverflow + samplesRefused + samplesRejectedPartial
 *                 + samplesDroppedStop + samplesTooLarge + samplesQueued
 * where the request on the wire is still the head of the queue. Samples here are sampling events.
 */
import { encodeOtlp, splitProfile } from '../../common/profile/otlp-encode.ts';
import type { Profile } from '../../common/profile/profile.ts';
import { Exporter, type ExportResult, type Transport } from './exporter.ts';
import type { ConnectionOptions } from './grpc-client.ts';
import { LinkLog, type ReporterLog } from './link-log.ts';
import { type QueueEntry, RequestQueue } from './queue.ts';
import { countProfiles, splitRequest } from './request-parts.ts';
import { readScope } from './scope.ts';

export interface ReporterOptions extends ConnectionOptions {
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
}

export interface ProfileCodec {
  encode(profile: Profile): Uint8Array;
  /** Profiles of at most `maxSamples` entries of `samples` each, which together hold them all. */
  split(profile: Profile, maxSamples: number): Profile[];
}

/** A receiver that asks for more than this is not believed. */
/** Each request that got no answer in time is given twice as long, up to this. */
const MAX_REQUEST_TIMEOUT_MS = 60_000;
const MAX_RETRY_INFO_MS = 300_000;
/** Share of the limit that a split aims at, because dictionaries don't shrink in proportion. */
const SPLIT_AIM = 0.8;

function otlpCodec(): ProfileCodec {
  const scope = readScope();
  return { encode: (profile) => encodeOtlp(profile, scope), split: splitProfile };
}

const countEvents = (profile: Profile): number => profile.samples.reduce((sum, { count }) => sum + count, 0);

export class Reporter {
  readonly #options: ReporterOptions;
  readonly #codec: ProfileCodec;
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
  readonly #counters = {
    profilesPushed: 0,
    samplesPushed: 0,
    samplesSent: 0,
    samplesRefused: 0,
    samplesRejectedPartial: 0,
    samplesDroppedStop: 0,
    samplesTooLarge: 0,
    requestsSent: 0,
    retries: 0,
  };

  constructor(
    options: ReporterOptions,
    log: ReporterLog,
    codec: ProfileCodec = otlpCodec(),
    transport: Transport = new Exporter(options),
  ) {
    this.#options = options;
    this.#codec = codec;
    this.#transport = transport;
    this.#queue = new RequestQueue({ maxBytes: options.maxQueueBytes, maxEntries: options.maxQueueEntries });
    this.#link = new LinkLog(options.address, log);
    this.#maxRequestBytes = options.maxRequestBytes;
    for (const note of options.notes) log.warn(note);
  }

  /** Takes a profile; one without samples is skipped. */
  push(profile: Profile): void {
    const samples = countEvents(profile);
    if (samples === 0) return;
    this.#counters.profilesPushed++;
    this.#counters.samplesPushed += samples;
    if (this.#closed) this.#counters.samplesDroppedStop += samples;
    else this.#enqueue(profile, samples);
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

  stats(): Record<string, number> {
    return {
      ...this.#counters,
      samplesDroppedOverflow: this.#queue.dropped.samples,
      queueBytes: this.#queue.bytes,
      queueEntries: this.#queue.length,
      samplesQueued: this.#queue.samples,
    };
  }

  #enqueue(profile: Profile, samples: number): void {
    const bytes = this.#codec.encode(profile);
    if (bytes.length <= this.#maxRequestBytes) {
      this.#queue.push({ bytes, samples }, this.#sending !== undefined);
      return;
    }
    const entries = profile.samples.length;
    if (entries < 2) {
      this.#counters.samplesTooLarge += samples;
      return;
    }
    const aim = Math.floor((entries * this.#maxRequestBytes * SPLIT_AIM) / bytes.length);
    for (const part of this.#codec.split(profile, Math.max(1, Math.min(aim, entries - 1)))) {
      this.#enqueue(part, countEvents(part));
    }
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
      MAX_REQUEST_TIMEOUT_MS,
    );
    const timeoutMs = this.#flush ? Math.min(requestTimeoutMs, this.#flushRemainingMs()) : requestTimeoutMs;
    void this.#transport.send(entry.bytes, timeoutMs).then((result) => {
      // Otherwise a flush has given the entry up.
      if (this.#sending === entry) this.#settle(entry, result);
    });
  }

  #settle(entry: QueueEntry, result: ExportResult): void {
    this.#sending = undefined;
    if (result.kind === 'retry') {
      this.#link.unreachable(result);
      this.#counters.retries++;
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
    const halves = size > minRequestBytes ? splitRequest(entry.bytes) : undefined;
    if (!halves) {
      this.#counters.samplesTooLarge += entry.samples;
      return;
    }
    // The parts together are what the entry was, whatever a part says of itself.
    const first = Math.min(halves[0].samples, entry.samples);
    this.#queue.unshift({ bytes: halves[1].bytes, samples: entry.samples - first });
    this.#queue.unshift({ bytes: halves[0].bytes, samples: first });
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
    this.#sending = undefined;
    for (let entry = this.#queue.shift(); entry; entry = this.#queue.shift()) {
      this.#counters.samplesDroppedStop += entry.samples;
    }
    if (onWire) this.#transport.cancel();
    this.#flush?.end();
  }
}
