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
  processes: { hasEnded(process: ProcessIdentity): boolean };
}

export class LiveHeap {
  readonly #parts: LiveHeapParts;
  #entries: Buffer = Buffer.alloc(0);
  /** Of each process that runs and had something in use when that was told last, a sample. */
  #told = new Map<string, Buffer>();
  /** Allocations of the newest interval, intervals without them, whose records did not come in time, and sums that were handed on. */
  readonly stats = { allocations: 0, intervalsLeftOut: 0, reported: 0 };

  constructor(parts: LiveHeapParts) {
    this.#parts = parts;
  }

  get isAskedFor(): boolean {
    return this.#parts.tracer.liveHeapFd !== undefined;
  }

  /** To be called before the records of their traces and processes are taken: those came before what is read here. */
  read(): void {
    this.#entries = this.#readAll();
    this.stats.allocations = this.#entries.length / ENTRY_BYTES;
  }

  /**
   * What was read, as samples of now; to be called once the records that waited at {@link read} were taken. That of a process
   * that has ended goes out this once more. Of one that has nothing in use any more that is told, once: else what it had
   * would be the last that is known of it.
   */
  report(): void {
    const { native, traces } = this.#parts;
    const ended = this.#completeEnded();
    const nowNs = native.monotonicNs();
    const told = new Map<string, Buffer>();
    for (const sample of this.#sumByStack(nowNs)) {
      traces.onSample(sample, 0, sample.length);
      this.stats.reported++;
      told.set(keyOf(processOf(sample, 0)), sample);
    }
    for (const [key, sample] of this.#told) {
      if (told.has(key)) continue;
      sample.writeBigUInt64LE(nowNs, SAMPLE.ktimeNs);
      sample.writeBigUInt64LE(0n, SAMPLE.value);
      traces.onSample(sample, 0, sample.length);
      this.stats.reported++;
    }
    for (const entry of ended) told.delete(keyOf(processOf(entry, KEY_BYTES)));
    this.#told = told;
    this.#forget(ended);
    this.#entries = Buffer.alloc(0);
  }

  /** What was allocated until now is none of it. */
  begin(): void {
    this.#told.clear();
    const entries = this.#readAll();
    for (let at = 0; at < entries.length; at += ENTRY_BYTES)
      this.#forget([entries.subarray(at, at + ENTRY_BYTES)]);
  }

  /** A part of it would look like memory that was freed. */
  leaveOut(): void {
    this.stats.intervalsLeftOut++;
    this.#entries = Buffer.alloc(0);
  }

  #readAll(): Buffer {
    const { native, tracer } = this.#parts;
    const fd = tracer.liveHeapFd;
    return fd === undefined ? Buffer.alloc(0) : native.mapReadAll(fd, KEY_BYTES, SAMPLE.bytes);
  }

  /** What processes allocated and freed between the reading and their end belongs to what goes out of them: their entries. */
  #completeEnded(): Buffer[] {
    const [running, ended] = this.#byEnd(this.#entries);
    if (ended.length === 0) return [];
    const whole = this.#byEnd(this.#readAll())[1];
    this.#entries = Buffer.concat([...running, ...whole]);
    return whole;
  }

  /** Those of processes that run, as far as is known, and those of processes that have ended. */
  #byEnd(entries: Buffer): [running: Buffer[], ended: Buffer[]] {
    const running: Buffer[] = [];
    const ended: Buffer[] = [];
    const known = new Map<string, boolean>();
    for (let at = 0; at < entries.length; at += ENTRY_BYTES) {
      const process = processOf(entries, at + KEY_BYTES);
      const key = keyOf(process);
      const hasEnded = known.get(key) ?? this.#parts.processes.hasEnded(process);
      known.set(key, hasEnded);
      (hasEnded ? ended : running).push(entries.subarray(at, at + ENTRY_BYTES));
    }
    return [running, ended];
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

  #forget(entries: readonly Buffer[]): void {
    const { native, tracer } = this.#parts;
    for (const entry of entries) native.mapDelete(tracer.liveHeapFd!, entry.subarray(0, KEY_BYTES));
  }
}

const processOf = (buffer: Buffer, at: number): ProcessIdentity => {
  return {
    pid: toPid(buffer.readUInt32LE(at + SAMPLE.processTgid)),
    execId: buffer.readUInt32LE(at + SAMPLE.processExecId),
    startBoottimeNs: buffer.readBigUInt64LE(at + SAMPLE.processStartBoottimeNs),
  };
};

const keyOf = ({ pid, execId, startBoottimeNs }: ProcessIdentity): string =>
  `${pid} ${execId} ${startBoottimeNs}`;

function withValue(sample: Buffer, value: bigint): Buffer {
  const copy = Buffer.from(sample);
  copy.writeBigUInt64LE(value, SAMPLE.value);
  return copy;
}
