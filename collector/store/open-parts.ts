import type { ColumnProfile } from '../../common/profile/frame-columns.ts';
import type { Profile } from '../../common/profile/profile.ts';
import { type AppendLimits, appendProfile, type SampleSink } from './append.ts';
import { PART_MS, type PartInfo } from './database-part.ts';
import { StackDictionaries } from './stack-dictionaries.ts';
import type { AppendResult } from './store.ts';

/** While the database takes nothing, so many rows wait in memory; later requests are asked to come again. */
const MAX_PENDING_ROWS = 1_000_000;
/** So do those that come once the dictionaries of what waits are so large. */
const MAX_PENDING_BYTES = 256 * 2 ** 20;
const MAX_OPEN_PARTS = 6;
const MAX_OPEN_BYTES = 64 * 2 ** 20;
/** A part of an hour that is over is closed when nothing came for so long. */
const IDLE_MS = 5 * 60_000;

/** What is written together. */
export interface Flush {
  batches: Batch[];
  requests: NotedRequest[];
}

export interface NotedRequest {
  id: string;
  /** Milliseconds since the Unix epoch. */
  atMs: number;
}

/** How much there is of a part. */
export interface Extent {
  frames: number;
  places: number;
  nodes: number;
  series: number;
  groups: number;
  events: number;
}

const NOTHING_WRITTEN: Extent = { frames: 0, places: 0, nodes: 1, series: 0, groups: 0, events: 0 };

/** What one flush writes of a part. */
export interface Batch {
  part: OpenPart;
  rows: PendingRows;
  end: Extent;
}

/** Rows that wait to be written. */
export class PendingRows {
  readonly times: number[] = [];
  readonly nodes: number[] = [];
  readonly series: number[] = [];
  readonly cpus: number[] = [];
  readonly weights: number[] = [];
}

/** A part that this process writes: its dictionaries are in memory, and what is new of them waits with the rows. */
export class OpenPart extends StackDictionaries {
  readonly info: PartInfo;
  readonly startMs: number;
  pending = new PendingRows();
  /** When rows were last taken to be written. */
  flushedMs = 0;
  /** Entries of the dictionaries that the database has; node 0, the root, is in no table. */
  written: Extent = NOTHING_WRITTEN;

  constructor(info: PartInfo) {
    super();
    this.info = info;
    this.startMs = info.startMs;
  }

  /** Events that the database does not have yet. */
  get waitingEvents(): number {
    return this.info.events - this.written.events;
  }
}

