/** OTLP over HTTP, by its rules of failure (opentelemetry-proto, docs/specification.md, "OTLP/HTTP Response"). */
import protobuf from 'protobufjs/minimal.js';
import { type ExportResult, printable, readResponse, type Transport } from './exporter.ts';
import { type ConnectionOptions, usesGzip } from './grpc-client.ts';
import { type HttpAnswer, HttpClient, type HttpFailure } from './http-client.ts';

const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504]);
/** gRPC's words, of which a person is told what to do. */
const CODES: Record<number, string> = {
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'UNIMPLEMENTED',
};
const SUCCESS = 2;

export class HttpExporter implements Transport {
  readonly #client: HttpClient;
  readonly #url: URL;

  constructor(options: ConnectionOptions & Required<Pick<ConnectionOptions, 'http'>>) {
    this.#client = new HttpClient(options, usesGzip(options));
    this.#url = options.http.profiles;
  }

  async send(request: Uint8Array, deadlineMs: number): Promise<ExportResult> {
    const end = await this.#client.post(this.#url, request, deadlineMs);
    return 'status' in end ? classifyAnswer(end) : retryOf(end);
  }

  cancel(): void {
    this.#client.cancel();
  }

  close(): void {
    this.#client.close();
  }
}

const retryOf = ({ code, message }: HttpFailure): ExportResult => ({
  kind: 'retry',
  code,
  message: printable(message),
  delayMs: undefined,
});

export function classifyAnswer(answer: HttpAnswer, now = Date.now()): ExportResult {
  const { status, headers, body } = answer;
  if (Math.floor(status / 100) === SUCCESS) return readResponse(body);
  const location = headers.location === undefined ? '' : `, which points to ${headers.location}`;
  const message = printable(`HTTP ${status}${location}${reasonOf(answer)}`);
  if (status === 413) return { kind: 'too-large', message };
  const code = CODES[status] ?? `HTTP ${status}`;
  if (!RETRYABLE.has(status)) return { kind: 'refused', code, message };
  return { kind: 'retry', code, message, delayMs: retryAfterMs(headers['retry-after'], now) };
}

/** Seconds, or a date. */
function retryAfterMs(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now;
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}

/** A google.rpc.Status, whose message is field 2, or what a proxy says. */
function reasonOf({ headers, body }: HttpAnswer): string {
  const type = headers['content-type'] ?? '';
  const text = /protobuf/.test(type)
    ? statusMessage(body)
    : /^text\/plain|json/.test(type)
      ? body.toString()
      : '';
  return text === '' ? '' : `: ${text}`;
}

function statusMessage(body: Buffer): string {
  try {
    const reader = protobuf.Reader.create(body);
    while (reader.pos < reader.len) {
      const tag = reader.uint32();
      if (tag >>> 3 === 2) return reader.string();
      reader.skipType(tag & 7);
    }
  } catch {
    // no protobuf: the status alone is told
  }
  return '';
}
