import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Profile } from '../../common/profile/model/profile.ts';
import { splitProfile } from '../../common/profile/otlp/otlp-encode.ts';
import type { ExportResult, Transport } from '../../otlp-client/exporter.ts';
import type { SenderOptions } from '../../otlp-client/request-sender.ts';
import { eventsIn, profileOf } from '../../test/fixtures/otlp-samples.ts';
import { type ProfileCodec, Reporter } from './reporter.ts';

/** Answers when the test says so. */
class HandTransport implements Transport {
  pending: { request: Uint8Array; deadlineMs: number; answer(result: ExportResult): void } | undefined;
  readonly arrived: number[] = [];
  sends = 0;
  closed = false;

  send(request: Uint8Array, deadlineMs: number): Promise<ExportResult> {
    expect(this.pending, 'one request in flight').toBeUndefined();
    this.sends++;
    return new Promise((resolve) => {
      const answer = (result: ExportResult): void => {
        this.pending = undefined;
        if (result.kind === 'ok' && result.rejectedProfiles === 0) this.arrived.push(...eventsIn(request));
        resolve(result);
      };
      this.pending = { request, deadlineMs, answer };
    });
  }
  cancel(): void {
    this.pending?.answer(retry('CANCELLED'));
  }
  close(): void {
    this.closed = true;
  }
}

const ok: ExportResult = { kind: 'ok', rejectedProfiles: 0, message: '' };
const retry = (code = 'UNAVAILABLE', delayMs?: number): ExportResult => ({
  kind: 'retry',
  code,
  message: 'no connection',
  delayMs,
});
const refused: ExportResult = { kind: 'refused', code: 'UNIMPLEMENTED', message: 'no such service' };
const tooLarge: ExportResult = { kind: 'too-large', message: 'larger than max' };

const OPTIONS: SenderOptions = {
  address: 'collector:4317',
  tls: undefined,
  headers: [],
  compression: 'none',
  maxRequestBytes: 4 << 20,
  minRequestBytes: 1,
  maxQueueBytes: 32 << 20,
  maxQueueEntries: 100,
  requestTimeoutMs: 5000,
  backoffMinMs: 500,
  backoffMaxMs: 30_000,
  notes: [],
  hints: { plaintext: '', authority: '', credentials: '' },
};

function setUp(more: Partial<SenderOptions> = {}, codec?: ProfileCodec) {
  const lines: string[] = [];
  const log = {
    info: (text: string) => lines.push(`info ${text}`),
    warn: (text: string) => lines.push(`warn ${text}`),
    error: (text: string) => lines.push(`error ${text}`),
  };
  const transport = new HandTransport();
  const reporter = new Reporter({ ...OPTIONS, ...more }, log, codec, transport);
  const answer = async (result: ExportResult): Promise<void> => {
    transport.pending!.answer(result);
    await vi.advanceTimersByTimeAsync(0);
  };
  return { reporter, transport, lines, answer };
}

