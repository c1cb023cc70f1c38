/** Reads what the agent's settings name (headers, certificates) and makes the reporter's options of them. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { type AgentOptions, BadSetting } from '../options.ts';
import type { TlsFiles } from './grpc-client.ts';
import type { ReporterOptions } from './reporter.ts';

/** What gRPC servers accept unless they are told otherwise. */
const MAX_REQUEST_BYTES = 4 << 20;
const MIN_REQUEST_BYTES = 16 << 10;
const MAX_QUEUE_ENTRIES = 1024;
const REQUEST_TIMEOUT_MS = 5000;
/** Bundles of certificates are a few hundred KiB. */
const MAX_FILE_BYTES = 16 << 20;

/** Where distributions keep the authorities that the machine's owner trusts; Node has its own list instead. */
const SYSTEM_CA_FILES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/cert.pem',
];

function readSettingFile(path: string, flag: string): Buffer {
  try {
    const { size } = statSync(path);
    if (size > MAX_FILE_BYTES)
      throw new Error(`${size} bytes, more than the ${MAX_FILE_BYTES} that are read`);
    return readFileSync(path);
  } catch (error) {
    throw new BadSetting(`can't read ${path}, which --${flag} names: ${(error as Error).message}`);
  }
}

interface Address {
  address: string;
  scheme: 'http' | 'https' | undefined;
}

/** `host:port`, `[ipv6]:port`, either after `http://` or `https://`. */
function parseAddress(text: string): Address {
  const match = /^(?:(https?):\/\/)?(\[[^\]]+\]|[^:/?#@\s[\]]+):(\d{1,5})\/?$/i.exec(text.trim());
  const [, scheme, host = '', portText = ''] = match ?? [];
  const port = Number(portText);
  const goodHost = host.startsWith('[') ? isIPv6(host.slice(1, -1)) : /^[\w.-]+$/.test(host);
  if (!match || !goodHost || port < 1 || port > 65_535) {
    throw new BadSetting(
      `--collection-agent is "${text}": give host:port, such as collector.example:4317 or [::1]:4317`,
    );
  }
  return { address: `${host}:${port}`, scheme: scheme?.toLowerCase() as Address['scheme'] };
}

/** The value may be a secret, so no message says it. */
function parseHeader(text: string, where: string): [string, string] {
  const equals = text.indexOf('=');
  if (equals < 1) throw new BadSetting(`${where} is no NAME=VALUE: a "=" must follow a name`);
  const name = text.slice(0, equals).trim().toLowerCase();
  const value = text.slice(equals + 1).trim();
  if (!/^[0-9a-z_.-]+$/.test(name) || name.startsWith('grpc-')) {
    throw new BadSetting(
      `${where} has the name "${name}": use letters, digits, "_", "-" and ".", and nothing that starts with "grpc-"`,
    );
  }
  const binary = name.endsWith('-bin');
  if (binary ? !/^[A-Za-z0-9+/]*={0,2}$/.test(value) : !/^[\x20-\x7e]*$/.test(value)) {
    throw new BadSetting(
      `the value of ${where} ("${name}") must be ${binary ? 'base64' : 'printable ASCII'}`,
    );
  }
  return [name, value];
}

/** Blank lines and lines that start with # are left out. */
function readHeadersFile(path: string): [string, string][] {
  const headers: [string, string][] = [];
  for (const [i, line] of readSettingFile(path, 'headers-file').toString('utf8').split('\n').entries()) {
    const text = line.trim();
    if (text === '' || text.startsWith('#')) continue;
    headers.push(parseHeader(text, `line ${i + 1} of ${path} (--headers-file)`));
  }
  return headers;
}

function readCertificates(path: string, flag: string): Buffer {
  const pem = readSettingFile(path, flag);
  try {
    new X509Certificate(pem);
  } catch (error) {
    throw new BadSetting(
      `${path}, which --${flag} names, is no PEM certificate: ${(error as Error).message}`,
    );
  }
  return pem;
}

function readKey(path: string): { pem: Buffer; key: KeyObject } {
  const pem = readSettingFile(path, 'tls-key');
  try {
    return { pem, key: createPrivateKey(pem) };
  } catch (error) {
    throw new BadSetting(
      `${path}, which --tls-key names, is no PEM private key without a passphrase: ${(error as Error).message}`,
    );
  }
}

function systemAuthorities(env: Record<string, string | undefined>): Buffer | undefined {
  const named = env['SSL_CERT_FILE'];
  for (const path of named ? [named] : SYSTEM_CA_FILES) {
    try {
      return readFileSync(path);
    } catch {
      // the next one, or Node's own list
    }
  }
  return undefined;
}

function readTls(options: AgentOptions, env: Record<string, string | undefined>): TlsFiles {
  const tls: TlsFiles = {};
  const ca = options.tlsCa ? readCertificates(options.tlsCa, 'tls-ca') : systemAuthorities(env);
  if (ca) tls.ca = ca;
  if (!options.tlsCert && !options.tlsKey) return tls;
  if (!options.tlsCert) throw new BadSetting('--tls-key needs --tls-cert: give the certificate of that key');
  if (!options.tlsKey) throw new BadSetting('--tls-cert needs --tls-key: give the key of that certificate');
  tls.cert = readCertificates(options.tlsCert, 'tls-cert');
  const { pem, key } = readKey(options.tlsKey);
  if (!new X509Certificate(tls.cert).checkPrivateKey(key)) {
    throw new BadSetting(
      `${options.tlsKey} (--tls-key) is not the key of ${options.tlsCert} (--tls-cert): give the pair`,
    );
  }
  tls.key = pem;
  return tls;
}

/** Throws {@link BadSetting} with a sentence that names the flag and the file. */
export function reporterOptions(
  options: AgentOptions,
  env: Record<string, string | undefined> = process.env,
): ReporterOptions {
  if (!options.collectionAgent) {
    throw new BadSetting('--collection-agent is missing: give the host:port that takes profiles');
  }
  const { address, scheme } = parseAddress(options.collectionAgent);
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
      ...(options.headersFile ? readHeadersFile(options.headersFile) : []),
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
  };
}
