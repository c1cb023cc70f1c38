/**
 * OTLP over gRPC, on Node's HTTP/2. Its calls are refused by their headers, before a byte of a message is held, and what
 * is held is counted: a gRPC library gathers a message before it asks anybody. See docs/decisions/collector/grpc-server.md.
 */
import {
  constants,
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type SecureServerOptions,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { status } from '@grpc/grpc-js';
import Long from 'long';
import { opentelemetry } from '#otlp';
import { excerpt } from '../../common/base/printable.ts';
import { METRICS_EXPORT_PATH } from '../../common/profile/otlp/otlp-metrics.ts';
import { type Access, OPEN_ACCESS, SECURE, TOKEN_NEEDED } from '../net/access.ts';
import { OverBudget } from '../net/byte-budget.ts';
import { BadBody, TooSlow } from '../net/gather.ts';
import { type ListenAddress, listenOn } from '../net/listen.ts';
import { answer, answerError, CallError, readMessage } from './grpc-call.ts';
import { Intake, type IntakeOptions, RETRY_AFTER_S } from './intake.ts';
import {
  BusyReceiver,
  type ExportResult,
  MAX_REQUEST_BYTES,
  type Receiver,
  RefusedRequest,
} from './receiver.ts';
import { watchSession } from './session-watch.ts';

const { ExportProfilesServiceResponse } = opentelemetry.proto.collector.profiles.v1development;

const PROFILES_EXPORT_PATH = '/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export';

/** A connection's own limits, all of them before anybody has shown a token. */
const SESSION_LIMITS: SecureServerOptions = {
  settings: { maxConcurrentStreams: 64, maxHeaderListSize: 16 * 1024, enablePush: false },
  maxHeaderListPairs: 64,
  /** MiB: headers, what waits to be sent, unanswered settings and pings. */
  maxSessionMemory: 4,
  maxOutstandingPings: 4,
};
const HANDSHAKE_MS = 10_000;

/** What takes a message of a path, and answers it. */
type Handler = (receiver: Receiver, message: Buffer, peer: string) => Promise<Buffer>;

const HANDLERS: Readonly<Record<string, Handler>> = {
  [PROFILES_EXPORT_PATH]: async (receiver, message, peer) =>
    encodeExportResponse(await receiver.receiveProtobuf(message, peer)),
  /** Where agents push their own counters, with --self-metrics; of other metrics nothing is kept. */
  [METRICS_EXPORT_PATH]: async (receiver, message, peer) => {
    receiver.receiveCounters(message, peer);
    return Buffer.alloc(0);
  },
};

export interface IngestServer {
  /** Bound port: the asked one, or the free one that was found for port 0. */
  port: number;
  stop(): Promise<void>;
}

/**
 * Listens for OTLP over gRPC; gzip is accepted.
 *
 * @throws Error with the code of `listen` when the address can't be bound
 */
export async function startGrpcServer(listen: ListenAddress, options: IntakeOptions): Promise<IngestServer> {
  const calls = new Calls(new Intake(options));
  const { access = OPEN_ACCESS } = options;
  const server = access.tls === undefined ? createServer(SESSION_LIMITS) : secureServer(access);
  const sessions = new Set<ServerHttp2Session>();
  options.gate?.guard(server);
  const refuse = (reason: string): void => options.receivers.refuse(reason);
  access.noteBadHandshakes(server, 'gRPC', refuse);
  server.on('session', (session) => {
    sessions.add(session);
    session.once('close', () => sessions.delete(session));
    watchSession(session, refuse);
  });
  server.on('stream', (stream, headers) => void calls.run(stream, headers));
  const port = await listenOn(server, listen);
  return { port, stop: () => stopServer(server, sessions) };
}

function secureServer(access: Access): Http2SecureServer {
  const handshakeTimeout = HANDSHAKE_MS;
  const server = createSecureServer({ ...SESSION_LIMITS, ...access.tls, ...SECURE, handshakeTimeout });
  access.keepCertificateOf(server);
  return server;
}

class Calls {
  readonly #intake: Intake;

  constructor(intake: Intake) {
    this.#intake = intake;
  }

  /** Never rejects. */
  async run(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Promise<void> {
    // Whoever is gone gets no answer; the call ends with its stream.
    stream.on('error', () => {});
    const { session } = stream;
    const peer = session?.socket?.remoteAddress ?? '';
    const lease = this.#intake.budget.lease();
    stream.once('close', () => lease.end());
    let receiver: Receiver | undefined;
    try {
      receiver = this.#admit(headers);
      const handler = findHandler(headers);
      this.#intake.prove(session?.socket);
      const message = await readMessage(stream, headers, lease, MAX_REQUEST_BYTES);
      answer(stream, await handler(receiver, message, peer));
    } catch (error) {
      const answered = this.#describe(error, receiver);
      if (!stream.destroyed) answerError(stream, answered);
      if (answered.code === status.UNAUTHENTICATED || answered.code === status.UNIMPLEMENTED)
        this.#intake.noteRefusedCall(session);
    }
  }

  /** @throws CallError for who may not send */
  #admit(headers: IncomingHttpHeaders): Receiver {
    const receiver = this.#intake.receiverFor(headers);
    if (receiver !== undefined) return receiver;
    this.#intake.refuse('no right token');
    throw new CallError(status.UNAUTHENTICATED, TOKEN_NEEDED);
  }

  /** OTLP's senders try again where it is UNAVAILABLE, and give up otherwise. */
  #describe(error: unknown, receiver: Receiver | undefined): CallError {
    const message = error instanceof Error ? error.message : String(error);
    if (error instanceof CallError) {
      if (error.code === status.RESOURCE_EXHAUSTED) this.#intake.refuse(message, receiver);
      return error;
    }
    if (error instanceof RefusedRequest) return new CallError(status.INVALID_ARGUMENT, message);
    if (error instanceof BusyReceiver) return new CallError(status.UNAVAILABLE, message, RETRY_AFTER_S);
    if (error instanceof OverBudget || error instanceof TooSlow || error instanceof BadBody)
      this.#intake.refuse(message, receiver);
    if (error instanceof OverBudget) return new CallError(status.UNAVAILABLE, message, RETRY_AFTER_S);
    if (error instanceof TooSlow) return new CallError(status.DEADLINE_EXCEEDED, message);
    return new CallError(error instanceof BadBody ? status.INVALID_ARGUMENT : status.INTERNAL, message);
  }
}

