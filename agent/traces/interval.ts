/**
 * The samples of one interval, in columns of numbers. Thousands of objects that live for seconds are what V8's
 * collector would spend most on: they outlive the young generation, and its old one is marked again for them.
 */
import { type Tid, type TraceId, toPid, toTid, toTraceId } from '../../common/base/brand.ts';
import { intern } from '../../common/profile/model/intern.ts';
import { Origin, SAMPLE } from '../records/records.gen.ts';
import { type ProcessIdentity, readComm } from '../records/records.ts';

/** Samples of one source that differ in nothing but their time and value. */
export interface SampleGroup extends ProcessIdentity {
  /** Source of the samples: an index into PROFILE_TYPES. */
  origin: number;
  trace: TraceId;
  tid: Tid;
  threadName: string;
  cpu: number;
  /** Nanoseconds, one an event. */
  timestamps: bigint[];
  /** Sum of the events' values, in the unit of their source's type. */
  value: number;
  /** Value of each event; undefined if each is 1. */
  values: number[] | undefined;
  /** What else their source says of them, as `attributesText` writes it. */
  attributes: string;
  /** Trace and span, as {@link SampleLabels} has them. */
  span: string;
}

/** Offsets of the words in a record that make two samples of one trace the same group. */
const IDENTITY = [
  SAMPLE.processStartBoottimeNs,
  SAMPLE.processStartBoottimeNs + 4,
  SAMPLE.comm,
  SAMPLE.comm + 4,
  SAMPLE.comm + 8,
  SAMPLE.comm + 12,
  SAMPLE.processTgid,
  SAMPLE.processExecId,
  SAMPLE.tid,
  SAMPLE.cpu,
  // the origin is the upper half of that word
  SAMPLE.type,
];
const [TGID, EXEC_ID, TID, CPU, TYPE_AND_ORIGIN] = [6, 7, 8, 9, 10];
/** Behind the identity: the attributes, the span, the trace, the next group of the same hash, and the newest of the group's samples. */
const ATTRIBUTES = IDENTITY.length;
const SPAN = ATTRIBUTES + 1;
const TRACE_ID = SPAN + 1;
const NEXT_GROUP = TRACE_ID + 1;
const NEWEST_SAMPLE = NEXT_GROUP + 1;
const GROUP_WORDS = NEWEST_SAMPLE + 1;
const NONE = -1;
const FIRST_ROOM = 1024;

/** Start of the process and name of the thread, as they stand in the identity. */
const scratch = new Int32Array(6);
const startBoottimeNs = new BigUint64Array(scratch.buffer, 0, 1);
const comm = Buffer.from(scratch.buffer, 8, 16);

export class Interval {
  /** In the order of time. */
  readonly number: number;
  /** The earliest and the latest ktime in it; Infinity and 0 where it has no sample. */
  firstKtimeNs = Number.POSITIVE_INFINITY;
  lastKtimeNs = 0;
  readonly #areSame: (older: TraceId, newer: TraceId) => boolean;
  readonly #attributes = new TextTable();
  readonly #spans = new TextTable();
  #groups = new Int32Array(FIRST_ROOM * GROUP_WORDS);
  /** By a hash of trace, thread, CPU and span. */
  readonly #newestGroups = new Map<number, number>();
  #size = 0;
  #samples = 0;
  #ktimesNs = new Float64Array(FIRST_ROOM);
  /** The sample before in the same group. */
  #previousSample = new Int32Array(FIRST_ROOM);
  /** Values of the samples; undefined as long as each is 1, as for CPU time. */
  #values: Float64Array<ArrayBuffer> | undefined;

  /** `areSame`: whether it is one trace that came under two IDs. */
  constructor(number: number, areSame: (older: TraceId, newer: TraceId) => boolean) {
    this.number = number;
    this.#areSame = areSame;
  }

  get samples(): number {
    return this.#samples;
  }

  /** How many groups. */
  get size(): number {
    return this.#size;
  }