function expectAllAccounted(reporter: Reporter): void {
  const s = reporter.stats() as Record<keyof ReturnType<Reporter['stats']>, number>;
  const sum = (...names: string[]): number => names.reduce((n, name) => n + s[name]!, 0);
  expect(s['samplesPushed']).toBe(
    sum(
      ...['samplesSent', 'samplesDroppedOverflow', 'samplesRefused', 'samplesRejectedPartial'],
      ...['samplesDroppedStop', 'samplesTooLarge', 'samplesQueued'],
    ),
  );
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('Reporter', () => {
  it('sends in order, one at a time, and skips profiles without samples', async () => {
    const { reporter, transport, answer } = setUp();
    reporter.push(profileOf([]));
    expect(transport.pending).toBeUndefined();
    reporter.push(profileOf([[2, 5]]));
    reporter.push(profileOf([[3, 5]]));
    expect(reporter.stats()).toMatchObject({ queueEntries: 2, samplesQueued: 5 });
    await answer(ok);
    await answer(ok);
    expect(transport.arrived).toEqual([...transport.arrived].sort((a, b) => a - b));
    expect(reporter.stats()).toMatchObject({
      samplesSent: 5,
      requestsSent: 2,
      samplesQueued: 0,
      queueBytes: 0,
    });
  });

  it('waits longer after each failure, up to the longest, and starts anew after success', async () => {
    const { reporter, transport, answer } = setUp();
    reporter.push(profileOf([[1, 5]]));
    for (const [atLeast, atMost] of [
      [500, 1000],
      [1000, 2000],
      [2000, 4000],
      [4000, 8000],
      [8000, 16_000],
      [15_000, 30_000],
      [15_000, 30_000],
    ] as const) {
      await answer(retry());
      await vi.advanceTimersByTimeAsync(atLeast - 1);
      expect(transport.pending).toBeUndefined();
      await vi.advanceTimersByTimeAsync(atMost - atLeast + 1);
      expect(transport.pending).toBeDefined();
    }
    await answer(ok);
    reporter.push(profileOf([[1, 5]]));
    await answer(retry());
    await vi.advanceTimersByTimeAsync(1000);
    expect(transport.pending).toBeDefined();
    expect(reporter.stats()['retries']).toBe(8);
  });

  it('waits as long as RetryInfo says, within reason', async () => {
    const { reporter, transport, answer } = setUp();
    reporter.push(profileOf([[1, 5]]));
    await answer(retry('UNAVAILABLE', 70_000));
    await vi.advanceTimersByTimeAsync(69_999);
    expect(transport.pending).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect(transport.pending).toBeDefined();
    await answer(retry('RESOURCE_EXHAUSTED', 1e12));
    await vi.advanceTimersByTimeAsync(300_000);
    expect(transport.pending).toBeDefined();
  });

  it('splits what exceeds the limit before it is sent', async () => {
    const { reporter, transport, answer } = setUp({ maxRequestBytes: 1000 });
    reporter.push(profileOf(Array.from({ length: 20 }, () => [2, 200])));
    reporter.push(profileOf([[7, 2000]]));
    while (transport.pending) {
      expect(transport.pending.request.length).toBeLessThanOrEqual(1000);
      await answer(ok);
    }
    expect(transport.arrived).toHaveLength(40);
    expect(reporter.stats()).toMatchObject({ samplesSent: 40, samplesTooLarge: 7 });
  });

  it('encodes no profile that is known to be too large', async () => {
    const encoded: number[] = [];
    const codec: ProfileCodec = {
      encode: ({ samples }) => {
        encoded.push(samples.length);
        return new Uint8Array(samples.length * 100);
      },
      split: splitProfile,
    };
    const { reporter } = setUp({ maxRequestBytes: 300_000 }, codec);
    reporter.push(profileOf(Array.from({ length: 4000 }, () => [1, 5])));
    expect(encoded).toEqual([4000, 2400, 1600]);
    reporter.push(profileOf(Array.from({ length: 4000 }, () => [1, 5])));
    expect(encoded.slice(3)).toEqual([2400, 1600]);
    reporter.push(profileOf(Array.from({ length: 2900 }, () => [1, 5])));
    expect(encoded.slice(5)).toEqual([2900]);
  });

  it('halves what the receiver finds too large, remembers it, and drops what cannot be halved', async () => {
    const { reporter, transport, answer, lines } = setUp();
    const answerBySize = async (): Promise<void> => {
      while (transport.pending) await answer(transport.pending.request.length > 1000 ? tooLarge : ok);
    };
    reporter.push(profileOf([...Array.from({ length: 16 }, () => [1, 200] as const), [3, 5000]]));
    await answerBySize();
    expect(transport.arrived).toHaveLength(16);
    expect(reporter.stats()).toMatchObject({ samplesSent: 16, samplesTooLarge: 3 });
    const before = transport.sends;
    reporter.push(profileOf(Array.from({ length: 16 }, () => [1, 200])));
    await answerBySize();
    expect(transport.arrived).toHaveLength(32);
    expect(transport.sends - before).toBeLessThan(12);
    expect(lines.filter((line) => line.includes('takes no request of'))).toHaveLength(1);
  });

  it('stops halving at the smallest size that makes sense', async () => {
    const { reporter, transport, answer } = setUp({ minRequestBytes: 1000 });
    reporter.push(profileOf(Array.from({ length: 64 }, () => [1, 200])));
    while (transport.pending) await answer(tooLarge);
    expect(transport.sends).toBeLessThan(64);
    expect(reporter.stats()['samplesTooLarge']).toBe(64);
  });

  it('counts the share of profiles that partial success rejects', async () => {
    const { reporter, answer, lines } = setUp();
    const four = (): Profile => profileOf(Array.from({ length: 4 }, () => [5, 5]));
    const expected = [
      [1, 10],
      [2, 20],
      [500, 20],
    ] as const;
    let sum = 0;
    for (const [rejectedProfiles, samples] of expected) {
      reporter.push(four());
      await answer({ kind: 'ok', rejectedProfiles, message: 'bad stack' });
      sum += samples;
      expect(reporter.stats()['samplesRejectedPartial']).toBe(sum);
    }
    expect(lines.filter((line) => line.includes('bad stack'))).toHaveLength(1);
    expectAllAccounted(reporter);
  });

  it('shows changes of state, not requests', async () => {
    const { reporter, answer, lines } = setUp();
    const push = async (...results: ExportResult[]): Promise<void> => {
      reporter.push(profileOf([[1, 5]]));
      for (const result of results) {
        await vi.advanceTimersByTimeAsync(61_000);
        await answer(result);
      }
    };
    await push(ok);
    await push(ok);
    await push(retry(), retry(), retry(), ok);
    await push(refused);
    await push(refused);
    await push(ok);
    expect(lines.map((line) => line.replace(/\d+ s/, 'N s'))).toEqual([
      'info profiles arrive at collector:4317',
      "warn collector:4317 can't be reached (UNAVAILABLE: no connection): profiles wait in memory and are sent when it is back, the oldest are dropped first",
      'info collector:4317 is back after N s',
      'error collector:4317 refuses profiles (UNIMPLEMENTED: no such service): they are dropped; nothing takes profiles at this port: enable the receiver and its profiles pipeline',
      'info collector:4317 takes profiles again after N s',
    ]);
  });

  it('gives a request that got no answer in time longer with each try, and the next one as long as ever', async () => {
    const { reporter, transport, answer } = setUp();
    reporter.push(profileOf([[1, 1]]));
    reporter.push(profileOf([[1, 1]]));
    const given: number[] = [];
    for (const code of Array(6).fill('DEADLINE_EXCEEDED')) {
      given.push(transport.pending!.deadlineMs);
      await answer(retry(code, 0));
      await vi.advanceTimersByTimeAsync(30_000);
    }
    expect(given).toEqual([5000, 10_000, 20_000, 40_000, 60_000, 60_000]);
    await answer(ok);
    expect(transport.pending!.deadlineMs).toBe(5000);
    await answer(retry('UNAVAILABLE', 0));
    await vi.advanceTimersByTimeAsync(30_000);
    expect(transport.pending!.deadlineMs).toBe(5000);
  });

  it('flushes what waits at once, and drops what is left at the deadline', async () => {
    const { reporter, transport, answer } = setUp();
    reporter.push(profileOf([[1, 5]]));
    await answer(retry());
    expect(transport.pending).toBeUndefined();
    reporter.push(profileOf([[2, 5]]));
    const flushed = reporter.flush(3000);
    expect(transport.pending!.deadlineMs).toBe(3000);
    await answer(ok);
    await vi.advanceTimersByTimeAsync(3000);
    await flushed;
    expect(reporter.stats()).toMatchObject({ samplesSent: 1, samplesDroppedStop: 2, samplesQueued: 0 });
    expect(transport.pending).toBeUndefined();
    reporter.close();
    reporter.push(profileOf([[4, 5]]));
    expect(reporter.stats()['samplesDroppedStop']).toBe(6);
    expect(transport.closed).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('works on after a flush gave a request up, whose late result changes nothing', async () => {
    const { reporter, transport, answer } = setUp();
    reporter.push(profileOf([[1, 5]]));
    void reporter.flush(1000);
    vi.advanceTimersByTime(1000);
    reporter.push(profileOf([[2, 5]]));
    await vi.advanceTimersByTimeAsync(0);
    await answer(ok);
    expect(transport.sends).toBe(2);
    expect(reporter.stats()).toMatchObject({
      samplesDroppedStop: 1,
      samplesDroppedUnanswered: 1,
      samplesSent: 2,
      retries: 0,
    });
  });

  it('ends a flush at once where nothing waits or the receiver wants to wait longer', async () => {
    const { reporter, answer } = setUp();
    await reporter.flush(60_000);
    reporter.push(profileOf([[1, 5]]));
    const flushed = reporter.flush(5000);
    await answer(retry('RESOURCE_EXHAUSTED', 60_000));
    await flushed;
    expect(reporter.stats()['samplesDroppedStop']).toBe(1);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('Reporter accounts for every sample', () => {
  const result = fc.oneof(
    { weight: 4, arbitrary: fc.constant(ok) },
    { weight: 2, arbitrary: fc.constant(tooLarge) },
    { weight: 1, arbitrary: fc.constant(refused) },
    {
      weight: 2,
      arbitrary: fc.option(fc.nat(3000), { nil: undefined }).map((ms) => retry('UNAVAILABLE', ms)),
    },
    {
      weight: 1,
      arbitrary: fc
        .integer({ min: 0, max: 9 })
        .map((n): ExportResult => ({ kind: 'ok', rejectedProfiles: n, message: 'm' })),
    },
  );
  const sampleShape = fc.tuple(fc.integer({ min: 1, max: 5 }), fc.constantFrom(5, 50, 400, 3000));
  const step = fc.oneof(
    fc.record({ kind: fc.constant('push' as const), samples: fc.array(sampleShape, { maxLength: 6 }) }),
    fc.record({ kind: fc.constant('answer' as const), result }),
    fc.record({ kind: fc.constant('wait' as const), ms: fc.nat(4000) }),
    fc.record({ kind: fc.constant('flush' as const), ms: fc.nat(4000) }),
  );

  it('whatever the receiver answers and whenever', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const limits = { maxRequestBytes: 1500, maxQueueBytes: 4000, maxQueueEntries: 4 };
        const { reporter, transport, answer } = setUp(limits);
        const flushes: Promise<void>[] = [];
        let pushed = 0;
        for (const each of steps) {
          if (each.kind === 'push') {
            reporter.push(profileOf(each.samples));
            pushed += each.samples.reduce((n, [events]) => n + events, 0);
          } else if (each.kind === 'answer') {
            if (transport.pending) await answer(each.result);
          } else if (each.kind === 'flush') {
            flushes.push(reporter.flush(each.ms));
          } else {
            await vi.advanceTimersByTimeAsync(each.ms);
          }
          expectAllAccounted(reporter);
          const stats = reporter.stats();
          expect(stats['samplesPushed']).toBe(pushed);
          expect(stats['queueBytes']).toBeLessThanOrEqual(limits.maxQueueBytes);
          expect(stats['queueEntries']).toBeLessThanOrEqual(limits.maxQueueEntries);
        }
        const last = reporter.flush(1000);
        await vi.advanceTimersByTimeAsync(4001);
        await Promise.all([...flushes, last]);
        reporter.close();
        expectAllAccounted(reporter);
        const stats = reporter.stats();
        expect(stats['samplesQueued']).toBe(0);
        expect(new Set(transport.arrived).size).toBe(transport.arrived.length);
        expect(stats['samplesSent']).toBeGreaterThanOrEqual(transport.arrived.length);
        expect(vi.getTimerCount()).toBe(0);
      }),
      { numRuns: 300 },
    );
  });
});
