/**
 * Counts samples under (trace, execution of a process, thread, CPU) until the next interval is taken. This is
 * what runs for each sample: no object is made for a sample that joins a group.
 */
import type { Pid, Tid } from '../../common/base/brand.ts';
import { toPid, toTid } from '../../common/base/brand.ts';
import { SAMPLE } from '../tracer/records.gen.ts';
import { type ProcessIdentity, readComm, readTraceRecord } from '../tracer/records.ts';
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

interface GroupNode extends SampleGroup {
  commWords: [number, number, number, number];
  startWords: [number, number];
  /** The next group of the same trace, thread and CPU. */
  next: GroupNode | undefined;
}

const MAX_CPUS = 16384;

export class TraceHandler {
  readonly #cache: TraceCache;
  #byTrace = new Map<Trace, Map<number, GroupNode>>();
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
    const trace = this.#cache.get(buffer.readBigUInt64LE(at + SAMPLE.traceHash));
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
    this.#groupOf(trace, buffer, at).ktimesNs.push(ktimeNs);
    this.#interval.samples++;
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
    this.#byTrace = new Map();
    return interval;
  }

  #groupOf(trace: Trace, buffer: Buffer, at: number): GroupNode {
    let groups = this.#byTrace.get(trace);
    if (!groups) {
      groups = new Map();
      this.#byTrace.set(trace, groups);
    }
    const tid = buffer.readUInt32LE(at + SAMPLE.tid);
    const cpu = buffer.readUInt32LE(at + SAMPLE.cpu);
    const key = tid * MAX_CPUS + cpu;
    const first = groups.get(key);
    for (let node = first; node; node = node.next) {
      if (isSameGroup(node, buffer, at)) return node;
    }
    const node = makeGroup(trace, buffer, at, first);
    groups.set(key, node);
    this.#interval.groups.push(node);
    return node;
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
    node.startWords[0] === buffer.readUInt32LE(at + SAMPLE.processStartBoottimeNs) &&
    node.startWords[1] === buffer.readUInt32LE(at + SAMPLE.processStartBoottimeNs + 4) &&
    node.execId === buffer.readUInt32LE(at + SAMPLE.processExecId) &&
    node.pid === buffer.readUInt32LE(at + SAMPLE.processTgid) &&
    node.commWords[0] === buffer.readUInt32LE(at + SAMPLE.comm) &&
    node.commWords[1] === buffer.readUInt32LE(at + SAMPLE.comm + 4) &&
    node.commWords[2] === buffer.readUInt32LE(at + SAMPLE.comm + 8) &&
    node.commWords[3] === buffer.readUInt32LE(at + SAMPLE.comm + 12)
  );
}

function makeGroup(trace: Trace, buffer: Buffer, at: number, next: GroupNode | undefined): GroupNode {
  const word = (offset: number): number => buffer.readUInt32LE(at + offset);
  return {
    trace,
    pid: toPid(word(SAMPLE.processTgid)) as Pid,
    execId: word(SAMPLE.processExecId),
    startBoottimeNs: buffer.readBigUInt64LE(at + SAMPLE.processStartBoottimeNs),
    tid: toTid(word(SAMPLE.tid)),
    threadName: readComm(buffer, at + SAMPLE.comm),
    cpu: word(SAMPLE.cpu),
    ktimesNs: [],
    startWords: [word(SAMPLE.processStartBoottimeNs), word(SAMPLE.processStartBoottimeNs + 4)],
    commWords: [word(SAMPLE.comm), word(SAMPLE.comm + 4), word(SAMPLE.comm + 8), word(SAMPLE.comm + 12)],
    next,
  };
}
