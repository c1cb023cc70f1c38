/** Takes profiles and pushes them to a receiver, as requests that it can take. */

import { runInSlices } from '../../common/base/slices.ts';
import { countEvents, type Profile } from '../../common/profile/model/profile.ts';
import { OtlpEncoder, splitProfile } from '../../common/profile/otlp/otlp-encode.ts';
import type { Transport } from '../../otlp-client/exporter.ts';
import type { SenderLog } from '../../otlp-client/link-log.ts';
import { RequestSender, type SenderOptions } from '../../otlp-client/request-sender.ts';
import { makeTransport } from '../../otlp-client/transport.ts';
import { readScope } from './scope.ts';

export interface ProfileCodec {
  encode(profile: Profile): Uint8Array | Promise<Uint8Array>;
  /** Profiles of at most `maxSamples` entries of `samples` each, which together hold them all. */
  split(profile: Profile, maxSamples: number): Profile[];
}

/** Share of the limit that a split aims at, because dictionaries don't shrink in proportion. */
const SPLIT_AIM = 0.8;
/** A request with so many entries says how large others will be. */
const TELLING_ENTRIES = 1000;

function otlpCodec(): ProfileCodec {
  const encoder = new OtlpEncoder(readScope());
  return {
    encode: (profile) => runInSlices(encoder.encode([profile])),
    split: splitProfile,
  };
}

export class Reporter {
  readonly #codec: ProfileCodec;
  readonly #sender: RequestSender;
  #profilesPushed = 0;
  /** Of the last request with so many that one of them says little. */
  #bytesAnEntry = 0;
  /** Pushes whose requests don't wait to be sent yet. */
  readonly #encoding = new Set<Promise<void>>();

  constructor(
    options: SenderOptions,
    log: SenderLog,
    codec: ProfileCodec = otlpCodec(),
    transport: Transport = makeTransport(options),
  ) {
    this.#codec = codec;
    this.#sender = new RequestSender(options, log, transport);
  }

  /** Takes a profile; one without samples is skipped. Resolves when it waits to be sent. */
  push(profile: Profile): void | Promise<void> {
    if (countEvents(profile) === 0) return;
    this.#profilesPushed++;
    const pushed = this.#push(profile);
    if (!pushed) return;
    this.#encoding.add(pushed);
    return pushed.finally(() => this.#encoding.delete(pushed));
  }

  /**
   * Sends all that waits or is being encoded, without regard to backoff, for at most `timeoutMs`; what is left then is dropped
   * and counted.
   */
  async flush(timeoutMs: number): Promise<void> {
    if (this.#encoding.size > 0) await Promise.allSettled(this.#encoding);
    await this.#sender.flush(timeoutMs);
  }

  /** Drops what still waits, counted, and closes the connection. */
  close(): void {
    this.#sender.close();
  }

  /** Those of the sender, and how many profiles were pushed. */
  stats(): Record<string, number> {
    return { profilesPushed: this.#profilesPushed, ...this.#sender.stats() };
  }

  #push(profile: Profile): void | Promise<void> {
    const { maxRequestBytes } = this.#sender;
    const entries = profile.samples.length;
    // one that is surely too large need not be encoded to know it
    if (entries * this.#bytesAnEntry <= maxRequestBytes) return this.#encode(profile);
    return this.#encodeParts(profile, Math.floor((maxRequestBytes * SPLIT_AIM) / this.#bytesAnEntry));
  }

  #encode(profile: Profile): void | Promise<void> {
    const encoded = this.#codec.encode(profile);
    return encoded instanceof Uint8Array
      ? this.#take(profile, encoded)
      : encoded.then((bytes) => this.#take(profile, bytes));
  }

  /** Splitting the profile costs less than decoding the request to split that. */
  #take(profile: Profile, bytes: Uint8Array): void | Promise<void> {
    const { maxRequestBytes } = this.#sender;
    const entries = profile.samples.length;
    if (entries >= TELLING_ENTRIES) this.#bytesAnEntry = bytes.length / entries;
    if (bytes.length <= maxRequestBytes || entries < 2) {
      this.#sender.push({ bytes, samples: countEvents(profile) });
      return;
    }
    return this.#encodeParts(profile, Math.floor((entries * maxRequestBytes * SPLIT_AIM) / bytes.length));
  }

  /** As few parts as have about `maxEntries` each, but two at least. */
  #encodeParts(profile: Profile, maxEntries: number): void | Promise<void> {
    return this.#codec
      .split(profile, Math.max(1, Math.min(maxEntries, profile.samples.length - 1)))
      .reduce<void | Promise<void>>(
        (before, part) => (before ? before.then(() => this.#encode(part)) : this.#encode(part)),
        undefined,
      );
  }
}