/** The parts that this process writes into a database, and what waits to be written. */
export class OpenParts {
  /** By start of the hour. */
  readonly #parts = new Map<number, OpenPart>();
  readonly #begin: (startMs: number) => PartInfo;
  readonly #limits: AppendLimits;
  readonly #sink: SampleSink<OpenPart> = {
    partFor: (timeMs) => this.#partFor(timeMs),
    push: (part, { timeMs, node, series, cpu, weight }) => {
      const { info, pending } = part;
      pending.times.push(timeMs - part.startMs);
      pending.nodes.push(node);
      pending.series.push(series);
      pending.cpus.push(cpu);
      pending.weights.push(weight);
      info.events += weight;
      info.minMs = Math.min(info.minMs, timeMs);
      info.maxMs = Math.max(info.maxMs, timeMs);
      this.#pendingRows++;
    },
  };
  #pendingRows = 0;
  #requests: NotedRequest[] = [];

  /** @param begin names the part that begins at a time */
  constructor(begin: (startMs: number) => PartInfo, limits: AppendLimits) {
    this.#begin = begin;
    this.#limits = limits;
  }

  append(profile: Profile | ColumnProfile): AppendResult {
    return appendProfile(profile, this.#sink, this.#limits);
  }

  noteRequest(id: string): void {
    this.#requests.push({ id, atMs: this.#limits.now() });
  }

  /** Too much waits to take more. */
  get isFull(): boolean {
    if (this.#pendingRows >= MAX_PENDING_ROWS) return true;
    let bytes = 0;
    for (const part of this.#parts.values()) if (part.waitingEvents > 0) bytes += part.bytes;
    return bytes >= MAX_PENDING_BYTES;
  }

  get waitingEvents(): number {
    return [...this.#parts.values()].reduce((sum, part) => sum + part.waitingEvents, 0);
  }

  find({ id }: PartInfo): OpenPart | undefined {
    return [...this.#parts.values()].find(({ info }) => info.id === id);
  }

  /** In one step, without awaiting: what arrives from now on belongs to the next flush. */
  takeFlush(): Flush {
    const requests = this.#requests;
    this.#requests = [];
    const batches = [...this.#parts.values()]
      .filter(({ pending }) => pending.times.length > 0)
      .map((part) => {
        part.flushedMs = this.#limits.now();
        return takeBatch(part);
      });
    return { batches, requests };
  }

  noteWritten({ batches }: Flush): void {
    for (const { part, rows, end } of batches) {
      part.written = end;
      this.#pendingRows -= rows.times.length;
    }
  }

  /** The database is a new one, without anything: what waits is written with all it refers to, other parts end. */
  startOver(): void {
    for (const [key, part] of this.#parts) {
      if (part.pending.times.length === 0) this.#parts.delete(key);
      part.written = NOTHING_WRITTEN;
      part.info.events = part.pending.weights.reduce((sum, weight) => sum + weight, 0);
    }
  }

  /** The catalogue of what waits. */
  get infos(): PartInfo[] {
    return [...this.#parts.values()].map(({ info }) => info);
  }

  /** For the next flush, before what has arrived since. */
  giveBack({ batches, requests }: Flush): void {
    for (const { part, rows } of batches) {
      const later = part.pending;
      part.pending = rows;
      for (const name of ['times', 'nodes', 'series', 'cpus', 'weights'] as const) {
        for (const value of later[name]) rows[name].push(value);
      }
    }
    this.#requests = requests.concat(this.#requests);
  }

  /** Closes parts of which nothing waits: full ones, complete ones, and the oldest where events of many hours arrive. */
  closeOld(): void {
    const idle = [...this.#parts].filter(([, { waitingEvents }]) => waitingEvents === 0);
    const idleMs = this.#limits.now() - IDLE_MS;
    for (const [key, { startMs, flushedMs }] of idle)
      if (key < 0 || (startMs + PART_MS < idleMs && flushedMs < idleMs)) this.#parts.delete(key);
    idle.sort(([a], [b]) => a - b);
    for (const [key] of idle) {
      if (this.#parts.size <= MAX_OPEN_PARTS) break;
      this.#parts.delete(key);
    }
  }

  /** Later events of its hour begin another part. */
  close({ id }: PartInfo): void {
    for (const [key, part] of this.#parts) if (part.info.id === id) this.#parts.delete(key);
  }

  #partFor(timeMs: number): OpenPart {
    const startMs = Math.floor(timeMs / PART_MS) * PART_MS;
    let part = this.#parts.get(startMs);
    if (part === undefined || part.bytes > MAX_OPEN_BYTES) {
      // A full part still has rows that wait: it stays open under a key that no event has.
      if (part !== undefined) this.#parts.set(-part.info.id, part);
      part = new OpenPart(this.#begin(startMs));
      this.#parts.set(startMs, part);
    }
    return part;
  }
}

function takeBatch(part: OpenPart): Batch {
  const rows = part.pending;
  part.pending = new PendingRows();
  const { frames, tree, seriesTable, info } = part;
  const end = {
    frames: frames.frames.length,
    places: frames.places.length,
    nodes: tree.size,
    series: seriesTable.length,
    groups: seriesTable.groups.length,
    events: info.events,
  };
  return { part, rows, end };
}
