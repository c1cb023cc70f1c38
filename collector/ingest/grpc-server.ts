import {
  logVerbosity,
  type Metadata,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  type sendUnaryData,
  setLogVerbosity,
  status,
} from '@grpc/grpc-js';
import Long from 'long';
import { opentelemetry } from '#otlp';
import { METRICS_EXPORT_PATH } from '../../common/profile/otlp-metrics.ts';
import { type Access, OPEN_ACCESS, TOKEN_NEEDED } from '../access.ts';
import {
  BusyReceiver,
  type ExportResult,
  MAX_REQUEST_BYTES,
  type Receiver,
  RefusedRequest,
} from './receiver.ts';

const { ExportProfilesServiceResponse } = opentelemetry.proto.collector.profiles.v1development;

const SERVICE: ServiceDefinition = {
  export: {
    path: '/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export',
    requestStream: false,
    responseStream: false,
    // The receiver decodes: it keeps what is good of a request that has bad parts.
    requestDeserialize: (bytes: Buffer) => bytes,
    requestSerialize: (bytes: Buffer) => bytes,
    responseDeserialize: (bytes: Buffer) => bytes,
    responseSerialize: (bytes: Buffer) => bytes,
  },
};

interface Call {
  request: Buffer;
  metadata: Metadata;
  getPeer(): string;
}

/** Where agents push their own counters, with --self-metrics; of other metrics nothing is kept. */
const METRICS_SERVICE: ServiceDefinition = {
  export: { ...SERVICE['export']!, path: METRICS_EXPORT_PATH },
};

export interface IngestServer {
  /** Bound port: the asked one, or the free one that was found for port 0. */
  port: number;
  stop(): Promise<void>;
}

/**
 * Listens for OTLP over gRPC; gzip is accepted.
 *
 * @throws Error of grpc-js when the address can't be bound
 */
export async function startGrpcServer(
  listen: string,
  receiver: Receiver,
  access = OPEN_ACCESS,
): Promise<IngestServer> {
  const server = new Server({
    'grpc.max_receive_message_length': MAX_REQUEST_BYTES,
    // Agents that lost their network are noticed after a minute, not after hours.
    'grpc.keepalive_time_ms': 60_000,
    'grpc.keepalive_timeout_ms': 20_000,
  });
  const admits = (call: Call, reply: sendUnaryData<Buffer>): boolean => {
    const [authorization] = call.metadata.get('authorization');
    if (access.allows(authorization?.toString())) return true;
    receiver.refuse('no right token');
    reply({ code: status.UNAUTHENTICATED, details: TOKEN_NEEDED });
    return false;
  };
  server.addService(SERVICE, {
    export: (call: Call, reply: sendUnaryData<Buffer>) => {
      if (!admits(call, reply)) return;
      receiver.receiveProtobuf(call.request, peerHost(call.getPeer())).then(
        (result) => reply(null, encodeExportResponse(result)),
        (error: Error) => reply({ code: codeOf(error), details: error.message }),
      );
    },
  });
  server.addService(METRICS_SERVICE, {
    export: (call: Call, reply: sendUnaryData<Buffer>) => {
      if (!admits(call, reply)) return;
      try {
        receiver.receiveCounters(call.request, peerHost(call.getPeer()));
        reply(null, Buffer.alloc(0));
      } catch (error) {
        reply({ code: codeOf(error), details: error instanceof Error ? error.message : String(error) });
      }
    },
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(listen, credentialsOf(access), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { port, stop: () => stopServer(server) };
}

function credentialsOf({ tls }: Access): ServerCredentials {
  if (tls === undefined) return ServerCredentials.createInsecure();
  return ServerCredentials.createSsl(null, [{ cert_chain: tls.cert, private_key: tls.key }]);
}

/** OTLP's senders try again where it is UNAVAILABLE, and give up otherwise. */
function codeOf(error: unknown): status {
  if (error instanceof RefusedRequest) return status.INVALID_ARGUMENT;
  return error instanceof BusyReceiver ? status.UNAVAILABLE : status.INTERNAL;
}

/** Requests under way get a second to end; connections that stay open are cut. */
function stopServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      server.forceShutdown();
      resolve();
    }, 1000);
    server.tryShutdown(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

export function encodeExportResponse({ rejectedProfiles, errorMessage }: ExportResult): Buffer {
  if (errorMessage === '' && rejectedProfiles === 0) return Buffer.alloc(0);
  const partialSuccess = { rejectedProfiles: Long.fromNumber(rejectedProfiles), errorMessage };
  return Buffer.from(ExportProfilesServiceResponse.encode({ partialSuccess }).finish());
}

/** grpc-js writes to standard error what it also reports by callback; GRPC_VERBOSITY brings that back. */
if (process.env['GRPC_VERBOSITY'] === undefined) setLogVerbosity(logVerbosity.NONE);

/** `127.0.0.1:4711` or `[::1]:4711` → the address. */
function peerHost(peer: string): string {
  return peer.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');
}
