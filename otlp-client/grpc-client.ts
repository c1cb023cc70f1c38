/** One gRPC client with the agent's connection settings, and unary calls of bytes that are encoded already. */
import {
  type ChannelCredentials,
  Client,
  type ClientUnaryCall,
  compressionAlgorithms,
  connectivityState,
  credentials,
  Metadata,
  type ServiceError,
} from '@grpc/grpc-js';
import { adoptProxyVariables } from './proxy.ts';

export interface TlsFiles {
  /** PEM; undefined: Node's own authorities. */
  ca?: Buffer;
  /** PEM, both or none. */
  cert?: Buffer;
  key?: Buffer;
}

export interface ConnectionOptions {
  /** What gRPC dials (receiver-address.ts); of HTTP what a person is told. */
  address: string;
  /** OTLP over HTTP in place of gRPC. */
  http?: { profiles: URL; metrics: URL; socketPath?: string | undefined };
  /** undefined: no TLS. */
  tls: TlsFiles | undefined;
  /** gRPC metadata of every call; names in lower case. A name that ends in `-bin` has a base64 value. */
  headers: readonly (readonly [name: string, value: string])[];
  /** `auto`: gzip, but nothing to this machine itself, where bytes cost less than making them fewer. */
  compression: 'auto' | 'gzip' | 'none';
}

/** Answers are a few bytes; a receiver that sends more is wrong or hostile. */
const MAX_RESPONSE_BYTES = 64 * 1024;
/** Requests are bounded by the reporter, not by the channel. */
const NO_LIMIT = -1;
const LOOPBACK = /^(?:(?:dns:(?:\/\/\/)?|https?:\/\/)?(?:localhost|127(?:\.\d+){3}|\[::1\])[:/]|unix:)/i;

export const usesGzip = ({ address, compression }: ConnectionOptions): boolean =>
  compression === 'gzip' || (compression === 'auto' && !LOOPBACK.test(address));

function channelCredentials(tls: TlsFiles | undefined): ChannelCredentials {
  if (!tls) return credentials.createInsecure();
  return credentials.createSsl(tls.ca ?? null, tls.key ?? null, tls.cert ?? null);
}

function metadataOf(headers: ConnectionOptions['headers']): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of headers) {
    metadata.add(name, name.endsWith('-bin') ? Buffer.from(value, 'base64') : value);
  }
  return metadata;
}

/** Connects at the first call and reconnects by itself; making one never waits. */
export class GrpcClient {
  readonly #client: Client;
  readonly #metadata: Metadata;

  constructor(options: ConnectionOptions) {
    adoptProxyVariables(process.env);
    this.#metadata = metadataOf(options.headers);
    const isHere = LOOPBACK.test(options.address);
    this.#client = new Client(options.address, channelCredentials(options.tls), {
      'grpc.default_compression_algorithm': usesGzip(options)
        ? compressionAlgorithms.gzip
        : compressionAlgorithms.identity,
      'grpc.max_send_message_length': NO_LIMIT,
      'grpc.max_receive_message_length': MAX_RESPONSE_BYTES,
      // Pings show a peer that vanished without a word while a call waits.
      'grpc.keepalive_time_ms': 30_000,
      'grpc.keepalive_timeout_ms': 10_000,
      // grpc-js would wait up to 2 minutes between two attempts to connect; the reporter has its own backoff.
      'grpc.initial_reconnect_backoff_ms': 500,
      'grpc.max_reconnect_backoff_ms': 5_000,
      // The reporter retries; a second copy of each request in the channel would only cost memory.
      'grpc.enable_retries': 0,
      // grpc-js would ask http_proxy for this machine's own collector too.
      'grpc.enable_http_proxy': isHere ? 0 : 1,
      // Two exporters never share a connection: one that is replaced must get a new one.
      'grpc.use_local_subchannel_pool': 1,
    });
  }

  /** `done` is called once; never throws. */
  call(
    path: string,
    request: Uint8Array,
    deadlineMs: number,
    done: (error: ServiceError | null, response: Buffer | undefined) => void,
  ): ClientUnaryCall {
    return this.#client.makeUnaryRequest(
      path,
      (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
      (bytes: Buffer) => bytes,
      request,
      this.#metadata,
      { deadline: Date.now() + deadlineMs },
      done,
    );
  }

  isConnected(): boolean {
    return this.#client.getChannel().getConnectivityState(false) === connectivityState.READY;
  }

  close(): void {
    this.#client.close();
  }
}
