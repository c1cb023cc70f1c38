/**
 * Sends one encoded ExportProfilesServiceRequest and says what became of it, by OTLP/gRPC's rules of failure
 * (opentelemetry-proto, docs/specification.md, "Failures").
 */
import { type ClientUnaryCall, type ServiceError, status } from '@grpc/grpc-js';
import { opentelemetry } from '#otlp';
import { type ConnectionOptions, GrpcClient } from './grpc-client.ts';
import { retryDelayOf } from './retry-info.ts';

export type ExportResult =
  | { kind: 'ok'; rejectedProfiles: number; message: string }
  /** Worth another try; `delayMs` where the receiver said when. */
  | { kind: 'retry'; code: string; message: string; delayMs: number | undefined }
  /** The receiver takes no request of this size. */
  | { kind: 'too-large'; message: string }
  /** The receiver will never take this request. */
  | { kind: 'refused'; code: string; message: string };

/** What the reporter sends through; one request at a time. */
export interface Transport {
  /** Never rejects. */
  send(request: Uint8Array, deadlineMs: number): Promise<ExportResult>;
  /** Ends the call under way, if any: its result is then a `retry`. */
  cancel(): void;
  close(): void;
}

const EXPORT_PATH = '/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export';
/** Calls in a row that got no answer in time before a connection that stands is given up: it may be dead without a FIN. */
const MAX_SILENT_CALLS = 3;
/** What a person sees of a receiver's message. */
const MAX_MESSAGE_CHARS = 300;

const RETRYABLE: ReadonlySet<status> = new Set([
  status.CANCELLED,
  status.DEADLINE_EXCEEDED,
  status.ABORTED,
  status.OUT_OF_RANGE,
  status.UNAVAILABLE,
  status.DATA_LOSS,
]);

/** How grpc-go, grpc-js, gRPC C++ and tonic (in OUT_OF_RANGE) word it; 413 comes from proxies. */
const TOO_LARGE =
  /message (?:after decompression )?larger than|that decompresses to a size larger|exceeds maximum size|message length too large|HTTP status code 413/i;
const TOO_LARGE_CODES: ReadonlySet<status> = new Set([
  status.RESOURCE_EXHAUSTED,
  status.OUT_OF_RANGE,
  status.UNKNOWN,
]);

/** One printable line of a text that came from outside. */
export function printable(text: string): string {
  const line = text.slice(0, MAX_MESSAGE_CHARS + 1).replace(/[^\x20-\x7e\u00a0-\ufffd]+/g, ' ');
  return line.length > MAX_MESSAGE_CHARS ? `${line.slice(0, MAX_MESSAGE_CHARS)}…` : line;
}

/** Without grpc-js' own words around the reason why a connection failed. */
const withoutFrame = (details: string): string =>
  details
    .replace(/^Deadline exceeded after ([\d.]+)s,.*\bWaiting for LB pick.*$/, 'no connection within $1 s')
    .replace(/^No connection established\. Last error: (?:Error: )?/, '')
    .replace(/[.\s]*Resolution note:\s*$/, '');

export function classifyError(error: ServiceError): ExportResult {
  const message = printable(withoutFrame(error.details || error.message));
  const code = status[error.code] ?? `code ${error.code}`;
  const delayMs = error.metadata ? retryDelayOf(error.metadata) : undefined;
  if (error.code === status.RESOURCE_EXHAUSTED && delayMs !== undefined) {
    return { kind: 'retry', code, message, delayMs };
  }
  if (TOO_LARGE_CODES.has(error.code) && TOO_LARGE.test(message)) return { kind: 'too-large', message };
  if (RETRYABLE.has(error.code)) return { kind: 'retry', code, message, delayMs };
  return { kind: 'refused', code, message };
}

/** An answer that can't be read still says that the request arrived. */
export function readResponse(bytes: Uint8Array): ExportResult {
  try {
    const response =
      opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceResponse.decode(bytes);
    const partial = response.partialSuccess;
    const rejected = Number(partial?.rejectedProfiles ?? 0);
    return {
      kind: 'ok',
      rejectedProfiles: Math.max(0, rejected),
      message: printable(partial?.errorMessage ?? ''),
    };
  } catch {
    return { kind: 'ok', rejectedProfiles: 0, message: 'the answer is not an ExportProfilesServiceResponse' };
  }
}

export class Exporter implements Transport {
  readonly #options: ConnectionOptions;
  #client: GrpcClient;
  #call: ClientUnaryCall | undefined;
  #silentCalls = 0;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#client = new GrpcClient(options);
  }

  send(request: Uint8Array, deadlineMs: number): Promise<ExportResult> {
    return new Promise((resolve) => {
      const call = this.#client.call(EXPORT_PATH, request, deadlineMs, (error, response) => {
        if (this.#call === call) this.#call = undefined;
        this.#noteSilence(error);
        resolve(error ? classifyError(error) : readResponse(response ?? new Uint8Array(0)));
      });
      this.#call = call;
    });
  }

  cancel(): void {
    this.#call?.cancel();
  }

  close(): void {
    this.cancel();
    this.#client.close();
  }

  #noteSilence(error: ServiceError | null): void {
    if (error?.code !== status.DEADLINE_EXCEEDED) {
      this.#silentCalls = 0;
      return;
    }
    // One that does not come about in all that time may be on its way to a pod that is gone, and take two minutes to fail:
    // the kernel keeps to the way that it chose with the first packet.
    if (++this.#silentCalls < MAX_SILENT_CALLS && this.#client.isConnected()) return;
    this.#silentCalls = 0;
    this.#client.close();
    this.#client = new GrpcClient(this.#options);
  }
}
