/** Reads what settings say of a receiver: its address, headers and certificates. Each throws {@link BadSetting}. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { BadSetting } from '../common/base/bad-setting.ts';
import { inWords } from '../common/base/system-error.ts';
import { readSettingFile } from './setting-file.ts';

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

function readNamed(path: string, flag: string): Buffer {
  try {
    return readSettingFile(path, MAX_FILE_BYTES);
  } catch (error) {
    throw new BadSetting(`can't read ${path}, which --${flag} names: ${inWords(error)}`);
  }
}

interface Address {
  address: string;
  scheme: 'http' | 'https' | undefined;
}

/** `host:port`, `[ipv6]:port`, either after `http://` or `https://`. */
export function parseAddress(text: string, flag: string): Address {
  const match = /^(?:(https?):\/\/)?(\[[^\]]+\]|[^:/?#@\s[\]]+):(\d{1,5})\/?$/i.exec(text.trim());
  const [, scheme, host = '', portText = ''] = match ?? [];
  const port = Number(portText);
  const goodHost = host.startsWith('[') ? isIPv6(host.slice(1, -1)) : /^[\w.-]+$/.test(host);
  if (!match || !goodHost || port < 1 || port > 65_535) {
    throw new BadSetting(
      `--${flag} is "${text}": give host:port, such as collector.example:4317 or [::1]:4317`,
    );
  }
  return { address: `${host}:${port}`, scheme: scheme?.toLowerCase() as Address['scheme'] };
}

/** The value may be a secret, so no message says it. */
export function parseHeader(text: string, where: string): [string, string] {
  const equals = text.indexOf('=');
  if (equals < 1) throw new BadSetting(`${where} is not NAME=VALUE: a "=" must follow a name`);
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
export function readHeadersFile(path: string, flag: string): [string, string][] {
  const headers: [string, string][] = [];
  for (const [i, line] of readNamed(path, flag).toString('utf8').split('\n').entries()) {
    const text = line.trim();
    if (text === '' || text.startsWith('#')) continue;
    headers.push(parseHeader(text, `line ${i + 1} of ${path} (--${flag})`));
  }
  return headers;
}

export function readCertificates(path: string, flag: string): Buffer {
  const pem = readNamed(path, flag);
  try {
    new X509Certificate(pem);
  } catch (error) {
    throw new BadSetting(
      `${path}, which --${flag} names, is not a PEM certificate: ${(error as Error).message}`,
    );
  }
  return pem;
}

export function readKey(path: string, flag: string): { pem: Buffer; key: KeyObject } {
  const pem = readNamed(path, flag);
  try {
    return { pem, key: createPrivateKey(pem) };
  } catch (error) {
    throw new BadSetting(
      `${path}, which --${flag} names, is not a PEM private key without a passphrase: ${(error as Error).message}`,
    );
  }
}

export function systemAuthorities(env: Record<string, string | undefined>): Buffer | undefined {
  const named = env['SSL_CERT_FILE'];
  for (const path of named ? [named] : SYSTEM_CA_FILES) {
    try {
      return readSettingFile(path, MAX_FILE_BYTES);
    } catch {
      // the next one, or Node's own list
    }
  }
  return undefined;
}
