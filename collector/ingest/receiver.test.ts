import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { typeKey } from '../../common/profile/model/profile-type.ts';
import { encodeOtlp as encodeTyped } from '../../common/profile/otlp/otlp-encode.ts';
import { encodeCounters } from '../../common/profile/otlp/otlp-metrics.ts';
import { encodeOtlp } from '../../test/browser/encode-otlp.ts';
import { profileFromText } from '../../test/browser/synthetic-profile.ts';
import { typedProfile } from '../../test/support/typed-profile.ts';
import { sumType } from '../query/values.ts';
import { MemoryStore } from '../store/memory/memory-store.ts';
import { BusyReceiver, describeRejected, Receiver, RefusedRequest } from './receiver.ts';
import { ReasonCounter, ReceiverStats } from './receiver-stats.ts';
import { RecentRequests, requestId } from './recent-requests.ts';

const NOW = Date.UTC(2026, 0, 1);
const now = (): number => NOW;
const logger = { error: (...what: unknown[]) => expect.fail(`logged ${JSON.stringify(what)}`) };

let store: MemoryStore;
let receiver: Receiver;

beforeEach(() => {
  store = new MemoryStore({ maxBytes: 2 ** 26, maxAgeMs: 3_600_000, now });
  receiver = new Receiver(store, now, logger);
});

const TEXT = 'sh:10;main@n;write@n;vfs_write@k 6\nsh:11;main@n 4\nnode:12;a@j;b@j 5';
const request = (endMs = NOW): Buffer => encodeOtlp(profileFromText(TEXT, { endMs, spanMs: 1000 }));

