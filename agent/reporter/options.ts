/** Reads what the agent's settings name (headers, certificates) and makes the reporter's options of them. */
import { X509Certificate } from 'node:crypto';
import { BadSetting } from '../../common/base/bad-setting.ts';
import {
  parseAddress,
  parseHeader,
  readCertificates,
  readHeadersFile,
  readKey,
  systemAuthorities,
} from '../../otlp-client/endpoint.ts';
import type { TlsFiles } from '../../otlp-client/grpc-client.ts';
import type { SenderOptions } from '../../otlp-client/request-sender.ts';
import type { AgentOptions } from '../settings/options.ts';

/** What gRPC servers accept unless they are told otherwise. */
const MAX_REQUEST_BYTES = 4 << 20;
const MIN_REQUEST_BYTES = 16 << 10;
const MAX_QUEUE_ENTRIES = 1024;
const REQUEST_TIMEOUT_MS = 5000;
function readTls(options: AgentOptions, env: Record<string, string | undefined>): TlsFiles {
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

/** Throws {@link BadSetting} with a sentence that names the flag and the file. */
export function reporterOptions(
  options: AgentOptions,
  env: Record<string, string | undefined> = process.env,
): SenderOptions {
  if (!options.collectionAgent) {
    throw new BadSetting('--collection-agent is missing: give the host:port that takes profiles');
  }
  const { address, scheme } = parseAddress(options.collectionAgent, 'collection-agent');
  if (scheme === 'https' && options.disableTls) {
    throw new BadSetting(`--disable-tls contradicts --collection-agent ${options.collectionAgent}: drop one`);
  }
  const plain = options.disableTls || scheme === 'http';
  const notes: string[] = [];
  if (scheme) {
    notes.push(
      `--collection-agent takes host:port: ${scheme}:// is read as ${address} ${plain ? 'without' : 'with'} TLS`,
    );
  }
  if (plain && (options.tlsCa || options.tlsCert || options.tlsKey)) {
    notes.push('--tls-ca, --tls-cert and --tls-key have no effect without TLS');
  }
  return {
    address,
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
    requestTimeoutMs: REQUEST_TIMEOUT_MS,
    backoffMinMs: 500,
    backoffMaxMs: 30_000,
    notes,
    hints: HINTS,
  };
}
