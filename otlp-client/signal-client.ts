/** Pushes metrics, and what else has an OTLP service of its own, over gRPC or HTTP. */
import { type ClientUnaryCall, type ServiceError, status } from '@grpc/grpc-js';
import { METRICS_EXPORT_PATH } from '../common/profile/otlp/otlp-metrics.ts';
import { type ConnectionOptions, GrpcClient, usesGzip } from './grpc-client.ts';
import { type HttpAnswer, HttpClient, type HttpFailure } from './http-client.ts';
import type { Failure } from './link-log.ts';

/** One push at a time. */
export interface SignalClient {
  /** What went wrong, null for nothing; never rejects. */
  push(bytes: Uint8Array, deadlineMs: number): Promise<Failure | 'cancelled' | null>;
  cancel(): void;
  close(): void;
}

/** The method of gRPC, and the URL of HTTP. */
interface Service {
  path: string;
  url: URL | undefined;
}

/** Metrics, unless another service is named. */
export const makeSignalClient = (
  options: ConnectionOptions,
  { path, url }: Service = { path: METRICS_EXPORT_PATH, url: options.http?.metrics },
): SignalClient => (url ? new HttpSignal(options, url) : new GrpcSignal(options, path));

class GrpcSignal implements SignalClient {
  readonly #client: GrpcClient;
  readonly #path: string;
  #call: ClientUnaryCall | undefined;

  constructor(options: ConnectionOptions, path: string) {
    this.#client = new GrpcClient(options);
    this.#path = path;
  }

  push(bytes: Uint8Array, deadlineMs: number): Promise<Failure | 'cancelled' | null> {
    return new Promise((resolve) => {
      this.#call = this.#client.call(this.#path, bytes, deadlineMs, (error) => {
        this.#call = undefined;
        resolve(error?.code === status.CANCELLED ? 'cancelled' : error && failureOf(error));
      });
    });
  }

  cancel(): void {
    this.#call?.cancel();
  }

  close(): void {
    this.#client.close();
  }
}

const failureOf = (error: ServiceError): Failure => ({
  code: status[error.code] ?? `code ${error.code}`,
  message: error.details,
});

class HttpSignal implements SignalClient {
  readonly #client: HttpClient;
  readonly #url: URL;

  constructor(options: ConnectionOptions, url: URL) {
    this.#client = new HttpClient(options, usesGzip(options));
    this.#url = url;
  }

  async push(bytes: Uint8Array, deadlineMs: number): Promise<Failure | 'cancelled' | null> {
    return failureOfHttp(await this.#client.post(this.#url, bytes, deadlineMs));
  }

  cancel(): void {
    this.#client.cancel();
  }

  close(): void {
    this.#client.close();
  }
}

function failureOfHttp(end: HttpAnswer | HttpFailure): Failure | 'cancelled' | null {
  if (!('status' in end)) return end.code === 'CANCELLED' ? 'cancelled' : end;
  return end.status >= 200 && end.status < 300 ? null : { code: `HTTP ${end.status}`, message: '' };
}
