import type { ColumnProfile } from '../../../common/profile/model/frame-columns.ts';
import type { Profile } from '../../../common/profile/model/profile.ts';
import { type ProfileType, typeKey } from '../../../common/profile/model/profile-type.ts';
import { type AppendLimits, appendProfile, type SampleSink, type StoredSample } from '../memory/append.ts';
import type { AppendResult } from '../store.ts';
import { countOf } from '../stored-type.ts';
import { StackDictionaries } from '../trees/stack-dictionaries.ts';
import { PART_MS, type PartInfo } from './database-part.ts';

/** While the database takes nothing, so many rows wait in memory; later requests are asked to come again. */
const MAX_PENDING_ROWS = 1_000_000;
/** So do those that come once the dictionaries of what waits are so large. */
const MAX_PENDING_BYTES = 256 * 2 ** 20;
/** Limit for open parts; an hour has one for each type. */
const MAX_OPEN_PARTS = 24;
const MAX_OPEN_BYTES = 64 * 2 ** 20;
/** Limit for all parts that have nothing to write. */
const MAX_IDLE_BYTES = 6 * MAX_OPEN_BYTES;
/** A part of an hour that is over is closed when nothing came for so long. */
const IDLE_MS = 5 * 60_000;

/** Batches that are written together. */
export interface Flush {
  batches: Batch[];
  requests: NotedRequest[];
  /** More waits, the requests among it: they are noted once all of their samples are written. */
  isPartial: boolean;
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
  links: number;
  /** See countOf. */
  samples: number;
}

const NOTHING_WRITTEN: Extent = {
  ...{ frames: 0, places: 0, nodes: 1, series: 0, groups: 0, links: 1, samples: 0 },
};

export const hasLinks = ({ links }: Extent): boolean => links > NOTHING_WRITTEN.links;

/** The rows of a part that one flush writes. */
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
  /** Missing where no row has one. */
  links: number[] | undefined;

  push(time: number, { node, series, cpu, weight, link }: Omit<StoredSample, 'timeMs'>): void {
    const row = this.times.push(time) - 1;
    this.nodes.push(node);
    this.series.push(series);
    this.cpus.push(cpu);
    this.weights.push(weight);
    if (link > 0) this.links ??= new Array<number>(row).fill(0);
    this.links?.push(link);
  }

  append({ times, nodes, series, cpus, weights, links }: PendingRows): void {
    for (let i = 0; i < times.length; i++)
      this.push(times[i]!, {
        ...{ node: nodes[i]!, series: series[i]!, cpu: cpus[i]!, weight: weights[i]! },
        link: links?.[i] ?? 0,
      });
  }
}

/** A part that this process writes: its dictionaries are in memory, and what is new of them waits with the rows. */
export class OpenPart extends StackDictionaries {
  readonly info: PartInfo;
  readonly startMs: number;
  pending = new PendingRows();
  /** When rows were last taken to be written. */
  flushedMs = 0;
  /** Entries of the dictionaries that the database has; node 0, the root, and link 0, none, are in no table. */
  written: Extent = NOTHING_WRITTEN;

  constructor(info: PartInfo) {
    super();
    this.info = info;
    this.startMs = info.startMs;
  }

  /** Samples that the database does not have yet. */
  get waitingSamples(): number {
    return this.info.samples - this.written.samples;
  }
}

/** Begins the parts of a database, and knows the types that it has. */
export interface PartDatabase {
  /** Names the part of a type that begins at a time. */
  begin(startMs: number, type: ProfileType): PartInfo;
  /** Keys of the types that are there. */
  types(): ReadonlySet<string>;
}

/** Begins the keys of parts that take nothing more. */
const FULL = 'full ';

