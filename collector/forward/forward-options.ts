/** What `--forward-to` and the flags around it say, as options of the sender. */
import { BadSetting } from '../../common/base/bad-setting.ts';
import {
  parseAddress,
  readCertificates,
  readHeadersFile,
  systemAuthorities,
} from '../../otlp-client/endpoint.ts';
import type { SenderOptions } from '../../otlp-client/request-sender.ts';
import { MAX_REQUEST_BYTES } from '../ingest/receiver.ts';
import { isLoopback } from '../net/listen.ts';

export interface ForwardSettings {
  /** `HOST:PORT`: with TLS, on this machine without; `http://` or `https://` before it says which. */
  to: string;
  tlsCa?: string | undefined;
  headersFile?: string | undefined;
  /** Of requests that wait for the receiver. */
  maxQueueBytes: number;
}

const MIN_REQUEST_BYTES = 16 << 10;
const MAX_QUEUE_ENTRIES = 8192;

/** @throws BadSetting with a sentence that names the flag and the file */
export function forwardOptions(
  { to, tlsCa, headersFile, maxQueueBytes }: ForwardSettings,
  env: Record<string, string | undefined> = process.env,
): SenderOptions {
  const { address, scheme } = parseAddress(to, 'forward-to');
  const host = address.slice(0, address.lastIndexOf(':')).replace(/^\[(.*)\]$/, '$1');
  const plain = scheme === undefined ? isLoopback(host) : scheme === 'http';
  if (plain && tlsCa !== undefined)
    throw new BadSetting(
      `--forward-tls-ca has no use for ${to}, which is without TLS: write https://${address}`,
    );
  const ca = tlsCa === undefined ? systemAuthorities(env) : readCertificates(tlsCa, 'forward-tls-ca');
  return {
    address,
    tls: plain ? undefined : ca === undefined ? {} : { ca },
    headers: headersFile === undefined ? [] : readHeadersFile(headersFile, 'forward-headers-file'),
    compression: 'auto',
    // What arrived in one piece is passed on in one, until the receiver finds it too large.
    maxRequestBytes: Math.min(MAX_REQUEST_BYTES, maxQueueBytes),
    minRequestBytes: MIN_REQUEST_BYTES,
    maxQueueBytes,
    maxQueueEntries: MAX_QUEUE_ENTRIES,
    requestTimeoutMs: 10_000,
    backoffMinMs: 500,
    backoffMaxMs: 30_000,
    notes: [],
    hints: {
      plaintext: `write --forward-to http://${address}`,
      authority: '--forward-tls-ca',
      credentials: '--forward-headers-file',
    },
  };
}
