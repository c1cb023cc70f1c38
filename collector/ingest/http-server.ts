import type { IncomingMessage, ServerResponse } from 'node:http';
import { Writer } from 'protobufjs/minimal.js';
import { OPEN_ACCESS, TOKEN_NEEDED } from '../net/access.ts';
import { type ListenAddress, listenOn, stopListening } from '../net/listen.ts';
import { errorText, HttpError, readBody } from '../net/read-body.ts';
import { encodeExportResponse, type IngestServer } from './grpc-server.ts';
import { Intake, type IntakeOptions, RETRY_AFTER_S } from './intake.ts';
import {
  BusyReceiver,
  type ExportResult,
  MAX_REQUEST_BYTES,
  type Receiver,
  RefusedRequest,
} from './receiver.ts';

const PATH = '/v1development/profiles';
const REQUEST_TIMEOUT_MS = 30_000;

/** google.rpc.Code */
const INVALID_ARGUMENT = 3;
const UNKNOWN = 2;
const UNAVAILABLE = 14;
const UNAUTHENTICATED = 16;
const CODE_OF: Readonly<Record<number, number>> = { 401: UNAUTHENTICATED, 503: UNAVAILABLE };

type Format = 'protobuf' | 'json';

/** Listens for OTLP over HTTP: `POST /v1development/profiles`, protobuf or JSON, gzip accepted. */
export async function startHttpIngest(listen: ListenAddress, options: IntakeOptions): Promise<IngestServer> {
  const { access = OPEN_ACCESS, gate, receivers } = options;
  const intake = new Intake(options);
  const server = access.createServer({ requestTimeout: REQUEST_TIMEOUT_MS }, (request, response) => {
    void answer(request, response, intake);
  });
  gate?.guard(server);
  access.noteBadHandshakes(server, 'OTLP over HTTP', (reason) => receivers.refuse(reason));
  const port = await listenOn(server, listen);
  return { port, stop: () => stopListening(server) };
}

async function answer(request: IncomingMessage, response: ServerResponse, intake: Intake): Promise<void> {
  const lease = intake.budget.lease();
  const format: Format = isJson(request) ? 'json' : 'protobuf';
  let receiver: Receiver | undefined;
  try {
    checkRequest(request);
    receiver = intake.receiverFor(request.headers);
    if (receiver === undefined) throw new HttpError(401, TOKEN_NEEDED);
    intake.prove(request.socket);
    const body = await readBody(request, { maxBytes: MAX_REQUEST_BYTES, lease });
    const peer = request.socket.remoteAddress ?? '';
    const result =
      format === 'json'
        ? await receiver.receiveJson(body.toString('utf8'), peer)
        : await receiver.receiveProtobuf(body, peer);
    send(response, 200, format, format === 'json' ? exportJson(result) : encodeExportResponse(result));
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const { httpStatus, code } = classify(error);
    if (error instanceof HttpError && httpStatus !== 404 && httpStatus !== 405)
      intake.refuse(message, receiver);
    if (!request.complete) response.setHeader('connection', 'close');
    if (code === UNAUTHENTICATED) response.setHeader('www-authenticate', 'Bearer');
    if (code === UNAVAILABLE) response.setHeader('retry-after', RETRY_AFTER_S);
    send(response, httpStatus, format, encodeStatus(format, code, errorText(message)));
  } finally {
    lease.end();
  }
}

function classify(error: unknown): { httpStatus: number; code: number } {
  if (error instanceof HttpError) {
    const { httpStatus } = error;
    return { httpStatus, code: CODE_OF[httpStatus] ?? INVALID_ARGUMENT };
  }
  if (error instanceof RefusedRequest) return { httpStatus: 400, code: INVALID_ARGUMENT };
  if (error instanceof BusyReceiver) return { httpStatus: 503, code: UNAVAILABLE };
  return { httpStatus: 500, code: UNKNOWN };
}

const contentType = (request: IncomingMessage): string =>
  (request.headers['content-type'] ?? '').split(';')[0]!.trim().toLowerCase();

const isJson = (request: IncomingMessage): boolean => contentType(request) === 'application/json';

function checkRequest(request: IncomingMessage): void {
  const path = (request.url ?? '').split('?')[0];
  if (path !== PATH) throw new HttpError(404, `nothing at ${path}: profiles go to POST ${PATH}`);
  if (request.method !== 'POST') throw new HttpError(405, `${request.method} ${PATH}: only POST is served`);
  // A browser names the page that a request comes from; no page has profiles to send.
  if (request.headers.origin !== undefined) {
    throw new HttpError(403, `requests from a web page (${request.headers.origin}) are not accepted`);
  }
  const type = contentType(request);
  if (type !== 'application/x-protobuf' && type !== 'application/json') {
    throw new HttpError(415, `content-type is "${type}": send application/x-protobuf or application/json`);
  }
}

/** ExportProfilesServiceResponse in JSON: int64 is a string. */
function exportJson({ rejectedProfiles, errorMessage }: ExportResult): Buffer {
  const whole = rejectedProfiles === 0 && errorMessage === '';
  const message = whole
    ? {}
    : { partialSuccess: { rejectedProfiles: String(rejectedProfiles), errorMessage } };
  return Buffer.from(JSON.stringify(message));
}

/** google.rpc.Status: code = 1, message = 2. */
function encodeStatus(format: Format, code: number, message: string): Buffer {
  if (format === 'json') return Buffer.from(JSON.stringify({ code, message }));
  return Buffer.from(Writer.create().uint32(8).int32(code).uint32(18).string(message).finish());
}

function send(response: ServerResponse, httpStatus: number, format: Format, body: Buffer): void {
  response.writeHead(httpStatus, {
    'content-type': format === 'json' ? 'application/json' : 'application/x-protobuf',
    'content-length': body.length,
    'x-content-type-options': 'nosniff',
  });
  response.end(body);
}
