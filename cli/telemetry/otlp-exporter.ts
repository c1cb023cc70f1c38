import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import type { ISerializer } from '@opentelemetry/otlp-transformer';
import type { Logger } from 'pino';
import type { Signal, SignalLink } from './signals.ts';

/** What every kind of exporter of the SDK is, over the client that profiles have: TLS, proxies, sockets, gRPC or HTTP. */
export class OtlpExporter<Batch> {
  readonly #signal: Signal;
  readonly #serializer: ISerializer<Batch, unknown>;
  readonly #link: SignalLink;
  readonly #log: Pick<Logger, 'warn' | 'info'>;
  #failedWith: string | undefined;

  constructor(
    signal: Signal,
    serializer: ISerializer<Batch, unknown>,
    link: SignalLink,
    log: Pick<Logger, 'warn' | 'info'>,
  ) {
    this.#signal = signal;
    this.#serializer = serializer;
    this.#link = link;
    this.#log = log;
  }

  export(batch: Batch, done: (result: ExportResult) => void): void {
    const bytes = this.#serializer.serializeRequest(batch);
    if (bytes === undefined) {
      done({ code: ExportResultCode.FAILED });
      return;
    }
    void this.#link.client.push(bytes, this.#link.timeoutMs).then((failure) => {
      if (failure !== 'cancelled') this.#noteResult(failure?.code, failure?.message);
      done({ code: failure === null ? ExportResultCode.SUCCESS : ExportResultCode.FAILED });
    });
  }

  forceFlush(): Promise<void> {
    return Promise.resolve();
  }

  shutdown(): Promise<void> {
    this.#link.client.close();
    return Promise.resolve();
  }

  /** Told once: a line about each failure would be a line to send. */
  #noteResult(code: string | undefined, message = ''): void {
    if (code === this.#failedWith) return;
    this.#failedWith = code;
    if (code === undefined) this.#log.info(`${this.#signal} of --telemetry arrive again`);
    else this.#log.warn(`${this.#signal} of --telemetry don't arrive (${code}: ${message})`);
  }
}
