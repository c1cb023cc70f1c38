/**
 * Counts samples under (trace, execution of a process, thread, CPU) until the next interval is taken. This is
 * what runs for each sample: no object is made for a sample that joins a group.
 */
import { type Tid, toPid, toTid } from '../../common/base/brand.ts';
import { SAMPLE } from '../tracer/records.gen.ts';
import { type ProcessIdentity, readComm, readTraceRecord, readU64 } from '../tracer/records.ts';
import type { Trace, TraceCache } from './trace-cache.ts';

/** Samples that differ in nothing but their time. */
export interface SampleGroup extends ProcessIdentity {
  trace: Trace;
  tid: Tid;
  threadName: string;
  cpu: number;
  /** CLOCK_MONOTONIC, nanoseconds, one an event. */
  ktimesNs: number[];
}

export interface Interval {
  groups: SampleGroup[];
  samples: number;
  /** The earliest and the latest ktime in it; Infinity and 0 where it has no sample. */
  firstKtimeNs: number;
  lastKtimeNs: number;
}

/** With the record's own words, signed so that V8 keeps them in place: comparing two samples makes nothing. */
interface GroupNode extends SampleGroup {
  startLow: number;
  startHigh: number;
  comm0: number;
  comm1: number;
  comm2: number;
  comm3: number;
  /** Another group of the same hash. */
  next: GroupNode | undefined;
}

export class TraceHandler {
  readonly #cache: TraceCache;
  /** By a hash of trace, thread and CPU. */
  #byHash = new Map<number, GroupNode>();
  #interval = emptyInterval();
  readonly #maxSamples: number;
  readonly stats = { samples: 0, lostTraceMissing: 0, lostIntervalFull: 0, malformed: 0 };

  /** `maxSamples` bounds what one interval may hold. */
  constructor(cache: TraceCache, maxSamples = 2_000_000) {
    this.#cache = cache;
    this.#maxSamples = maxSamples;
  }

  /** Returns the trace if what it says has to be read while its process lives. */
  onTrace(buffer: Buffer, at: number, size: number): Trace | undefined {
    const record = readTraceRecord(buffer, at, size);
    this.#cache.add(record);
    return record.isOfProcess ? this.#cache.get(record.hash) : undefined;
  }

  onSample(buffer: Buffer, at: number, size: number): void {
    if (size < SAMPLE.bytes) {
      this.stats.malformed++;
      return;
    }
    this.stats.samples++;
    const trace = this.#cache.get(readU64(buffer, at + SAMPLE.traceHash));
    if (!trace) {
      this.stats.lostTraceMissing++;
      return;
    }
    if (this.#interval.samples >= this.#maxSamples) {
      this.stats.lostIntervalFull++;
      return;
    }
    const ktimeNs =
      buffer.readUInt32LE(at + SAMPLE.ktimeNs + 4) * 2 ** 32 + buffer.readUInt32LE(at + SAMPLE.ktimeNs);
    this.#count(trace, ktimeNs, buffer, at);
    this.#interval.samples++;
    trace.samples++;
    if (ktimeNs < this.#interval.firstKtimeNs) this.#interval.firstKtimeNs = ktimeNs;
    if (ktimeNs > this.#interval.lastKtimeNs) this.#interval.lastKtimeNs = ktimeNs;
  }

  drained(): void {
    this.#cache.drained();
  }

  /** What was counted since the last call; counting starts anew. */
  takeInterval(): Interval {
    const interval = this.#interval;
    this.#interval = emptyInterval();
    this.#byHash = new Map();
    return interval;
  }

  #count(trace: Trace, ktimeNs: number, buffer: Buffer, at: number): void {
    const tid = buffer.readInt32LE(at + SAMPLE.tid);
    const cpu = buffer.readInt32LE(at + SAMPLE.cpu);
    const hash = buffer.readInt32LE(at + SAMPLE.traceHash) ^ Math.imul(tid, 0x9e37_79b1) ^ cpu;
    const first = this.#byHash.get(hash);
    for (let node = first; node; node = node.next) {
      if (node.trace === trace && isSameGroup(node, buffer, at)) {
        node.ktimesNs.push(ktimeNs);
        return;
      }
    }
    const node = makeGroup(trace, ktimeNs, buffer, at, first);
    this.#byHash.set(hash, node);
    this.#interval.groups.push(node);
  }
}

const emptyInterval = (): Interval => ({
  groups: [],
  samples: 0,
  firstKtimeNs: Number.POSITIVE_INFINITY,
  lastKtimeNs: 0,
});

function isSameGroup(node: GroupNode, buffer: Buffer, at: number): boolean {
  return (
    node.tid === buffer.readUInt32LE(at + SAMPLE.tid) &&
    node.cpu === buffer.readUInt32LE(at + SAMPLE.cpu) &&
    node.startLow === buffer.readInt32LE(at + SAMPLE.processStartBoottimeNs) &&
    node.startHigh === buffer.readInt32LE(at + SAMPLE.processStartBoottimeNs + 4) &&
    node.execId === buffer.readUInt32LE(at + SAMPLE.processExecId) &&
    node.pid === buffer.readUInt32LE(at + SAMPLE.processTgid) &&
    node.comm0 === buffer.readInt32LE(at + SAMPLE.comm) &&
    node.comm1 === buffer.readInt32LE(at + SAMPLE.comm + 4) &&
    node.comm2 === buffer.readInt32LE(at + SAMPLE.comm + 8) &&
    node.comm3 === buffer.readInt32LE(at + SAMPLE.comm + 12)
  );
}

function makeGroup(
  trace: Trace,
  ktimeNs: number,
  buffer: Buffer,
  at: number,
  next: GroupNode | undefined,
): GroupNode {
  return {
    trace,
    pid: toPid(buffer.readUInt32LE(at + SAMPLE.processTgid)),
    execId: buffer.readUInt32LE(at + SAMPLE.processExecId),
    startBoottimeNs: readU64(buffer, at + SAMPLE.processStartBoottimeNs),
    tid: toTid(buffer.readUInt32LE(at + SAMPLE.tid)),
    threadName: readComm(buffer, at + SAMPLE.comm),
    cpu: buffer.readUInt32LE(at + SAMPLE.cpu),
    // most groups have one sample; room for more would be several times this object
    ktimesNs: [ktimeNs],
    startLow: buffer.readInt32LE(at + SAMPLE.processStartBoottimeNs),
    startHigh: buffer.readInt32LE(at + SAMPLE.processStartBoottimeNs + 4),
    comm0: buffer.readInt32LE(at + SAMPLE.comm),
    comm1: buffer.readInt32LE(at + SAMPLE.comm + 4),
    comm2: buffer.readInt32LE(at + SAMPLE.comm + 8),
    comm3: buffer.readInt32LE(at + SAMPLE.comm + 12),
    next,
  };
}
