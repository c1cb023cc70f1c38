import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PROFILE_TYPES, SAMPLE, TRACE } from '../records/records.gen.ts';
import type { Interval, SampleGroup } from './interval.ts';
import { TraceHandler } from './trace-handler.ts';
import { TraceStore } from './trace-store.ts';

/** What BPF does for each sample, with its `seen` cache, a ring buffer of limited size, and its evictions. */
class KernelTwin {
  readonly seen = new Set<bigint>();
  ring: Buffer[] = [];
  lost = 0;
  readonly #capacity: number;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  sample(stack: number, tid: number): boolean {
    const hash = BigInt(stack) * 0x1_0000_0001n + 7n;
    if (!this.seen.has(hash)) {
      if (!this.#output(traceRecord(hash, stack))) return this.#lose();
      this.seen.add(hash);
    }
    return this.#output(sampleRecord(hash, tid)) || this.#lose();
  }

  #lose(): false {
    this.lost++;
    return false;
  }

  #output(record: Buffer): boolean {
    if (this.ring.length >= this.#capacity) return false;
    this.ring.push(record);
    return true;
  }
}

function traceRecord(hash: bigint, stack: number): Buffer {
  const frames = 1 + (stack % 5);
  const record = Buffer.alloc(TRACE.frames + frames * 8);
  record.writeUInt16LE(2, TRACE.type);
  record.writeUInt16LE(frames, TRACE.words);
  record.writeBigUInt64LE(hash, TRACE.traceHash);
  for (let i = 0; i < frames; i++) record.writeBigUInt64LE(BigInt(stack), TRACE.frames + i * 8);
  return record;
}

function sampleRecord(hash: bigint, tid: number): Buffer {
  const record = Buffer.alloc(SAMPLE.bytes);
  record.writeUInt16LE(1, SAMPLE.type);
  record.writeBigUInt64LE(hash, SAMPLE.traceHash);
  record.writeUInt32LE(tid, SAMPLE.tid);
  record.write(`thread-${tid % 2}`, SAMPLE.comm);
  return record;
}

const groupsOf = (interval: Interval): SampleGroup[] =>
  Array.from({ length: interval.size }, (_, i) => interval.group(i, 0n));

const event = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({ kind: fc.constant('sample' as const), stack: fc.nat(30), tid: fc.nat(3) }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('drain' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('kernel-evicts' as const), stack: fc.nat(30) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('interval' as const) }) },
);

