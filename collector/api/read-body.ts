import type { IncomingMessage } from 'node:http';
import { createGunzip } from 'node:zlib';

/** What an HTTP server of the collector answers instead of what was asked. */
export class HttpError extends Error {
  override name = 'HttpError';
  readonly httpStatus: number;
  constructor(httpStatus: number, message: string) {
    super(message);
    this.httpStatus = httpStatus;
  }
}

/**
 * The body, decompressed. A failure leaves the socket open, so that the sender gets the answer.
 *
 * @throws HttpError
 */
export function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const encoding = (request.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  if (encoding !== 'gzip' && encoding !== 'identity') {
    throw new HttpError(415, `content-encoding is "${encoding}": send gzip or none`);
  }
  return new Promise((resolve, reject) => {
    const source = encoding === 'gzip' ? request.pipe(createGunzip()) : request;
    const chunks: Buffer[] = [];
    let bytes = 0;
    const fail = (status: number, message: string): void => {
      source.removeAllListeners('data');
      request.unpipe();
      request.resume();
      reject(new HttpError(status, message));
    };
    source.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= maxBytes) chunks.push(chunk);
      else fail(413, `the request is larger than ${maxBytes} bytes: send smaller ones`);
    });
    source.once('end', () => resolve(Buffer.concat(chunks)));
    source.once('error', (error) => fail(400, `the body can't be read: ${error.message}`));
    request.once('close', () => {
      if (!request.complete) fail(400, 'the connection ended before the request did');
    });
  });
}
