import type { Logger } from 'pino';
import {
  type DecodeResult,
  decodeOtlp,
  decodeOtlpJson,
  OtlpError,
} from '../../common/profile/otlp-decode.ts';
import type { Store } from '../store/store.ts';
import { ReceiverStats } from './receiver-stats.ts';

/** Largest request, after decompression: as much as OpenTelemetry's profiler sends. */
export const MAX_REQUEST_BYTES = 32 * 1024 * 1024;

/** OTLP's partial success: nothing to tell when `rejectedProfiles` is 0 and the message empty. */
export interface ExportResult {
  rejectedProfiles: number;
  errorMessage: string;
}

/** A request that was refused as a whole: sending it again would not help. */
export class RefusedRequest extends Error {
  override name = 'RefusedRequest';
}

/** Takes requests of every protocol: decodes them, stores what is good, counts and tells what is not. */
export class Receiver {
  readonly stats = new ReceiverStats();
  readonly #store: Store;
  readonly #now: () => number;

  readonly #logger: Pick<Logger, 'error'>;

  constructor(store: Store, now: () => number, logger: Pick<Logger, 'error'>) {
    this.#store = store;
    this.#now = now;
    this.#logger = logger;
  }

  /** @throws RefusedRequest when the bytes are no OTLP profiles request of the supported version. */
  receiveProtobuf(bytes: Uint8Array, peer: string): ExportResult {
    return this.#receive(() => decodeOtlp(bytes), peer);
  }

  /** @throws RefusedRequest */
  receiveJson(text: string, peer: string): ExportResult {
    return this.#receive(() => decodeOtlpJson(text), peer);
  }

  /** Counts a request that was refused before it was decoded, and makes the error that tells its sender. */
  refuse(reason: string): RefusedRequest {
    this.stats.refusals.add(reason, 1, this.#now());
    return new RefusedRequest(reason);
  }

  #receive(decode: () => DecodeResult, peer: string): ExportResult {
    try {
      return this.#accept(decode(), peer);
    } catch (error) {
      if (error instanceof OtlpError) throw this.refuse(error.message);
      this.#logger.error({ err: error, peer }, 'a request could not be taken');
      throw error;
    }
  }

  #accept(decoded: DecodeResult, peer: string): ExportResult {
    const nowMs = this.#now();
    const rejected = new Map(decoded.problems);
    let rejectedProfiles = 0;
    let samples = 0;
    for (const profile of decoded.profiles) {
      const result = this.#store.append(profile);
      samples += result.stored;
      if (result.stored === 0 && result.rejected.size > 0) rejectedProfiles++;
      for (const [reason, count] of result.rejected)
        rejected.set(reason, (rejected.get(reason) ?? 0) + count);
      this.stats.noteAgent(peer, profile.host['host.name'] ?? '', result.stored, nowMs);
    }
    if (decoded.profiles.length === 0) this.stats.noteAgent(peer, '', 0, nowMs);
    for (const [reason, count] of rejected) this.stats.rejections.add(reason, count, nowMs);
    this.stats.acceptedRequests++;
    this.stats.storedSamples += samples;
    return { rejectedProfiles, errorMessage: describeRejected(rejected) };
  }
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
