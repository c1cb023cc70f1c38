/**
 * What is allocated and not freed, with --event malloc: BPF keeps a map of sampled allocations, each with its sample, and their
 * sum by stack goes out with each interval.
 */
import { toPid } from '../../common/base/brand.ts';
import type { Native } from '../base/native.ts';
import { SAMPLE } from '../records/records.gen.ts';
import type { ProcessIdentity } from '../records/records.ts';

/** Address and process. */
const KEY_BYTES = 16;
const ENTRY_BYTES = KEY_BYTES + SAMPLE.bytes;

export interface LiveHeapParts {
  native: Pick<Native, 'mapReadAll' | 'mapDelete' | 'monotonicNs'>;
  /** Undefined: nobody asked for it. */
  tracer: { liveHeapFd: number | undefined };
  traces: { onSample(buffer: Buffer, at: number, size: number): void };
  processes: { isRunning(process: ProcessIdentity): boolean };
}

export class LiveHeap {
  readonly #parts: LiveHeapParts;
  #entries: Buffer = Buffer.alloc(0);
  readonly stats = { allocations: 0 };

  constructor(parts: LiveHeapParts) {
    this.#parts = parts;
  }

  /** To be called before the records that tell of its traces and processes are taken. */
  read(): void {
    const { native, tracer } = this.#parts;
    const fd = tracer.liveHeapFd;
    this.#entries = fd === undefined ? Buffer.alloc(0) : native.mapReadAll(fd, KEY_BYTES, SAMPLE.bytes);
    this.stats.allocations = this.#entries.length / ENTRY_BYTES;
  }

  /** What was read, as samples of now. That of a process that has ended goes out this once more. */
  report(): void {
    const { traces } = this.#parts;
    for (const sample of this.#sumByStack(this.#parts.native.monotonicNs()))
      traces.onSample(sample, 0, sample.length);
    this.#forgetEnded();
    this.#entries = Buffer.alloc(0);
  }

  /** Those that differ in nothing but time and size are one. */
  #sumByStack(nowNs: bigint): Iterable<Buffer> {
    const sums = new Map<string, Buffer>();
    for (let at = KEY_BYTES; at < this.#entries.length; at += ENTRY_BYTES) {
      const sample = this.#entries.subarray(at, at + SAMPLE.bytes);
      const bytes = sample.readBigUInt64LE(SAMPLE.value);
      sample.writeBigUInt64LE(nowNs, SAMPLE.ktimeNs);
      sample.writeBigUInt64LE(0n, SAMPLE.value);
      const key = sample.toString('latin1');
      const sum = sums.get(key);
      if (sum) sum.writeBigUInt64LE(sum.readBigUInt64LE(SAMPLE.value) + bytes, SAMPLE.value);
      else sums.set(key, withValue(sample, bytes));
    }
    return sums.values();
  }

  #forgetEnded(): void {
    const { native, tracer, processes } = this.#parts;
    const fd = tracer.liveHeapFd;
    if (fd === undefined) return;
    for (let at = 0; at < this.#entries.length; at += ENTRY_BYTES) {
      if (!processes.isRunning(processOf(this.#entries, at + KEY_BYTES)))
        native.mapDelete(fd, this.#entries.subarray(at, at + KEY_BYTES));
    }
  }
}

const processOf = (buffer: Buffer, at: number): ProcessIdentity => {
  return {
    pid: toPid(buffer.readUInt32LE(at + SAMPLE.processTgid)),
    execId: buffer.readUInt32LE(at + SAMPLE.processExecId),
    startBoottimeNs: buffer.readBigUInt64LE(at + SAMPLE.processStartBoottimeNs),
  };
};

function withValue(sample: Buffer, value: bigint): Buffer {
  const copy = Buffer.from(sample);
  copy.writeBigUInt64LE(value, SAMPLE.value);
  return copy;
}
