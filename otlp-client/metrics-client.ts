/** Pushes OTLP metrics to where profiles go, over gRPC or HTTP. */
import { type ClientUnaryCall, type ServiceError, status } from '@grpc/grpc-js';
import { METRICS_EXPORT_PATH } from '../common/profile/otlp/otlp-metrics.ts';
import { type ConnectionOptions, GrpcClient, usesGzip } from './grpc-client.ts';
import { type HttpAnswer, type HttpCall, HttpClient, type HttpFailure } from './http-client.ts';
import type { Failure } from './link-log.ts';

/** One push at a time. */
export interface MetricsClient {
  /** What went wrong, null for nothing; never rejects. */
  push(bytes: Uint8Array, deadlineMs: number): Promise<Failure | 'cancelled' | null>;
  cancel(): void;
  close(): void;
}

export const makeMetricsClient = (options: ConnectionOptions): MetricsClient =>
  options.http ? new HttpMetrics(options, options.http.metrics) : new GrpcMetrics(options);

class GrpcMetrics implements MetricsClient {
  readonly #client: GrpcClient;
  #call: ClientUnaryCall | undefined;

  constructor(options: ConnectionOptions) {
    this.#client = new GrpcClient(options);
  }

  push(bytes: Uint8Array, deadlineMs: number): Promise<Failure | 'cancelled' | null> {
    return new Promise((resolve) => {
      this.#call = this.#client.call(METRICS_EXPORT_PATH, bytes, deadlineMs, (error) => {
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

class HttpMetrics implements MetricsClient {
  readonly #client: HttpClient;
  readonly #url: URL;
  #call: HttpCall | undefined;

  constructor(options: ConnectionOptions, url: URL) {
    this.#client = new HttpClient(options, usesGzip(options));
    this.#url = url;
  }

  push(bytes: Uint8Array, deadlineMs: number): Promise<Failure | 'cancelled' | null> {
    return new Promise((resolve) => {
      this.#call = this.#client.post(this.#url, bytes, deadlineMs, (end) => {
        this.#call = undefined;
        resolve(failureOfHttp(end));
      });
    });
  }

  cancel(): void {
    this.#call?.cancel();
  }

  close(): void {
    this.cancel();
    this.#client.close();
  }
}

function failureOfHttp(end: HttpAnswer | HttpFailure): Failure | 'cancelled' | null {
  if (!('status' in end)) return end.code === 'CANCELLED' ? 'cancelled' : end;
  return end.status >= 200 && end.status < 300 ? null : { code: `HTTP ${end.status}`, message: '' };
}
