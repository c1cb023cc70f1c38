/** How the page's server answers, whatever it was asked. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { PageFile } from '../net/page-files.ts';

const compress = promisify(gzip);

const MIN_COMPRESSED_BYTES = 2048;

/** The page asks its own server and nothing else, and nobody may frame it. */
const SECURITY_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

/** @param file what the body is of; JSON without it */
export async function sendAnswer(
  request: IncomingMessage,
  response: ServerResponse,
  httpStatus: number,
  body: string | Buffer,
  file?: Pick<PageFile, 'type'> & Partial<PageFile>,
): Promise<void> {
  let bytes = typeof body === 'string' ? Buffer.from(body) : body;
  response.setHeader('vary', 'accept-encoding');
  const accepted = String(request.headers['accept-encoding'] ?? '');
  if (bytes.length >= MIN_COMPRESSED_BYTES && /\bgzip\b/.test(accepted)) {
    bytes = await compress(bytes, { level: 1 });
    response.setHeader('content-encoding', 'gzip');
  }
  response.writeHead(httpStatus, {
    ...SECURITY_HEADERS,
    'content-type': file?.type ?? 'application/json; charset=utf-8',
    'content-length': bytes.length,
    'cache-control':
      file?.body === undefined ? 'no-store' : file.immutable ? 'max-age=31536000, immutable' : 'no-cache',
  });
  response.end(request.method === 'HEAD' ? undefined : bytes);
}