describe('the trace handler', () => {
  it('counts no sample under a wrong trace and loses none without counting it', () => {
    fc.assert(
      fc.property(
        fc.array(event, { maxLength: 400 }),
        fc.integer({ min: 1, max: 40 }),
        (events, capacity) => {
          const kernel = new KernelTwin(capacity);
          const forget = (low: number, high: number): void =>
            void kernel.seen.delete((BigInt(high) << 32n) | BigInt(low));
          const store = new TraceStore({ maxBytes: 1024, forget, slabNumbers: 128 });
          const handler = new TraceHandler(store);
          const expected = new Map<string, number>();
          const got = new Map<string, number>();
          /** Taken, but read and released later: traces come and go meanwhile. */
          const open: Interval[] = [];
          let taken = 0;
          const add = (map: Map<string, number>, key: string, n: number): void =>
            void map.set(key, (map.get(key) ?? 0) + n);
          const drain = (): void => {
            for (const record of kernel.ring) {
              if (record.readUInt16LE(0) === 2) handler.onTrace(record, 0, record.length);
              else handler.onSample(record, 0, record.length);
            }
            kernel.ring = [];
            handler.drained();
          };
          const take = (): void => {
            const interval = handler.takeInterval();
            open.push(interval);
            if (open.length > 2) release(open.shift()!);
          };
          const release = (interval: Interval): void => {
            for (const { trace, tid, threadName, timestamps } of groupsOf(interval))
              add(got, `${store.read(trace).u32Pairs[0]}/${tid}/${threadName}`, timestamps.length);
            handler.release(interval);
          };
          for (const step of events) {
            if (step.kind === 'drain') drain();
            else if (step.kind === 'interval') take();
            else if (step.kind === 'kernel-evicts')
              kernel.seen.delete(BigInt(step.stack) * 0x1_0000_0001n + 7n);
            else {
              taken++;
              if (kernel.sample(step.stack, step.tid))
                add(expected, `${step.stack}/${step.tid}/thread-${step.tid % 2}`, 1);
            }
          }
          drain();
          take();
          for (const interval of open) release(interval);
          expect(handler.stats.lostTraceMissing).toBe(0);
          expect(got).toEqual(expected);
          expect([...got.values()].reduce((a, b) => a + b, 0) + kernel.lost).toBe(taken);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('counts a sample whose trace never came', () => {
    const handler = new TraceHandler(new TraceStore({ maxBytes: 1 << 20, forget: () => {} }));
    handler.onSample(sampleRecord(99n, 1), 0, SAMPLE.bytes);
    expect(handler.stats).toMatchObject({ samples: 1, lostTraceMissing: 1 });
    expect(handler.takeInterval().samples).toBe(0);
  });

  it('takes no sample of a source that it does not know', () => {
    const handler = new TraceHandler(new TraceStore({ maxBytes: 1 << 20, forget: () => {} }));
    const record = sampleRecord(99n, 1);
    record.writeUInt16LE(PROFILE_TYPES.length, SAMPLE.origin);
    handler.onSample(record, 0, SAMPLE.bytes);
    expect(handler.stats).toMatchObject({ samples: 0, malformed: 1 });
  });

  it('keeps groups apart that differ in one part of their identity, with all times of each in order', () => {
    const store = new TraceStore({ maxBytes: 1 << 20, forget: () => {} });
    const handler = new TraceHandler(store);
    for (const [hash, stack] of [
      [1n, 1],
      [2n, 2],
    ] as const) {
      const trace = traceRecord(hash, stack);
      handler.onTrace(trace, 0, trace.length);
    }
    const parts = {
      hash: fc.constantFrom(1n, 2n),
      pid: fc.constantFrom(7, 0xffff_fff0),
      execId: fc.constantFrom(0, 0x8000_0001),
      start: fc.constantFrom(5n, 5n + (1n << 63n), (1n << 32n) + 5n),
      tid: fc.constantFrom(7, 8),
      cpu: fc.constantFrom(0, 8191),
      name: fc.constantFrom('', 'a', 'sixteen-letters'),
    };
    fc.assert(
      fc.property(fc.array(fc.record(parts), { minLength: 1, maxLength: 3000 }), (samples) => {
        const expected = new Map<string, number[]>();
        for (const [i, part] of samples.entries()) {
          const record = sampleRecord(part.hash, part.tid);
          record.fill(0, SAMPLE.comm, SAMPLE.comm + 16).write(part.name, SAMPLE.comm);
          record.writeUInt32LE(part.pid, SAMPLE.processTgid);
          record.writeUInt32LE(part.execId, SAMPLE.processExecId);
          record.writeBigUInt64LE(part.start, SAMPLE.processStartBoottimeNs);
          record.writeUInt32LE(part.cpu, SAMPLE.cpu);
          const ktimeNs = 2 ** 45 + i;
          record.writeBigUInt64LE(BigInt(ktimeNs), SAMPLE.ktimeNs);
          handler.onSample(record, 0, SAMPLE.bytes);
          const key = Object.values(part).join('/');
          expected.set(key, [...(expected.get(key) ?? []), ktimeNs]);
        }
        const interval = handler.takeInterval();
        const got = groupsOf(interval).map(
          (g) =>
            [
              [
                store.read(g.trace).u32Pairs[0],
                g.pid,
                g.execId,
                g.startBoottimeNs,
                g.tid,
                g.cpu,
                g.threadName,
              ].join('/'),
              g.timestamps.map(Number),
            ] as const,
        );
        expect(new Map(got)).toEqual(expected);
        expect([got.length, interval.samples]).toEqual([expected.size, samples.length]);
        expect([interval.firstKtimeNs, interval.lastKtimeNs]).toEqual([
          2 ** 45,
          2 ** 45 + samples.length - 1,
        ]);
      }),
      { numRuns: 40 },
    );
  });

  it('bounds an interval', () => {
    const handler = new TraceHandler(new TraceStore({ maxBytes: 1 << 20, forget: () => {} }), {
      maxSamples: 2,
    });
    const trace = traceRecord(1n, 3);
    handler.onTrace(trace, 0, trace.length);
    for (let i = 0; i < 5; i++) handler.onSample(sampleRecord(1n, i), 0, SAMPLE.bytes);
    expect(handler.stats.lostIntervalFull).toBe(3);
    expect(handler.takeInterval().samples).toBe(2);
  });

  it('leaves out what was sampled before a recording began, however late it comes', () => {
    const handler = new TraceHandler(new TraceStore({ maxBytes: 1 << 20, forget: () => {} }));
    const trace = traceRecord(1n, 3);
    handler.onTrace(trace, 0, trace.length);
    const take = (ktimeNs: bigint): void => {
      const sample = sampleRecord(1n, 1);
      sample.writeBigUInt64LE(ktimeNs, SAMPLE.ktimeNs);
      handler.onSample(sample, 0, SAMPLE.bytes);
    };
    take(10n);
    handler.begin(20n);
    for (const ktimeNs of [19n, 20n, 21n]) take(ktimeNs);
    expect(handler.stats.tooEarly).toBe(1);
    expect(handler.takeInterval().samples).toBe(2);
  });
});
