import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { retryInfo } from '../test/fixtures/retry-info.ts';
import { parseRetryDelay, retryDelayOf } from './retry-info.ts';

const statusBytes = (seconds: number, nanos: number): Buffer =>
  retryInfo(seconds, nanos).get('grpc-status-details-bin')[0] as Buffer;

describe('retryDelayOf', () => {
  it('reads seconds and nanoseconds', () => {
    fc.assert(
      fc.property(fc.nat(100_000), fc.nat(999_999_999), (seconds, nanos) => {
        expect(retryDelayOf(retryInfo(seconds, nanos))).toBeCloseTo(seconds * 1000 + nanos / 1e6, 6);
      }),
    );
  });

  it('ignores details of other kinds', () => {
    const bytes = statusBytes(3, 0);
    bytes[bytes.indexOf('RetryInfo')] = 'X'.charCodeAt(0);
    expect(parseRetryDelay(bytes)).toBeUndefined();
  });

  it('takes a negative delay as none', () => {
    const minusOne = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    const url = Buffer.from('type.googleapis.com/google.rpc.RetryInfo');
    const info = [0x0a, 11, 0x08, ...minusOne];
    const any = [0x0a, url.length, ...url, 0x12, info.length, ...info];
    expect(parseRetryDelay(Uint8Array.from([0x1a, any.length, ...any]))).toBe(0);
  });

  it('gets over anything that is not a status', () => {
    const cut = fc.tuple(fc.nat(60), fc.nat(60), fc.nat(255)).map(([length, at, value]) => {
      const bytes = Uint8Array.from(statusBytes(7, 5)).slice(0, length);
      if (at < bytes.length) bytes[at] = value;
      return bytes;
    });
    fc.assert(
      fc.property(fc.oneof(cut, fc.uint8Array({ maxLength: 200 })), (bytes) => {
        const delay = parseRetryDelay(bytes);
        expect(delay === undefined || (Number.isFinite(delay) && delay >= 0)).toBe(true);
      }),
      { numRuns: 2000 },
    );
    expect(parseRetryDelay(new Uint8Array(1 << 20))).toBeUndefined();
  });
});
