import { expect, test } from 'vitest';
import { SAMPLE } from '../records/records.gen.ts';
import { LiveHeap } from './live-heap.ts';

const entry = (address: bigint, pid: number, trace: bigint, bytes: bigint): Buffer => {
  const buffer = Buffer.alloc(16 + SAMPLE.bytes);
  buffer.writeBigUInt64LE(address, 0);
  buffer.writeBigUInt64LE(BigInt(pid), 8);
  buffer.writeBigUInt64LE(trace, 16 + SAMPLE.traceHash);
  buffer.writeBigUInt64LE(address * 7n, 16 + SAMPLE.ktimeNs);
  buffer.writeBigUInt64LE(bytes, 16 + SAMPLE.value);
  buffer.writeUInt32LE(pid, 16 + SAMPLE.processTgid);
  return buffer;
};

/** The heap of a map, with the samples that it gives: process, trace, time and value. */
function heapOf(map: Buffer[], ended: Set<number>) {
  const samples: unknown[] = [];
  const heap = new LiveHeap({
    native: {
      mapReadAll: () => Buffer.concat(map),
      mapDelete: (_, key) =>
        map.splice(
          map.findIndex((one) => one.subarray(0, 16).equals(key)),
          1,
        ).length > 0,
      monotonicNs: () => 1000n,
    },
    tracer: { liveHeapFd: 3 },
    traces: {
      onSample: (buffer, at) =>
        void samples.push([
          buffer.readUInt32LE(at + SAMPLE.processTgid),
          buffer.readBigUInt64LE(at + SAMPLE.traceHash),
          buffer.readBigUInt64LE(at + SAMPLE.ktimeNs),
          buffer.readBigUInt64LE(at + SAMPLE.value),
        ]),
    },
    processes: { hasEnded: ({ pid }) => ended.has(pid) },
  });
  return { heap, samples };
}

test('what is not freed is summed by stack, at the time of the interval; that of an ended process goes out once', () => {
  const map = [
    entry(1n, 10, 5n, 100n),
    entry(2n, 10, 5n, 2n ** 40n),
    entry(3n, 10, 6n, 7n),
    entry(4n, 11, 5n, 9n),
  ];
  const { heap, samples } = heapOf(map, new Set([11]));
  const ofRunning = [
    [10, 5n, 1000n, 2n ** 40n + 100n],
    [10, 6n, 1000n, 7n],
  ];
  heap.read();
  expect(heap.stats.allocations).toBe(4);
  heap.report();
  expect(samples.splice(0)).toEqual([...ofRunning, [11, 5n, 1000n, 9n]]);
  heap.read();
  heap.report();
  expect(samples).toEqual(ofRunning);
});

test('what a process allocates and frees between the reading and its end goes out with the rest of it', () => {
  const map = [entry(1n, 11, 5n, 9n), entry(2n, 11, 6n, 9n)];
  const ended = new Set<number>();
  const { heap, samples } = heapOf(map, ended);
  heap.read();
  map.shift();
  map.push(entry(3n, 11, 7n, 9n), entry(4n, 12, 7n, 9n));
  ended.add(11);
  heap.report();
  expect(samples).toEqual([
    [11, 6n, 1000n, 9n],
    [11, 7n, 1000n, 9n],
  ]);
  expect(map).toHaveLength(1);
});

test('a heap whose records come too late is left out whole, and stays for the next interval', () => {
  const map = [entry(1n, 11, 5n, 9n)];
  const { heap, samples } = heapOf(map, new Set([11]));
  heap.read();
  heap.leaveOut();
  expect([samples.length, map.length, heap.stats.intervalsLeftOut]).toEqual([0, 1, 1]);
  heap.read();
  heap.report();
  expect([samples.length, map.length]).toEqual([1, 0]);
});

test('what was allocated before a recording begins is none of it', () => {
  const map = [entry(1n, 10, 5n, 100n), entry(2n, 11, 5n, 9n)];
  const { heap, samples } = heapOf(map, new Set());
  heap.begin();
  map.push(entry(3n, 10, 5n, 7n));
  heap.read();
  heap.report();
  expect(samples).toEqual([[10, 5n, 1000n, 7n]]);
});

test('of a process that has freed all that is told, once, also where it has ended since', () => {
  const map = [entry(1n, 10, 5n, 100n), entry(2n, 11, 6n, 7n), entry(3n, 12, 6n, 8n)];
  const ended = new Set<number>();
  const { heap, samples } = heapOf(map, ended);
  const report = (): unknown[] => {
    heap.read();
    heap.report();
    return samples.splice(0);
  };
  expect(report()).toHaveLength(3);
  map.splice(0, 2);
  ended.add(11);
  expect(report()).toEqual([
    [12, 6n, 1000n, 8n],
    [10, 5n, 1000n, 0n],
    [11, 6n, 1000n, 0n],
  ]);
  ended.add(12);
  expect(report()).toEqual([[12, 6n, 1000n, 8n]]);
  // what it never freed stays the last that is known of it
  expect(report()).toEqual([]);
});
