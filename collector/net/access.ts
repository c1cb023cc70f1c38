/** Who may talk to the collector, and how: TLS and bearer tokens, the same for each of its servers. */
import { createHash, createPrivateKey, timingSafeEqual, X509Certificate } from 'node:crypto';
import type { RequestListener, Server } from 'node:http';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Server as NetServer, Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { BadSetting } from '../../common/base/bad-setting.ts';
import { inWords } from '../../common/base/system-error.ts';
import { readSettingFile } from '../../otlp-client/setting-file.ts';
import { SOLE_TENANT, type TenantToken } from '../settings/tenants.ts';

export interface Tls {
  /** PEM. */
  cert: Buffer;
  key: Buffer;
}

export interface AccessFiles {
  tlsCert?: string | undefined;
  tlsKey?: string | undefined;
  tokenFile?: string | undefined;
  /** Instead of one token for all. */
  tenant?: readonly TenantToken[];
}

/** Digest of each tenant's token; nobody needs one where there is none. */
type Tokens = ReadonlyMap<string, Buffer>;

/** Before anybody knows who asks. Requests that come slowly hold a connection only for so long. */
const HTTP_LIMITS = {
  maxHeaderSize: 16 * 1024,
  headersTimeout: 10_000,
  keepAliveTimeout: 10_000,
  connectionsCheckingInterval: 2000,
};
const MAX_HEADERS = 100;
const HANDSHAKE_MS = 10_000;
export const SECURE = { minVersion: 'TLSv1.2' } as const;

/** Shorter ones can be guessed. */
const MIN_TOKEN_LENGTH = 16;

/** What serves TLS: node:tls' Server, and what is made of it. */
type SecureServer = Pick<TlsServer, 'setSecureContext'>;

export class Access {
  #tls: Tls | undefined;
  #tokens: Tokens;
  readonly #servers: SecureServer[] = [];
  /** Those of {@link withoutTls}. */
  readonly #plain: Access[] = [];

  constructor(tls: Tls | undefined, token: string | Tokens | undefined) {
    this.#tls = tls;
    this.#tokens = typeof token === 'string' ? new Map([[SOLE_TENANT, digest(token)]]) : (token ?? new Map());
  }

  get tls(): Tls | undefined {
    return this.#tls;
  }

