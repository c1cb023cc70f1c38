/** Reads what the agent's settings name (headers, certificates) and makes the reporter's options of them. */
import { X509Certificate } from 'node:crypto';
import { BadSetting } from '../../common/base/bad-setting.ts';
import { flagOf } from '../../common/base/setting.ts';
import {
  parseHeader,
  readCertificates,
  readHeadersFile,
  readKey,
  systemAuthorities,
} from '../../otlp-client/endpoint.ts';
import type { TlsFiles } from '../../otlp-client/grpc-client.ts';
import { parseReceiver, type ReceiverAddress } from '../../otlp-client/receiver-address.ts';
import type { SenderOptions } from '../../otlp-client/request-sender.ts';
import { BASE_ENDPOINT, isSignalEndpoint } from '../settings/exporter-environment.ts';
import type { AgentOptions } from '../settings/options.ts';

/** What gRPC servers accept unless they are told otherwise. */
const MAX_REQUEST_BYTES = 4 << 20;
const MIN_REQUEST_BYTES = 16 << 10;
const MAX_QUEUE_ENTRIES = 1024;

type Environment = Record<string, string | undefined>;

function readTls(options: AgentOptions, env: Environment): TlsFiles {
  const tls: TlsFiles = {};
  const ca = options.tlsCa ? readCertificates(options.tlsCa, 'tls-ca') : systemAuthorities(env);
  if (ca) tls.ca = ca;
  if (!options.tlsCert && !options.tlsKey) return tls;
  if (!options.tlsCert) throw new BadSetting('--tls-key needs --tls-cert: give the certificate of that key');
  if (!options.tlsKey) throw new BadSetting('--tls-cert needs --tls-key: give the key of that certificate');
  tls.cert = readCertificates(options.tlsCert, 'tls-cert');
  const { pem, key } = readKey(options.tlsKey, 'tls-key');
  if (!new X509Certificate(tls.cert).checkPrivateKey(key)) {
    throw new BadSetting(
      `${options.tlsKey} (--tls-key) is not the key of ${options.tlsCert} (--tls-cert): give the pair`,
    );
  }
  tls.key = pem;
  return tls;
}

const HINTS = {
  plaintext: 'give --disable-tls',
  authority: '--tls-ca',
  credentials: '--header, --headers-file, --tls-cert and --tls-key',
};

/** One for each destination. Throws {@link BadSetting} with a sentence that names the flag and the file. */
export function destinationOptions(
  options: AgentOptions,
  env: Environment = process.env,
): [SenderOptions, ...SenderOptions[]] {
  const [first, ...others] = options.collectionAgent;
  if (first === undefined || first === '')
    throw new BadSetting('--collection-agent is missing: give the host:port that takes profiles');
  return [
    { ...reporterOptions(options, first, env), notes: [...options.notes, ...notesOf(options, first)] },
    ...others.map((each) => ({ ...reporterOptions(options, each, env), notes: notesOf(options, each) })),
  ];
}

/** Of one destination. */
export function reporterOptions(options: AgentOptions, receiver: string, env: Environment): SenderOptions {
  const { origin, address } = readReceiver(options, receiver);
  const isHttp = options.protocol !== 'grpc';
  const plain = isPlain(options, address);
  if (!isHttp && (address.path ?? '/') !== '/' && origin.startsWith('--'))
    throw new BadSetting(
      `${origin} is "${receiver}": gRPC has no paths; leave it out, or give --protocol http/protobuf`,
    );
  const http = isHttp ? httpPlace(receiver, address, plain, origin) : undefined;
  return {
    address: http ? (address.socketPath === undefined ? http.profiles.href : address.target) : address.target,
    ...(http && { http }),
    tls: plain ? undefined : readTls(options, env),
    headers: [
      ...(options.headersFile ? readHeadersFile(options.headersFile, 'headers-file') : []),
      ...options.header.map((text, i) => parseHeader(text, `--header number ${i + 1}`)),
    ],
    compression: options.compression,
    maxRequestBytes: Math.min(MAX_REQUEST_BYTES, Math.floor(options.maxQueueBytes / 4)),
    minRequestBytes: MIN_REQUEST_BYTES,
    maxQueueBytes: options.maxQueueBytes,
    maxQueueEntries: MAX_QUEUE_ENTRIES,
    requestTimeoutMs: options.exportTimeout,
    backoffMinMs: 500,
    backoffMaxMs: 30_000,
    notes: [],
    hints: HINTS,
  };
}

/** The flag or variable that a setting comes from. */
const originOf = (options: AgentOptions, name: string): string => options.origins[name] ?? flagOf(name);

function readReceiver(options: AgentOptions, receiver: string): { origin: string; address: ReceiverAddress } {
  const origin = originOf(options, 'collectionAgent');
  return { origin, address: parseReceiver(receiver, origin) };
}

/** A scheme says it; a socket of this machine leaves it only by a name in the file system. */
function isPlain(options: AgentOptions, { scheme, socketPath }: ReceiverAddress): boolean {
  if (scheme !== undefined) {
    const isClash =
      scheme === 'https' &&
      options.disableTls &&
      [originOf(options, 'disableTls'), originOf(options, 'collectionAgent')].every((each) =>
        each.startsWith('--'),
      );
    if (isClash)
      throw new BadSetting(
        `--disable-tls contradicts --collection-agent ${options.collectionAgent}: drop one`,
      );
    return scheme === 'http';
  }
  const hasFiles = options.tlsCa !== undefined || options.tlsCert !== undefined;
  return options.disableTls || (socketPath !== undefined && !hasFiles);
}

const PROFILES_PATH = 'v1development/profiles';
const METRICS_PATH = 'v1/metrics';

/** A path that was written is the whole one, but that of OTEL_EXPORTER_OTLP_ENDPOINT, which is what all signals share. */
function httpPlace(receiver: string, address: ReceiverAddress, plain: boolean, origin: string) {
  if (address.authority === undefined)
    throw new BadSetting(`${origin} is "${receiver}": a list of addresses is for gRPC; HTTP takes one URL`);
  const root = `${plain ? 'http' : 'https'}://${address.authority}`;
  const path = address.path ?? '';
  const isBase = origin === BASE_ENDPOINT;
  const isWhole = !isBase && (path !== '' || isSignalEndpoint(origin));
  const base = `${root}${isBase ? path.replace(/\/$/, '') : ''}`;
  return {
    profiles: new URL(isWhole ? root + (path || '/') : `${base}/${PROFILES_PATH}`),
    metrics: new URL(isWhole ? `${root}/${METRICS_PATH}` : `${base}/${METRICS_PATH}`),
    socketPath: address.socketPath,
  };
}

/** What a person should know about how their settings were read. */
function notesOf(options: AgentOptions, receiver: string): string[] {
  const { origin, address } = readReceiver(options, receiver);
  const notes: string[] = [];
  if (isPlain(options, address) && (options.tlsCa || options.tlsCert || options.tlsKey))
    notes.push('--tls-ca, --tls-cert and --tls-key have no effect without TLS');
  if (options.protocol === 'grpc' && (address.path ?? '/') !== '/')
    notes.push(`${origin}: the path ${address.path} has no effect, gRPC has none`);
  if (options.disableTls && address.scheme === 'https')
    notes.push(`${originOf(options, 'disableTls')} has no effect: ${receiver} asks for TLS`);
  return notes;
}
