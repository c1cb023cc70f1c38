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

test('what is not freed is summed by stack, at the time of the interval; that of an ended process goes out once', () => {
  const map = [
    entry(1n, 10, 5n, 100n),
    entry(2n, 10, 5n, 2n ** 40n),
    entry(3n, 10, 6n, 7n),
    entry(4n, 11, 5n, 9n),
  ];
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
    processes: { isRunning: ({ pid }) => pid === 10 },
  });
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