  /** The same tokens without TLS: for what does not leave this machine. */
  withoutTls(): Access {
    const plain = new Access(undefined, this.#tokens);
    this.#plain.push(plain);
    return plain;
  }

  /** What serves with this certificate gets the next one too. */
  keepCertificateOf(server: SecureServer): void {
    this.#servers.push(server);
  }

  /**
   * Takes other tokens and another certificate, for what connects and asks from now on. False, and nothing is taken, where one
   * is new or gone: that is for a start.
   */
  renew(next: Access): boolean {
    const isSame =
      this.#tokens.size === next.#tokens.size &&
      [...this.#tokens.keys()].every((name) => next.#tokens.has(name));
    if (!isSame || this.scheme !== next.scheme) return false;
    this.#tls = next.#tls;
    this.#tokens = next.#tokens;
    for (const plain of this.#plain) plain.#tokens = next.#tokens;
    if (next.#tls) for (const server of this.#servers) server.setSecureContext({ ...next.#tls, ...SECURE });
    return true;
  }

  get needsToken(): boolean {
    return this.#tokens.size > 0;
  }

  /** One, without a name, where there is one token or none. */
  get tenants(): readonly string[] {
    return this.needsToken ? [...this.#tokens.keys()] : [SOLE_TENANT];
  }

  get scheme(): 'http' | 'https' {
    return this.tls === undefined ? 'http' : 'https';
  }

  /**
   * `Bearer TOKEN`; or Basic with the token as the password, which is what a browser can send.
   *
   * @returns whose token it is; undefined: nobody's
   */
  tenantOf(authorization: string | undefined): string | undefined {
    if (!this.needsToken) return SOLE_TENANT;
    const [, scheme = '', value = ''] = /^(\S+)\s+(\S+)\s*$/.exec(authorization ?? '') ?? [];
    const basic =
      scheme.toLowerCase() === 'basic' ? Buffer.from(value, 'base64').toString('utf8') : undefined;
    if (basic === undefined && scheme.toLowerCase() !== 'bearer') return undefined;
    const given = digest(basic === undefined ? value : basic.slice(basic.indexOf(':') + 1));
    const owners = [...this.#tokens].filter(([, token]) => timingSafeEqual(given, token));
    return owners[0]?.[0];
  }

  createServer(options: { requestTimeout?: number }, listener: RequestListener): Server {
    const all = { ...HTTP_LIMITS, ...options };
    const server =
      this.tls === undefined
        ? createServer(all, listener)
        : createTlsServer({ ...all, ...this.tls, ...SECURE, handshakeTimeout: HANDSHAKE_MS }, listener);
    if (server instanceof TlsServer) this.keepCertificateOf(server);
    server.maxHeadersCount = MAX_HEADERS;
    return server;
  }

  /** Who speaks TLS where none is, or none where it is, or trusts another certificate, is told of by `note`. */
  noteBadHandshakes(server: NetServer, name: string, note: (reason: string) => void): void {
    server.on('tlsClientError', ({ code, message }: NodeJS.ErrnoException) => {
      const why =
        code === 'ERR_SSL_HTTP_REQUEST' || code === 'ERR_SSL_WRONG_VERSION_NUMBER'
          ? 'a connection without TLS: this port speaks TLS (--tls-cert), write https://'
          : `a TLS handshake failed: ${explainTls(code, message)}`;
      note(`${name}: ${why}`);
    });
    server.on('clientError', (error: NodeJS.ErrnoException & { rawPacket?: Buffer }, socket: Socket) => {
      if (error.rawPacket?.[0] === TLS_HANDSHAKE)
        note(`${name}: a connection with TLS: this port speaks none (--tls-cert), write http://`);
      refuseHttp(error, socket);
    });
  }
}

/** First byte of a TLS connection. */
const TLS_HANDSHAKE = 0x16;

/** Clients say in an alert why they leave. */
function explainTls(code: string | undefined, message: string): string {
  if (code?.startsWith('ERR_SSL_') && /ALERT_UNKNOWN_CA|CERTIFICATE/.test(code))
    return `the other side does not trust --tls-cert (${code}): give it the authority, or another certificate`;
  return code ?? message.slice(0, 100);
}

/** What Node answers by itself where nobody listens. */
function refuseHttp({ code }: NodeJS.ErrnoException, socket: Socket): void {
  const answers: Record<string, string> = {
    HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
    ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
  };
  if (socket.writable && code !== 'ECONNRESET')
    socket.write(`HTTP/1.1 ${answers[code ?? ''] ?? '400 Bad Request'}\r\nConnection: close\r\n\r\n`);
  socket.destroy();
}

export const OPEN_ACCESS = new Access(undefined, undefined);

/** What a request without a right token is told. */
export const TOKEN_NEEDED =
  'a token is needed: send "authorization: Bearer TOKEN" with the token of --token-file or --tenant';

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/** @throws Error whose message names the flag, the file and what is wrong */
export function readAccess({ tlsCert, tlsKey, tokenFile, tenant = [] }: AccessFiles): Access {
  if ((tlsCert === undefined) !== (tlsKey === undefined)) {
    const [given, missing] = tlsCert === undefined ? ['key', 'cert'] : ['cert', 'key'];
    throw new BadSetting(`--tls-${given} needs --tls-${missing}: give both, or neither`);
  }
  const tls = tlsCert === undefined ? undefined : readTls(tlsCert, tlsKey!);
  return new Access(tls, tokenFile === undefined ? readTokens(tenant) : readToken(tokenFile));
}

function readTokens(tenants: readonly TenantToken[]): Tokens {
  const tokens = new Map<string, Buffer>();
  for (const { name, tokenFile } of tenants) {
    const token = digest(readToken(tokenFile, 'tenant'));
    const other = [...tokens].find(([, each]) => each.equals(token));
    if (other)
      throw new Error(
        `--tenant ${name}: ${tokenFile} has the token of tenant ${other[0]}: give each its own`,
      );
    tokens.set(name, token);
  }
  return tokens;
}

function readTls(certPath: string, keyPath: string): Tls {
  const cert = readSetting('tls-cert', certPath);
  const key = readSetting('tls-key', keyPath);
  const certificate = parse('tls-cert', certPath, 'PEM certificate', () => new X509Certificate(cert));
  const privateKey = parse('tls-key', keyPath, 'PEM private key without a passphrase', () =>
    createPrivateKey(key),
  );
  if (!certificate.checkPrivateKey(privateKey))
    throw new Error(`${keyPath} (--tls-key) is not the key of ${certPath} (--tls-cert): give the pair`);
  return { cert, key };
}

/** @throws Error whose message names the file and what is wrong */
export function readToken(path: string, flag = 'token-file'): string {
  const token = readSetting(flag, path).toString('utf8').trim();
  if (!/^[\x21-\x7e]+$/.test(token) || token.length < MIN_TOKEN_LENGTH) {
    throw new Error(
      `${path} (--${flag}) must hold one line of ${MIN_TOKEN_LENGTH} or more printable characters without ` +
        'spaces: make one with `openssl rand -hex 32`',
    );
  }
  return token;
}

/** Of a certificate, a key, a token. */
const MAX_SETTING_BYTES = 2 ** 20;

function readSetting(flag: string, path: string): Buffer {
  try {
    return readSettingFile(path, MAX_SETTING_BYTES);
  } catch (error) {
    throw new Error(`can't read ${path}, which --${flag} names: ${inWords(error)}`);
  }
}

function parse<T>(flag: string, path: string, what: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new Error(`${path}, which --${flag} names, is not a ${what}: ${(error as Error).message}`);
  }
}