describe('Receiver', () => {
  it('says which events the store had no place for', async () => {
    const result = await receiver.receiveProtobuf(request(NOW - 7_200_000), 'peer');
    expect(result.rejectedProfiles).toBe(3);
    expect(result.errorMessage).toMatch(/^15 samples rejected: .*60 minutes ago.*\(15\)$/);
    expect(receiver.stats).toMatchObject({ storedSamples: 0, receivedSamples: 15, acceptedRequests: 1 });
  });

  it('forwards requests with the number of their samples, whatever these are', async () => {
    const forwarded: number[] = [];
    const forwarder = {
      forward: (_: Uint8Array, samples: number) => forwarded.push(samples),
      forwardCounters: () => {},
    };
    receiver = new Receiver(store, now, logger, undefined, forwarder);
    await receiver.receiveProtobuf(request(), 'peer');
    const sampleType = { type: 'off_cpu', unit: 'nanoseconds' };
    const waits = typedProfile('sh:10;main@n;wait@k 7000000000\nsh:11;main@n 50', { sampleType, endMs: NOW });
    await receiver.receiveProtobuf(encodeTyped([waits], { scopeName: '', scopeVersion: '' }), 'peer');
    expect(forwarded).toEqual([15, 2]);
  });

  it('takes an empty request as a sign of life', async () => {
    expect(await receiver.receiveProtobuf(new Uint8Array(0), 'peer')).toEqual({
      rejectedProfiles: 0,
      errorMessage: '',
    });
    await receiver.receiveProtobuf(request(), 'other');
    await receiver.receiveProtobuf(new Uint8Array(0), 'other');
    expect(receiver.stats.agents(NOW)).toMatchObject([
      { peer: 'other', host: 'test-host', samples: 15, lastSamplesMs: NOW },
      { peer: 'peer', host: '', samples: 0, lastSamplesMs: undefined },
    ]);
  });

  it('keeps what an agent counts of itself, beside its samples, and nothing of other senders', async () => {
    await receiver.receiveProtobuf(request(), 'peer');
    const report = (service: string, count: number) =>
      encodeCounters(
        {
          resource: { 'service.name': service, 'service.version': '0.1.0', 'host.name': 'test-host' },
          startMs: NOW - 9000,
          timeMs: NOW,
          counters: { 'everyframe.agent.bpf.samples': count, 'process.threads': 9 },
        },
        { scopeName: 'everyframe', scopeVersion: '' },
        () => false,
      );
    receiver.receiveCounters(report('everyframe-agent', 70), 'peer');
    receiver.receiveCounters(report('something-else', 71), 'peer');
    expect(receiver.stats.agents(NOW + 10_000)).toEqual([
      {
        peer: 'peer',
        host: 'test-host',
        lastMs: NOW,
        lastSamplesMs: NOW,
        samples: 15,
        samplesPerSecond: 1.5,
        version: '0.1.0',
        counters: { 'bpf.samples': 70 },
        countersSpanMs: 9000,
      },
    ]);
    expect(() => receiver.receiveCounters(Buffer.from('no protobuf'), 'peer')).toThrow(RefusedRequest);
  });

  it('stores a request once, however often and from wherever it is sent', async () => {
    const first = await receiver.receiveProtobuf(request(), 'peer');
    const json = '{"resourceProfiles":[],"dictionary":{}}';
    await receiver.receiveJson(json, 'peer');
    expect(await receiver.receiveProtobuf(request(), 'other')).toEqual(first);
    await receiver.receiveJson(json, 'peer');
    await receiver.receiveProtobuf(request(NOW - 1), 'peer');
    expect(receiver.stats).toMatchObject({ acceptedRequests: 3, repeatedRequests: 2, storedSamples: 30 });
    expect(store.stats().samples).toBe(30);
  });

  it('gives a request that is repeated the answer it got, and takes one again that was refused', async () => {
    const half = encodeOtlp(profileFromText(TEXT, { endMs: NOW, spanMs: 1000 }), ({ resourceProfiles }) => {
      resourceProfiles[0]!.scopeProfiles[0]!.profiles[0]!.samples[0]!.stackIndex = 999;
    });
    const answer = await receiver.receiveProtobuf(half, 'peer');
    expect(answer.errorMessage).toMatch(/^6 samples rejected: stack index out of range \(6\)$/);
    expect(await receiver.receiveProtobuf(half, 'peer')).toEqual(answer);
    for (let i = 0; i < 2; i++)
      await expect(receiver.receiveProtobuf(Buffer.from('junk'), 'peer')).rejects.toThrow(RefusedRequest);
    expect(receiver.stats.refusals.total).toBe(2);
    expect(receiver.stats.rejections.total).toBe(6);
  });

  it('counts the profiles of which nothing is left', async () => {
    const none = encodeOtlp(profileFromText(TEXT, { endMs: NOW, spanMs: 1000 }), ({ resourceProfiles }) => {
      for (const { scopeProfiles } of resourceProfiles)
        for (const sample of scopeProfiles[0]!.profiles[0]!.samples) sample.stackIndex = 999;
    });
    expect((await receiver.receiveProtobuf(none, 'peer')).rejectedProfiles).toBe(3);
    expect(receiver.stats.receivedSamples).toBe(15);
  });

  it('remembers a request for a day, and a bounded number of them', async () => {
    let nowMs = NOW;
    const recent = new RecentRequests<{ n: number }>(() => nowMs);
    for (let n = 0; n < 40_000; n++) recent.note(requestId(`${n}`), { n });
    expect(recent.answerTo(requestId('39999'))).toEqual({ n: 39_999 });
    expect(recent.answerTo(requestId('0'))).toBeUndefined();
    nowMs += 86_400_001;
    expect(recent.answerTo(requestId('39999'))).toBeUndefined();
  });

  it('asks to send it again where the store can take nothing now, and stores it then', async () => {
    let failing = true;
    const full = {
      busy: 'the disk is full' as string | undefined,
      hold: () => () => {},
      append: store.append.bind(store),
      noteRequest: () => {},
      commit: async () => {
        if (failing) throw new Error('no space');
      },
      recentRequests: () => [],
    };
    const other = new Receiver(full, now, logger);
    await expect(other.receiveProtobuf(request(), 'peer')).rejects.toThrow(
      new BusyReceiver('the disk is full'),
    );
    expect(other.stats).toMatchObject({ acceptedRequests: 0, receivedSamples: 0 });
    full.busy = undefined;
    await expect(other.receiveProtobuf(request(), 'peer')).rejects.toThrow(new BusyReceiver('no space'));
    failing = false;
    await other.receiveProtobuf(request(), 'peer');
    expect(other.stats).toMatchObject({ acceptedRequests: 1, repeatedRequests: 1, storedSamples: 15 });
    expect(store.stats().samples).toBe(15);
  });

  it('gives others their turn while it takes a large request, and takes one after the other', async () => {
    const text = Array.from({ length: 3000 }, (_, i) => `p${i}:${i + 1};main@n;f${i}@n 3`).join('\n');
    const large = encodeOtlp(profileFromText(text, { endMs: NOW, spanMs: 1000 }));
    const order: string[] = [];
    const take = async (name: string, bytes: Buffer): Promise<void> => {
      await receiver.receiveProtobuf(bytes, name);
      order.push(name);
    };
    let turns = 0;
    const timer = setInterval(() => {
      turns++;
    }, 1);
    const all = Promise.all([take('large', large), take('small', request()), take('large', large)]);
    await all;
    clearInterval(timer);
    expect(order).toEqual(['large', 'small', 'large']);
    expect(turns).toBeGreaterThan(2);
    expect(receiver.stats).toMatchObject({ acceptedRequests: 2, repeatedRequests: 1, storedSamples: 9015 });
  });

  it('survives any damage to a request: what it says was stored is there', async () => {
    const good = request();
    const damage = fc.array(fc.tuple(fc.nat(good.length - 1), fc.nat(255)), { minLength: 1, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(damage, fc.option(fc.nat(good.length)), async (bytes, length) => {
        store = new MemoryStore({ maxBytes: 2 ** 26, maxAgeMs: 3_600_000, now });
        receiver = new Receiver(store, now, logger);
        const bad = Buffer.from(good.subarray(0, length ?? good.length));
        for (const [at, value] of bytes) if (at < bad.length) bad[at] = value;
        try {
          await receiver.receiveProtobuf(bad, 'peer');
        } catch (error) {
          expect(error).toBeInstanceOf(RefusedRequest);
        }
        const { stats } = receiver;
        expect(stats.acceptedRequests + stats.refusals.total).toBe(1);
        expect(store.stats().samples).toBe(stats.storedSamples);
        const all = { fromMs: 0, toMs: NOW + 3_600_000, where: [] };
        let found = 0;
        // damage may make another type of them
        for (const type of await store.types(all))
          found += (await sumType(store, { ...all, type: typeKey(type) })).samples;
        expect(found).toBe(stats.storedSamples);
      }),
      { numRuns: 200 },
    );
  });
});

describe('counts', () => {
  it('keeps a bounded number of reasons and loses no count', () => {
    const counter = new ReasonCounter();
    for (let i = 0; i < 1000; i++) counter.add(`reason ${i}`, 2, NOW);
    const list = counter.list();
    expect(list.length).toBeLessThan(70);
    expect(list[0]!.reason).toBe('other reasons');
    expect(list.reduce((sum, { count }) => sum + count, 0)).toBe(2000);
    expect(counter.total).toBe(2000);
  });

  it('keeps a bounded number of agents', () => {
    const stats = new ReceiverStats();
    for (let i = 0; i < 1000; i++) stats.noteAgent(`10.0.${i >> 8}.${i & 255}`, `host-${i}`, 1, NOW + i);
    expect(stats.agents(Date.now()).length).toBeLessThanOrEqual(256);
    expect(stats.agents(Date.now())[0]!.host).toBe('host-999');
  });

  it('writes a sentence', () => {
    expect(describeRejected(new Map())).toBe('');
    expect(describeRejected(new Map([['bad', 1]]))).toBe('1 sample rejected: bad (1)');
    const many = new Map(Array.from({ length: 12 }, (_, i) => [`r${i}`, 1] as const));
    expect(describeRejected(many)).toMatch(/^12 samples rejected: r0 \(1\); .*r9 \(1\); …$/);
  });
});
