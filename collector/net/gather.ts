/** The bytes of a request, gathered in memory that is counted, within a size and a time. */
import type { Readable } from 'node:stream';
import { createGunzip, type Gunzip } from 'node:zlib';
import type { ByteLease } from './byte-budget.ts';

/** A slow sender holds what it sent: the whole of a request has to come in this time. */
export const MAX_ARRIVAL_MS = 30_000;
/** Nothing at all came for so long. */
const MAX_STALL_MS = 10_000;
/** What zlib allocates outside of the heap for one stream. */
const GUNZIP_BYTES = 48 * 1024;
const FIRST_BYTES = 16 * 1024;

/** The request is larger than what is taken. */
export class TooLarge extends Error {
  override name = 'TooLarge';
}

/** It came too slowly. */
export class TooSlow extends Error {
  override name = 'TooSlow';
}

/** It ended early, or its compression is broken. */
export class BadBody extends Error {
  override name = 'BadBody';
}

export interface GatherOptions {
  lease: ByteLease;
  /** After decompression. */
  maxBytes: number;
  gzip: boolean;
  /** @default MAX_ARRIVAL_MS */
  maxArrivalMs?: number;
  /** @default MAX_STALL_MS */
  maxStallMs?: number;
}

/**
 * Copies: a chunk shares the memory of all that was read from the socket with it, and one byte of each read would hold
 * 64 KiB. What is left of a request that failed is read and dropped, so that its sender gets the answer.
 *
 * @throws TooLarge, TooSlow, BadBody, OverBudget
 */
export function gather(request: Readable, options: GatherOptions): Promise<Buffer> {
  const { lease, maxBytes, gzip, maxArrivalMs = MAX_ARRIVAL_MS, maxStallMs = MAX_STALL_MS } = options;
  return new Promise((resolve, reject) => {
    const bytes = new GrowingBytes(lease, maxBytes);
    let gunzip: Gunzip | undefined;
    const watch = setInterval(() => checkPace(), 1000).unref();
    const pace = { startMs: performance.now(), lastMs: performance.now() };
    const settle = (act: () => void): void => {
      clearInterval(watch);
      lease.whenRevoked(undefined);
      request.off('data', note).off('data', take).off('end', end).off('close', close);
      gunzip?.removeAllListeners().on('error', () => {});
      request.unpipe();
      gunzip?.destroy();
      act();
    };
    const fail = (error: Error): void =>
      settle(() => {
        request.resume();
        reject(error);
      });
    const attempt = (act: () => void): void => {
      try {
        act();
      } catch (error) {
        fail(error as Error);
      }
    };
    const take = (chunk: Buffer): void => attempt(() => bytes.push(chunk));
    const note = (): void => {
      pace.lastMs = performance.now();
    };
    const end = (): void => settle(() => resolve(bytes.take()));
    const close = (): void => {
      if (!request.readableEnded) fail(new BadBody('the connection ended before the request did'));
    };
    const checkPace = (): void => {
      const nowMs = performance.now();
      if (nowMs - pace.startMs > maxArrivalMs)
        fail(new TooSlow(`the request took more than ${maxArrivalMs / 1000} s to arrive`));
      else if (nowMs - pace.lastMs > maxStallMs)
        fail(new TooSlow(`nothing of the request came for ${maxStallMs / 1000} s`));
    };
    lease.whenRevoked(fail);
    request.on('data', note).on('close', close);
    if (!gzip) request.on('data', take).on('end', end);
    else
      attempt(() => {
        lease.grow(GUNZIP_BYTES);
        gunzip = createGunzip();
        gunzip.on('data', take).on('end', end);
        gunzip.on('error', ({ message }) => fail(new BadBody(`it can't be unpacked: ${message}`)));
        request.pipe(gunzip);
      });
  });
}

/** One array that grows: at most twice of what came is held, and all of it is counted. */
class GrowingBytes {
  readonly #lease: ByteLease;
  readonly #maxBytes: number;
  #bytes = Buffer.alloc(0);
  #length = 0;

  constructor(lease: ByteLease, maxBytes: number) {
    this.#lease = lease;
    this.#maxBytes = maxBytes;
  }

  push(chunk: Buffer): void {
    const needed = this.#length + chunk.length;
    if (needed > this.#maxBytes)
      throw new TooLarge(`the request is larger than ${this.#maxBytes} bytes: send smaller ones`);
    if (needed > this.#bytes.length) this.#enlarge(needed);
    chunk.copy(this.#bytes, this.#length);
    this.#length = needed;
  }

  take(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  #enlarge(needed: number): void {
    const size = Math.min(this.#maxBytes, Math.max(FIRST_BYTES, needed, 2 * this.#bytes.length));
    this.#lease.grow(size - this.#bytes.length);
    const larger = Buffer.allocUnsafeSlow(size);
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}
