/** Agents that send what a real one has recorded, each as a host of its own, with the product's own queue and retries. */
import { opentelemetry } from '#otlp';
import { countEvents } from '../../../common/profile/model/profile.ts';
import { decodeOtlp } from '../../../common/profile/otlp/otlp-decode.ts';
import { RequestSender, type SenderOptions } from '../../../otlp-client/request-sender.ts';
import { Repeater } from '../store-load.ts';

const ExportRequest = opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceRequest;
const HOST = 'fleet-host-00000';
const HOUR_MS = 3_600_000;

export interface Recorded {
  bytes: Buffer;
  samples: number;
  /** Where the host's name stands. */
  places: number[];
}

/** `rounds` times as much as was recorded, of the hour before the last one, none of it the same. */
export function prepare(requests: readonly Buffer[], rounds: number): Recorded[] {
  const repeater = new Repeater(requests);
  const start = BigInt((Math.floor(Date.now() / HOUR_MS) - 1) * HOUR_MS) * 1_000_000n;
  const shiftOf = (round: number): bigint => start + BigInt(round) * 60_000_000_000n - repeater.firstNanos;
  return Array.from({ length: rounds }, (_, round) => [...repeater.round(round, shiftOf(round))])
    .flat()
    .map(renameHost);
}

function renameHost(bytes: Buffer): Recorded {
  const request = ExportRequest.decode(bytes);
  for (const { resource } of request.resourceProfiles)
    for (const { key, value } of resource?.attributes ?? [])
      if (key === 'host.name' && value) value.stringValue = HOST;
  const renamed = Buffer.from(ExportRequest.encode(request).finish());
  const samples = decodeOtlp(renamed).profiles.reduce((sum, profile) => sum + countEvents(profile), 0);
  const places: number[] = [];
  for (let at = renamed.indexOf(HOST); at >= 0; at = renamed.indexOf(HOST, at + 1)) places.push(at);
  if (places.length === 0) throw new Error('a recorded request names no host');
  return { bytes: renamed, samples, places };
}

function ofHost({ bytes, places }: Recorded, agent: number): Buffer {
  const own = Buffer.from(bytes);
  for (const at of places) own.write(HOST.slice(0, -5) + String(agent).padStart(5, '0'), at, 'latin1');
  return own;
}

const OPTIONS: Omit<SenderOptions, 'address'> = {
  ...{ tls: undefined, headers: [], compression: 'auto', notes: [] },
  ...{ maxRequestBytes: 4 << 20, minRequestBytes: 16 << 10, maxQueueBytes: 32 << 20, maxQueueEntries: 1024 },
  ...{ requestTimeoutMs: 60_000, backoffMinMs: 500, backoffMaxMs: 5000 },
  hints: { plaintext: '', authority: '', credentials: '' },
};

export class Agent {
  readonly #sender: RequestSender;
  readonly #index: number;

  /** @param addresses the first one that answers takes it */
  constructor(index: number, addresses: readonly string[]) {
    this.#index = index;
    this.#sender = new RequestSender(
      { ...OPTIONS, address: `ipv4:${addresses.join(',')}` },
      { info: () => {}, warn: () => {}, error: () => {} },
    );
  }

  push(recorded: Recorded): void {
    this.#sender.push({ bytes: ofHost(recorded, this.#index), samples: recorded.samples });
  }

  stats() {
    return this.#sender.stats();
  }

  close(): void {
    this.#sender.close();
  }
}