  /** Counts a sample record under its trace. */
  add(trace: TraceId, buffer: Buffer, at: number, attributes = '', span = ''): void {
    const ktimeNs =
      buffer.readUInt32LE(at + SAMPLE.ktimeNs + 4) * 2 ** 32 + buffer.readUInt32LE(at + SAMPLE.ktimeNs);
    if (ktimeNs < this.firstKtimeNs) this.firstKtimeNs = ktimeNs;
    if (ktimeNs > this.lastKtimeNs) this.lastKtimeNs = ktimeNs;
    const [ofAttributes, ofSpan] = [this.#attributes.indexOf(attributes), this.#spans.indexOf(span)];
    const newest = this.#groupOf(trace, buffer, at, ofAttributes, ofSpan) * GROUP_WORDS + NEWEST_SAMPLE;
    const sample = this.#samples++;
    if (sample >= this.#ktimesNs.length) this.#growSamples();
    this.#ktimesNs[sample] = ktimeNs;
    const isOfCpu = buffer.readUInt16LE(at + SAMPLE.origin) === Origin.CPU;
    if (this.#values || !isOfCpu) this.#noteValue(sample, isOfCpu ? 1 : readValue(buffer, at));
    this.#previousSample[sample] = this.#groups[newest]!;
    this.#groups[newest] = sample;
  }

  traceOf(group: number): TraceId {
    return toTraceId(this.#groups[group * GROUP_WORDS + TRACE_ID]!);
  }

  /** Source of the group: an index into PROFILE_TYPES. */
  originOf(group: number): number {
    return this.#groups[group * GROUP_WORDS + TYPE_AND_ORIGIN]! >>> 16;
  }

  /** Process of the group. */
  processOf(group: number): ProcessIdentity {
    const words = group * GROUP_WORDS;
    for (let i = 0; i < 2; i++) scratch[i] = this.#groups[words + i]!;
    return {
      pid: toPid(this.#groups[words + TGID]! >>> 0),
      execId: this.#groups[words + EXEC_ID]! >>> 0,
      startBoottimeNs: startBoottimeNs[0]!,
    };
  }

  /** `offsetNs` is added to CLOCK_MONOTONIC. */
  group(index: number, offsetNs: bigint): SampleGroup {
    const words = index * GROUP_WORDS;
    for (let i = 0; i < scratch.length; i++) scratch[i] = this.#groups[words + i]!;
    const origin = this.originOf(index);
    const newest = this.#groups[words + NEWEST_SAMPLE]!;
    const timestamps = this.#timestampsOf(newest, offsetNs);
    const values = origin === Origin.CPU ? undefined : this.#valuesOf(newest);
    return {
      origin,
      trace: this.traceOf(index),
      pid: toPid(this.#groups[words + TGID]! >>> 0),
      execId: this.#groups[words + EXEC_ID]! >>> 0,
      startBoottimeNs: startBoottimeNs[0]!,
      tid: toTid(this.#groups[words + TID]! >>> 0),
      threadName: readComm(comm, 0),
      cpu: this.#groups[words + CPU]! >>> 0,
      timestamps,
      value: values ? values.reduce((sum, value) => sum + value, 0) : timestamps.length,
      values,
      attributes: this.#attributes.at(this.#groups[words + ATTRIBUTES]!),
      span: this.#spans.at(this.#groups[words + SPAN]!),
    };
  }

  /** In the order of the timestamps. */
  #valuesOf(newest: number): number[] | undefined {
    const values: number[] = [];
    let areOnes = true;
    for (let i = newest; i !== NONE; i = this.#previousSample[i]!) {
      const value = this.#values?.[i] ?? 1;
      if (value !== 1) areOnes = false;
      values.push(value);
    }
    return areOnes ? undefined : values.reverse();
  }

  #noteValue(sample: number, value: number): void {
    if (!this.#values) {
      if (value === 1) return;
      this.#values = new Float64Array(this.#ktimesNs.length).fill(1);
    }
    this.#values[sample] = value;
  }

  #timestampsOf(newest: number, offsetNs: bigint): bigint[] {
    const timestamps = [BigInt(this.#ktimesNs[newest]!) + offsetNs];
    for (let i = this.#previousSample[newest]!; i !== NONE; i = this.#previousSample[i]!)
      timestamps.push(BigInt(this.#ktimesNs[i]!) + offsetNs);
    return timestamps.length > 1 ? timestamps.reverse() : timestamps;
  }

  #groupOf(trace: TraceId, buffer: Buffer, at: number, attributes: number, span: number): number {
    const tid = buffer.readInt32LE(at + SAMPLE.tid);
    const cpu = buffer.readInt32LE(at + SAMPLE.cpu);
    const ofThread = Math.imul(tid, 0x9e37_79b1) ^ cpu ^ Math.imul(span, 0x85eb_ca6b);
    const hash = buffer.readInt32LE(at + SAMPLE.traceHash) ^ ofThread;
    const newest = this.#newestGroups.get(hash) ?? NONE;
    for (let group = newest; group !== NONE; group = this.#groups[group * GROUP_WORDS + NEXT_GROUP]!) {
      const known = this.traceOf(group);
      const isSame = known === trace || this.#areSame(known, trace);
      if (isSame && this.#isGroup(group, buffer, at, attributes, span)) return group;
    }
    const group = this.#size++;
    const words = group * GROUP_WORDS;
    if (words + GROUP_WORDS > this.#groups.length) this.#groups = grown(this.#groups);
    for (let i = 0; i < IDENTITY.length; i++) this.#groups[words + i] = buffer.readInt32LE(at + IDENTITY[i]!);
    this.#groups[words + ATTRIBUTES] = attributes;
    this.#groups[words + SPAN] = span;
    this.#groups[words + TRACE_ID] = trace;
    this.#groups[words + NEXT_GROUP] = newest;
    this.#groups[words + NEWEST_SAMPLE] = NONE;
    this.#newestGroups.set(hash, group);
    return group;
  }

  #isGroup(group: number, buffer: Buffer, at: number, attributes: number, span: number): boolean {
    const words = group * GROUP_WORDS;
    if (this.#groups[words + ATTRIBUTES] !== attributes || this.#groups[words + SPAN] !== span) return false;
    for (let i = 0; i < IDENTITY.length; i++) {
      if (this.#groups[words + i] !== buffer.readInt32LE(at + IDENTITY[i]!)) return false;
    }
    return true;
  }

  #growSamples(): void {
    this.#previousSample = grown(this.#previousSample);
    const ktimesNs = new Float64Array(this.#ktimesNs.length * 2);
    ktimesNs.set(this.#ktimesNs);
    this.#ktimesNs = ktimesNs;
    if (!this.#values) return;
    const values = new Float64Array(ktimesNs.length).fill(1);
    values.set(this.#values);
    this.#values = values;
  }
}

/** Texts by their numbers; '' is 0. */
class TextTable {
  readonly #texts: string[] = [''];
  readonly #indices = new Map([['', 0]]);

  indexOf(text: string): number {
    return text === '' ? 0 : intern(this.#indices, text, this.#texts, () => text);
  }

  at(index: number): string {
    return this.#texts[index]!;
  }
}

/** Exact to 2^53, which is 104 days in nanoseconds. */
const readValue = (buffer: Buffer, at: number): number =>
  buffer.readUInt32LE(at + SAMPLE.value + 4) * 2 ** 32 + buffer.readUInt32LE(at + SAMPLE.value);

function grown(column: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(column.length * 2);
  larger.set(column);
  return larger;
}
