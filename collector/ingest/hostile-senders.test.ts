/**
 * Malformed requests over the wire to a collector that listens: gRPC, HTTP in protobuf and in JSON, compressed and cut.
 * Each is answered, none ends the collector, and what was counted adds up to what the store has.
 */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { status as grpcStatus } from '@grpc/grpc-js';
import fc from 'fast-check';
import Long from 'long';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { encodeOtlp, otlpRequest } from '../../test/browser/encode-otlp.ts';
import { Pusher } from '../../test/browser/push.ts';
import { profileFromText } from '../../test/browser/synthetic-profile.ts';
import { type Collector, startCollector } from '../main.ts';
import type { StatusResponse } from '../status/status.ts';

const pageDirectory = mkdtempSync(join(tmpdir(), 'everyframe-hostile-'));
writeFileSync(join(pageDirectory, 'index.html'), '<!doctype html>');
const logger = {
  info: () => {},
  warn: () => {},
  error: (...what: unknown[]) => expect.fail(`logged ${JSON.stringify(what)}`),
};
let collector: Collector;
let pusher: Pusher;

beforeAll(async () => {
  const any = '127.0.0.1:0';
  const bounds = { maxMemoryBytes: 2 ** 27, maxSenderRate: 2 ** 40 };
  const listen = { grpcListen: any, httpListen: any, pageListen: any };
  collector = await startCollector({ ...listen, ...bounds, pageDirectory, logger });
  pusher = new Pusher(collector.urls.grpc);
});

afterAll(async () => {
  pusher.close();
  await collector.stop();
  rmSync(pageDirectory, { recursive: true });
});

const query = async <T>(path: string): Promise<T> =>
  (await (await fetch(new URL(path, collector.urls.page))).json()) as T;

const profile = () =>
  profileFromText('p:1;main@n;a@n 7\np:1;main@n;b@k 5\nq:2;c@j 3', { endMs: Date.now(), spanMs: 2000 });

function asJson(): string {
  const { resourceProfiles, dictionary } = otlpRequest(profile());
  return JSON.stringify({ resourceProfiles, dictionary }, (_, value) =>
    value && typeof value === 'object' && 'unsigned' in value ? Long.fromValue(value).toString() : value,
  );
}

type Damage = (body: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>;

const overwrite = fc
  .array(fc.tuple(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), fc.nat(255)), {
    minLength: 1,
    maxLength: 8,
  })
  .map(
    (changes): Damage =>
      (body) => {
        for (const [at, value] of changes) body[Math.floor(at * body.length)] = value;
        return body;
      },
  );
const cut = fc.double({ min: 0, max: 1, noNaN: true }).map(
  (share): Damage =>
    (body) =>
      body.subarray(0, Math.floor(share * body.length)),
);
const repeat = fc.integer({ min: 2, max: 4 }).map(
  (times): Damage =>
    (body) =>
      new Uint8Array(Buffer.concat(Array(times).fill(body))),
);
const noise = fc.uint8Array({ maxLength: 300 }).map(
  (bytes): Damage =>
    () =>
      new Uint8Array(bytes),
);
const none = fc.constant<Damage>((body) => body);
const damage = fc.oneof({ weight: 4, arbitrary: overwrite }, cut, repeat, noise, none);

const ways = ['grpc', 'protobuf', 'json'] as const;
type Way = (typeof ways)[number];

/** HTTP's status, or that of gRPC. */
async function send(way: Way, harm: Damage, zip: boolean, harmZipped: boolean): Promise<string> {
  const good = way === 'json' ? new TextEncoder().encode(asJson()) : new Uint8Array(encodeOtlp(profile()));
  const zipped = (bytes: Uint8Array<ArrayBuffer>) => new Uint8Array(gzipSync(bytes));
  if (way === 'grpc')
    return pusher.push(Buffer.from(harm(good))).then(
      () => 'OK',
      ({ code }) => grpcStatus[code]!,
    );
  const body = !zip ? harm(good) : harmZipped ? harm(zipped(good)) : zipped(harm(good));
  const type = way === 'json' ? 'application/json' : 'application/x-protobuf';
  const headers = { 'content-type': type, ...(zip ? { 'content-encoding': 'gzip' } : {}) };
  const response = await fetch(collector.urls.http, { method: 'POST', body, headers });
  await response.arrayBuffer();
  return String(response.status);
}

it('answers every damaged request, and counts exactly what it keeps', async () => {
  const requests = fc.array(fc.tuple(fc.constantFrom(...ways), damage, fc.boolean(), fc.boolean()), {
    minLength: 1,
    maxLength: 6,
  });
  let sent = 0;
  await fc.assert(
    fc.asyncProperty(requests, async (each) => {
      const answers = await Promise.all(each.map((one) => send(...one)));
      for (const answer of answers) expect(answer).toMatch(/^(OK|INVALID_ARGUMENT|200|400|413)$/);
      sent += each.length;
      const { requests: counts, samples, store, ...told } = await query<StatusResponse>('/api/v1/status');
      expect(counts.accepted + counts.refused + counts.repeated).toBe(sent);
      expect(samples.received).toBe(samples.stored + samples.rejected);
      const total = (list: { count: number }[]) => list.reduce((sum, { count }) => sum + count, 0);
      expect([total(told.refusals), total(told.rejections)]).toEqual([counts.refused, samples.rejected]);
      expect(store.samples + store.droppedForMemory + store.droppedForAge).toBe(samples.stored);
    }),
    { numRuns: 80, endOnFailure: true },
  );
  const before = await query<StatusResponse>('/api/v1/status');
  expect(await pusher.push(encodeOtlp(profile()))).toEqual({ rejectedProfiles: 0, errorMessage: '' });
  const after = await query<StatusResponse>('/api/v1/status');
  expect(after.samples.stored - before.samples.stored).toBe(15);
});
