import type { Logger } from 'pino';
import { type ObservedRequest, requestsTaken } from '../../common/base/observed.ts';
import { runInSlices } from '../../common/base/slices.ts';
import { Turns } from '../../common/base/turns.ts';
import type { ColumnProfile } from '../../common/profile/model/frame-columns.ts';
import { countEvents, type Profile } from '../../common/profile/model/profile.ts';
import { StringCache } from '../../common/profile/model/string-cache.ts';
import type { CounterReport } from '../../common/profile/otlp/counter-report.ts';
import {
  type DecodeResult as Decoded,
  decodeInSteps,
  OtlpError,
} from '../../common/profile/otlp/otlp-decode.ts';
import { decodeOtlpJson, otlpJsonToProtobuf } from '../../common/profile/otlp/otlp-json.ts';
import { REQUEST_LIMITS } from '../../common/profile/otlp/otlp-json-scan.ts';
import { decodeCounters } from '../../common/profile/otlp/otlp-metrics.ts';
import type { Store } from '../store/store.ts';
import { ReceiverStats } from './receiver-stats.ts';
import { RecentRequests, requestId } from './recent-requests.ts';
import { SenderLimits } from './sender-limits.ts';

/** Largest request, after decompression: as much as OpenTelemetry's profiler sends. */
export const MAX_REQUEST_BYTES = 32 * 1024 * 1024;

/** `service.name` under which everyframe's agent sends its counters. */
const AGENT_SERVICE = 'everyframe-agent';

/** OTLP's partial success: nothing to say when `rejectedProfiles` is 0 and the message empty. */
export interface ExportResult {
  rejectedProfiles: number;
  errorMessage: string;
}

/** A request that was refused as a whole: sending it again would not help. */
export class RefusedRequest extends Error {
  override name = 'RefusedRequest';
}

/** Nothing can be taken now; sending it again later will help. */
export class BusyReceiver extends Error {
  override name = 'BusyReceiver';
}

const ALL_STORED: ExportResult = { rejectedProfiles: 0, errorMessage: '' };

type RequestStore = Pick<Store, 'busy' | 'hold' | 'append' | 'noteRequest' | 'commit' | 'recentRequests'>;

type DecodeResult = Decoded<Profile | ColumnProfile>;

/** Where what was taken goes as well. Both return at once. */
export interface PassedOn {
  /** @param samples in the request */
  forward(request: Uint8Array, samples: number): void;
  /** An agent's report of its own counters. */
  forwardCounters(request: Uint8Array): void;
}

/** A request as it arrived, and how to read it. */
interface Arrived {
  body: Uint8Array | string;
  decode(): DecodeResult | Promise<DecodeResult>;
  protobuf(): Uint8Array;
}

/** Takes requests of every protocol: decodes them, stores what is good, counts and says what is not. */
export class Receiver {
  readonly stats = new ReceiverStats();
  readonly #store: RequestStore;
  readonly #now: () => number;
  readonly #logger: Pick<Logger, 'error'>;
  readonly #limits: SenderLimits;
  readonly #recent: RecentRequests<ExportResult>;
  readonly #strings = new StringCache();
  /** What is decoded is good until the next begins. */
  readonly #turns = new Turns(1);
  readonly #forwarder: PassedOn | undefined;

  constructor(
    store: RequestStore,
    now: () => number,
    logger: Pick<Logger, 'error'>,
    /** Of one sender. */
    maxBytesPerS = Number.MAX_SAFE_INTEGER,
    /** Gets what arrived, as it arrived, once. */
    forwarder?: PassedOn,
  ) {
    this.#store = store;
    this.#now = now;
    this.#logger = logger;
    this.#forwarder = forwarder;
    this.#limits = new SenderLimits(maxBytesPerS, now);
    this.#recent = new RecentRequests(now);
    for (const id of store.recentRequests()) this.#recent.note(id, ALL_STORED);
  }

