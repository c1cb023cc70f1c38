import type { IncomingMessage } from 'node:http';
import { excerpt } from '../../common/base/printable.ts';
import { type ByteLease, OverBudget } from './byte-budget.ts';
import { BadBody, gather, TooLarge, TooSlow } from './gather.ts';

const MAX_ERROR_CHARS = 1000;

/** A message for whoever asked: what they asked for may stand in it, however long that is. */
export const errorText = (message: string): string => excerpt(message, MAX_ERROR_CHARS);

/** What an HTTP server of the collector answers instead of what was asked. */
export class HttpError extends Error {
  override name = 'HttpError';
  readonly httpStatus: number;
  constructor(httpStatus: number, message: string) {
    super(message);
    this.httpStatus = httpStatus;
  }
}

const STATUS_OF = [
  [TooLarge, 413],
  [TooSlow, 408],
  [BadBody, 400],
  [OverBudget, 503],
] as const;

/**
 * The body, decompressed. A failure leaves the socket open, so that the sender gets the answer.
 *
 * @param lease what counts its bytes; they are the caller's to give back
 * @throws HttpError
 */
export async function readBody(
  request: IncomingMessage,
  { maxBytes, lease, maxArrivalMs }: { maxBytes: number; lease: ByteLease; maxArrivalMs?: number },
): Promise<Buffer> {
  const encoding = (request.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  if (encoding !== 'gzip' && encoding !== 'identity') {
    throw new HttpError(415, `content-encoding is "${encoding}": send gzip or none`);
  }
  const length = Number(request.headers['content-length'] ?? 0);
  if (length > maxBytes)
    throw new HttpError(413, `the request is larger than ${maxBytes} bytes: send smaller ones`);
  try {
    const options = { lease, maxBytes, gzip: encoding === 'gzip' };
    return await gather(request, maxArrivalMs === undefined ? options : { ...options, maxArrivalMs });
  } catch (error) {
    const httpStatus = STATUS_OF.find(([type]) => error instanceof type)?.[1];
    if (httpStatus === undefined) throw error;
    const { message } = error as Error;
    throw new HttpError(httpStatus, httpStatus === 400 ? `the body can't be read: ${message}` : message);
  }
}