/** The parts that this process writes into a database, and what waits to be written. */
export class OpenParts {
  /** By type and start of the hour. */
  readonly #parts = new Map<string, OpenPart>();
  readonly #database: PartDatabase;
  readonly #limits: AppendLimits;
  readonly #sink: SampleSink<OpenPart> = {
    partFor: (timeMs, type) => this.#partFor(timeMs, type),
    types: () => this.#database.types(),
    push: (part, sample) => {
      const { info, pending } = part;
      const { timeMs } = sample;
      pending.push(timeMs - part.startMs, sample);
      info.samples += countOf(info.type, sample.weight);
      info.minMs = Math.min(info.minMs, timeMs);
      info.maxMs = Math.max(info.maxMs, timeMs);
      this.#pendingRows++;
    },
  };
  #pendingRows = 0;
  readonly #held = new Set<Promise<void>>();
  #requests: NotedRequest[] = [];

  constructor(database: PartDatabase, limits: AppendLimits) {
    this.#database = database;
    this.#limits = limits;
  }

  /** No flush is taken until the function that this returns is called; it must be called. */
  hold(): () => void {
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    this.#held.add(held);
    return () => {
      this.#held.delete(held);
      release();
    };
  }

  /** Resolves when nothing is held, for a flush that is taken without awaiting anything else. */
  async whole(): Promise<void> {
    while (this.#held.size > 0) await Promise.all(this.#held);
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
    for (const part of this.#parts.values()) if (part.waitingSamples > 0) bytes += part.bytes;
    return bytes >= MAX_PENDING_BYTES;
  }

  get waitingSamples(): number {
    return [...this.#parts.values()].reduce((sum, part) => sum + part.waitingSamples, 0);
  }

  find({ id }: PartInfo): OpenPart | undefined {
    return [...this.#parts.values()].find(({ info }) => info.id === id);
  }

  /** In one step, without awaiting: what arrives from now on belongs to the next flush. */
  takeFlush(maxParts = Number.POSITIVE_INFINITY): Flush {
    const waiting = [...this.#parts.values()].filter(({ pending }) => pending.times.length > 0);
    const batches = waiting.slice(0, maxParts).map((part) => {
      part.flushedMs = this.#limits.now();
      return takeBatch(part);
    });
    if (waiting.length > maxParts) return { batches, requests: [], isPartial: true };
    const requests = this.#requests;
    this.#requests = [];
    return { batches, requests, isPartial: false };
  }

  noteWritten({ batches }: Flush): void {
    for (const { part, rows, end } of batches) {
      part.written = end;
      part.info.hasLinks = hasLinks(end);
      this.#pendingRows -= rows.times.length;
    }
  }

  /** The database is a new one, without anything: what waits is written with all it refers to, other parts end. */
  startOver(): void {
    for (const [key, part] of this.#parts) {
      if (part.pending.times.length === 0) this.#parts.delete(key);
      part.written = NOTHING_WRITTEN;
      const { info, pending } = part;
      info.hasLinks = false;
      info.samples = pending.weights.reduce((sum, weight) => sum + countOf(info.type, weight), 0);
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
      rows.append(later);
    }
    this.#requests = requests.concat(this.#requests);
  }

  /** Closes parts of which nothing waits: full ones, complete ones, and the oldest where events of many hours arrive. */
  closeOld(): void {
    const idle = [...this.#parts].filter(([, { waitingSamples }]) => waitingSamples === 0);
    const idleMs = this.#limits.now() - IDLE_MS;
    for (const [key, { startMs, flushedMs }] of idle)
      if (key.startsWith(FULL) || (startMs + PART_MS < idleMs && flushedMs < idleMs)) this.#parts.delete(key);
    const kept = idle.filter(([key]) => this.#parts.has(key)).sort(([, a], [, b]) => a.startMs - b.startMs);
    let bytes = kept.reduce((sum, [, part]) => sum + part.bytes, 0);
    for (const [key, part] of kept) {
      if (this.#parts.size <= MAX_OPEN_PARTS && bytes <= MAX_IDLE_BYTES) break;
      this.#parts.delete(key);
      bytes -= part.bytes;
    }
  }

  /** Later events of its hour begin another part. */
  close({ id }: PartInfo): void {
    for (const [key, part] of this.#parts) if (part.info.id === id) this.#parts.delete(key);
  }

  #partFor(timeMs: number, type: ProfileType): OpenPart {
    const startMs = Math.floor(timeMs / PART_MS) * PART_MS;
    const key = `${startMs} ${typeKey(type)}`;
    let part = this.#parts.get(key);
    if (part === undefined || part.bytes > MAX_OPEN_BYTES) {
      // A full part still has rows that wait: it stays open under a key that no event has.
      if (part !== undefined) this.#parts.set(`${FULL}${part.info.id}`, part);
      part = new OpenPart(this.#database.begin(startMs, type));
      this.#parts.set(key, part);
    }
    return part;
  }
}

function takeBatch(part: OpenPart): Batch {
  const rows = part.pending;
  part.pending = new PendingRows();
  const { frames, tree, seriesTable, linkTable, info } = part;
  const end = {
    frames: frames.frames.length,
    places: frames.places.length,
    nodes: tree.size,
    series: seriesTable.length,
    groups: seriesTable.groups.length,
    links: linkTable.length,
    samples: info.samples,
  };
  return { part, rows, end };
}
