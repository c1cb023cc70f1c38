/**
 * One unary call of gRPC over HTTP/2: a message behind five bytes (its compression, its length), an answer whose status
 * is in the trailers. See github.com/grpc/grpc, doc/PROTOCOL-HTTP2.md.
 */
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { status } from '@grpc/grpc-js';
import { Writer } from 'protobufjs/minimal.js';
import type { ByteLease } from '../net/byte-budget.ts';
import { BadBody, gather, MAX_ARRIVAL_MS, TooLarge, TooSlow } from '../net/gather.ts';

const HEAD_BYTES = 5;
const ENCODINGS = 'identity,gzip';
const CONTENT_TYPE = 'application/grpc';
/** Longer ones would not fit into the headers that clients take. */
const MAX_STATUS_LENGTH = 1000;

/** What a call ends with instead of an answer. */
export class CallError extends Error {
  override name = 'CallError';
  readonly code: status;
  /** When to send again; undefined: never. */
  readonly retryAfterS: number | undefined;

  constructor(code: status, message: string, retryAfterS?: number) {
    super(message);
    this.code = code;
    this.retryAfterS = retryAfterS;
  }
}

/**
 * The one message of the call, decompressed.
 *
 * @throws CallError, and what `gather` throws
 */
export async function readMessage(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  lease: ByteLease,
  maxBytes: number,
): Promise<Buffer> {
  const head = await readHead(stream);
  const length = head.readUInt32BE(1);
  if (length > maxBytes) throw tooLarge(length, maxBytes);
  const isCompressed = head[0] === 1;
  const encoding = String(headers['grpc-encoding'] ?? 'identity');
  if (head[0]! > 1 || (isCompressed && encoding !== 'gzip'))
    throw new CallError(
      status.UNIMPLEMENTED,
      `the message's compression is "${encoding}": send ${ENCODINGS.replace(',', ' or ')}`,
    );
  const limit = isCompressed ? maxBytes : length;
  const bytes = await gather(stream, { lease, maxBytes: limit, gzip: isCompressed }).catch((error) => {
    if (!(error instanceof TooLarge)) throw error;
    if (isCompressed) throw tooLarge(undefined, maxBytes);
    throw new CallError(status.UNIMPLEMENTED, 'more than one message in a call');
  });
  if (!isCompressed && bytes.length !== length)
    throw new BadBody(`the message ended after ${bytes.length} of ${length} bytes`);
  return bytes;
}

const tooLarge = (length: number | undefined, maxBytes: number): CallError =>
  new CallError(
    status.RESOURCE_EXHAUSTED,
    `Received message larger than max (${length ?? 'unpacked'} vs ${maxBytes}): send smaller ones`,
  );

/** @throws BadBody, TooSlow */
function readHead(stream: ServerHttp2Stream): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => settle(() => reject(new TooSlow('the call sent no message'))),
      MAX_ARRIVAL_MS,
    );
    const settle = (act: () => void): void => {
      clearTimeout(timer);
      stream.off('readable', read).off('end', end).off('close', end);
      act();
    };
    const read = (): void => {
      const head: Buffer | null = stream.read(HEAD_BYTES);
      if (head?.length === HEAD_BYTES) settle(() => resolve(head));
      else if (head !== null) end();
    };
    const end = (): void => settle(() => reject(new BadBody('the call ended before its message')));
    stream.on('readable', read).on('end', end).on('close', end);
  });
}

export function answer(stream: ServerHttp2Stream, message: Buffer): void {
  if (stream.destroyed || stream.closed) return;
  stream.respond(
    { ':status': 200, 'content-type': CONTENT_TYPE, 'grpc-accept-encoding': ENCODINGS },
    { waitForTrailers: true },
  );
  stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': String(status.OK) }));
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32BE(message.length, 1);
  stream.end(Buffer.concat([head, message]));
}

/** What its sender still sends of the call is not waited for: it is asked to stop. */
export function answerError(stream: ServerHttp2Stream, { code, message, retryAfterS }: CallError): void {
  if (stream.destroyed || stream.closed) return;
  const text = encodeMessage(message);
  stream.respond(
    {
      ':status': 200,
      'content-type': CONTENT_TYPE,
      'grpc-accept-encoding': ENCODINGS,
      'grpc-status': String(code),
      'grpc-message': text,
      ...(retryAfterS !== undefined && {
        'grpc-status-details-bin': encodeRetryInfo(code, message, retryAfterS),
      }),
    },
    { endStream: true },
  );
  stream.resume();
  if (!stream.readableEnded) stream.close(constants.NGHTTP2_NO_ERROR);
}

/** Percent-encoded, as the protocol wants it. */
const encodeMessage = (message: string): string =>
  Array.from(Buffer.from(message.slice(0, MAX_STATUS_LENGTH)), (byte) =>
    byte >= 0x20 && byte <= 0x7e && byte !== 0x25
      ? String.fromCharCode(byte)
      : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`,
  ).join('');

/** google.rpc.Status (code = 1, message = 2, details = 3) with one google.rpc.RetryInfo. */
function encodeRetryInfo(code: status, message: string, seconds: number): string {
  const info = Writer.create().uint32(10).fork().uint32(8).int64(seconds).ldelim().finish();
  const any = Writer.create().uint32(10).string('type.googleapis.com/google.rpc.RetryInfo');
  const details = any.uint32(18).bytes(info).finish();
  const text = message.slice(0, MAX_STATUS_LENGTH);
  const bytes = Writer.create().uint32(8).int32(code).uint32(18).string(text).uint32(26).bytes(details);
  return Buffer.from(bytes.finish()).toString('base64').replace(/=+$/, '');
}