/** @throws CallError for a call that is not to be read */
function findHandler(headers: IncomingHttpHeaders): Handler {
  const path = String(headers[constants.HTTP2_HEADER_PATH]);
  const type = String(headers['content-type']);
  const handler = Object.hasOwn(HANDLERS, path) ? HANDLERS[path] : undefined;
  const refuse = (reason: string): CallError => new CallError(status.UNIMPLEMENTED, reason);
  if (!handler) throw refuse(`nothing at ${excerpt(path)}: gRPC calls go to ${PROFILES_EXPORT_PATH}`);
  const method = String(headers[constants.HTTP2_HEADER_METHOD]);
  if (method !== 'POST') throw refuse(`the method is ${excerpt(method)}: gRPC calls are POST`);
  if (!/^application\/grpc($|[+;])/.test(type))
    throw refuse(`content-type is "${excerpt(type)}": send application/grpc, no gRPC-Web`);
  return handler;
}

/** Calls under way get a second to end; connections that stay open are cut. */
function stopServer(
  server: Http2Server | Http2SecureServer,
  sessions: ReadonlySet<ServerHttp2Session>,
): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      for (const session of sessions) session.destroy();
    }, 1000);
    server.close(() => {
      clearTimeout(timer);
      resolve();
    });
    for (const session of sessions) session.close();
  });
}

export function encodeExportResponse({ rejectedProfiles, errorMessage }: ExportResult): Buffer {
  if (errorMessage === '' && rejectedProfiles === 0) return Buffer.alloc(0);
  const partialSuccess = { rejectedProfiles: Long.fromNumber(rejectedProfiles), errorMessage };
  return Buffer.from(ExportProfilesServiceResponse.encode({ partialSuccess }).finish());
}
