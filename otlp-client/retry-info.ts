/**
 * How long a receiver asks to wait: google.rpc.RetryInfo inside the google.rpc.Status of the trailer
 * `grpc-status-details-bin`. Both messages are three fields deep, so they are read with protobufjs' reader
 * instead of vendoring their .proto files (googleapis, google/rpc/status.proto and error_details.proto:
 * Status.details = 3; Any.type_url = 1, value = 2; RetryInfo.retry_delay = 1; Duration.seconds = 1, nanos = 2).
 */
import type { Metadata } from '@grpc/grpc-js';
import { eachField } from './message-fields.ts';

const TYPE_URL = 'type.googleapis.com/google.rpc.RetryInfo';
/** gRPC's own limit for all trailers is 8 KiB; more is not looked at. */
const MAX_STATUS_BYTES = 16 * 1024;
function readDuration(bytes: Uint8Array): number {
  let ms = 0;
  eachField(bytes, (id, value) => {
    if (typeof value !== 'number') return;
    if (id === 1) ms += value * 1000;
    else if (id === 2) ms += value / 1e6;
  });
  return ms;
}

function readRetryInfo(bytes: Uint8Array): number {
  let ms = 0;
  eachField(bytes, (id, value) => {
    if (id === 1 && typeof value !== 'number') ms = readDuration(value);
  });
  return ms;
}

function readAny(bytes: Uint8Array): number | undefined {
  let typeUrl = '';
  let content: Uint8Array = new Uint8Array(0);
  eachField(bytes, (id, value) => {
    if (typeof value === 'number') return;
    if (id === 1) typeUrl = Buffer.from(value).toString();
    else if (id === 2) content = value;
  });
  return typeUrl === TYPE_URL ? readRetryInfo(content) : undefined;
}

/** Milliseconds of the RetryInfo in a serialised google.rpc.Status; undefined where there is none or nonsense. */
export function parseRetryDelay(status: Uint8Array): number | undefined {
  if (status.length > MAX_STATUS_BYTES) return undefined;
  let delayMs: number | undefined;
  try {
    eachField(status, (id, value) => {
      if (id === 3 && typeof value !== 'number') delayMs ??= readAny(value);
    });
  } catch {
    return undefined; // no protobuf: the receiver gets the usual backoff
  }
  return delayMs !== undefined && Number.isFinite(delayMs) ? Math.max(0, delayMs) : undefined;
}

export function retryDelayOf(trailers: Metadata): number | undefined {
  const [details] = trailers.get('grpc-status-details-bin');
  return details instanceof Uint8Array ? parseRetryDelay(details) : undefined;
}