  /**
   * @throws RefusedRequest when the bytes are not an OTLP profiles request of the supported version
   * @throws BusyReceiver
   */
  receiveProtobuf(bytes: Uint8Array, peer: string): Promise<ExportResult> {
    return this.#receive(
      { body: bytes, decode: () => runInSlices(decodeInSteps(bytes, this.#strings)), protobuf: () => bytes },
      peer,
    );
  }

  /**
   * @throws RefusedRequest
   * @throws BusyReceiver
   */
  receiveJson(text: string, peer: string): Promise<ExportResult> {
    const protobuf = (): Uint8Array => otlpJsonToProtobuf(text);
    return this.#receive({ body: text, decode: () => decodeOtlpJson(text, REQUEST_LIMITS), protobuf }, peer);
  }

  /**
   * An OTLP metrics request: an agent's own counters.
   *
   * @throws RefusedRequest
   */
  receiveCounters(bytes: Uint8Array, peer: string): void {
    let reports: CounterReport[];
    try {
      reports = decodeCounters(bytes);
    } catch (error) {
      throw new RefusedRequest(`this is not an OTLP metrics request: ${(error as Error).message}`);
    }
    this.#forwardCounters(bytes);
    for (const report of reports) {
      if (report.resource['service.name'] === AGENT_SERVICE)
        this.stats.noteCounters(peer, report, this.#now());
    }
  }

  /** Once each: in a loop of collectors that pass on to each other a report would go round for ever. */
  #forwardCounters(bytes: Uint8Array): void {
    if (!this.#forwarder) return;
    const id = requestId(bytes);
    if (this.#recent.answerTo(id) !== undefined) return;
    this.#recent.note(id, ALL_STORED);
    this.#forwarder.forwardCounters(bytes);
  }

  /** Counts a request that was refused before it was decoded, and makes the error that tells its sender. */
  refuse(reason: string): RefusedRequest {
    this.stats.refuse(reason, this.#now());
    return new RefusedRequest(reason);
  }

  #receive(request: Arrived, peer: string): Promise<ExportResult> {
    if (!requestsTaken.hasSubscribers) return this.#answer(request, peer);
    return observe(() => this.#answer(request, peer), request.body.length, peer);
  }

  async #answer(request: Arrived, peer: string): Promise<ExportResult> {
    const { body } = request;
    const tooMuch = this.#limits.take(peer, body.length);
    if (tooMuch !== undefined) {
      this.stats.refuse(tooMuch, this.#now());
      throw new BusyReceiver(tooMuch);
    }
    const id = requestId(body);
    const result = await this.#turns.run(() => {
      const known = this.#recent.answerTo(id);
      return known === undefined ? this.#take(id, request, peer) : this.#noteRepeated(known, peer);
    });
    try {
      await this.#store.commit();
    } catch (error) {
      throw new BusyReceiver((error as Error).message);
    }
    return result;
  }

  #noteRepeated(known: ExportResult, peer: string): ExportResult {
    this.stats.repeatedRequests++;
    this.stats.noteAgent(peer, '', 0, this.#now());
    return known;
  }

  /** The event loop goes on meanwhile, whatever the request is. */
  async #take(id: string, request: Arrived, peer: string): Promise<ExportResult> {
    const { busy } = this.#store;
    if (busy !== undefined) throw new BusyReceiver(busy);
    let release = (): void => {};
    try {
      const decoded = await request.decode();
      release = this.#store.hold();
      const result = await runInSlices(this.#accept(decoded, peer));
      this.#recent.note(id, result);
      this.#store.noteRequest(id);
      this.#forwarder?.forward(request.protobuf(), countSamples(decoded));
      return result;
    } catch (error) {
      if (error instanceof OtlpError) throw this.refuse(error.message);
      this.#logger.error({ err: error, peer }, 'a request could not be taken');
      throw error;
    } finally {
      release();
    }
  }

  *#accept(decoded: DecodeResult, peer: string): Generator<void, ExportResult> {
    const nowMs = this.#now();
    const rejected = new Map(decoded.problems);
    let { rejectedProfiles } = decoded;
    let samples = 0;
    for (const profile of decoded.profiles) {
      const result = this.#store.append(profile);
      samples += result.stored;
      if (result.stored === 0 && result.rejected.size > 0) rejectedProfiles++;
      for (const [reason, count] of result.rejected)
        rejected.set(reason, (rejected.get(reason) ?? 0) + count);
      this.stats.noteAgent(peer, profile.host['host.name'] ?? '', result.stored, nowMs);
      yield;
    }
    if (decoded.profiles.length === 0) this.stats.noteAgent(peer, '', 0, nowMs);
    for (const [reason, count] of rejected) this.stats.rejections.add(reason, count, nowMs);
    this.stats.acceptedRequests++;
    this.stats.storedSamples += samples;
    return { rejectedProfiles, errorMessage: describeRejected(rejected) };
  }
}

async function observe(
  answer: () => Promise<ExportResult>,
  bytes: number,
  peer: string,
): Promise<ExportResult> {
  const startMs = Date.now();
  const publish = (result: string): void =>
    requestsTaken.publish({ startMs, endMs: Date.now(), bytes, peer, result } satisfies ObservedRequest);
  try {
    const result = await answer();
    publish('ok');
    return result;
  } catch (error) {
    publish((error as Error).message);
    throw error;
  }
}

/** Samples of a request, those that were left out included: another receiver may judge otherwise. */
function countSamples({ profiles, problems }: DecodeResult): number {
  let samples = 0;
  for (const profile of profiles) samples += countEvents(profile);
  for (const count of problems.values()) samples += count;
  return samples;
}

/** `12 samples rejected: stack index out of range (10); …`, '' if none. */
export function describeRejected(rejected: ReadonlyMap<string, number>): string {
  let total = 0;
  const reasons: string[] = [];
  for (const [reason, count] of rejected) {
    total += count;
    reasons.push(`${reason} (${count})`);
  }
  if (total === 0) return '';
  const shown = reasons.slice(0, 10).join('; ');
  return `${total} ${total === 1 ? 'sample' : 'samples'} rejected: ${shown}${reasons.length > 10 ? '; …' : ''}`;
}
