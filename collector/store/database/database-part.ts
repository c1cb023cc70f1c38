/** How the stores in DuckDB and in ClickHouse read a part. */
import { LRUCache } from 'lru-cache';
import type { ProfileType } from '../../../common/profile/model/profile-type.ts';
import type { PartLinks } from '../part-links.ts';
import type { SeriesGroup } from '../series.ts';
import type { SeriesTable } from '../series-table.ts';
import type { Frame, Stacks } from '../store.ts';
import { FrameTable } from '../trees/frame-table.ts';

export const PART_MS = 3_600_000;
const MAX_POOL_BYTES = 64 * 2 ** 20;

/** Entry of a part in the catalogue. */
export interface PartInfo {
  /** Names its tables, `samples_3`, `nodes_3`, …, or its rows. */
  id: number;
  /** Start of its hour. */
  startMs: number;
  type: ProfileType;
  /** Samples, see countOf, and the times of the oldest and the newest. */
  samples: number;
  minMs: number;
  maxMs: number;
  /** Whether any of its samples that are written has one. */
  hasLinks: boolean;
}

export const emptyPart = (id: number, startMs: number, type: ProfileType): PartInfo => {
  return { id, startMs, type, samples: 0, minMs: Number.MAX_SAFE_INTEGER, maxMs: 0, hasLinks: false };
};

/** A part's dictionaries as queries read them. Queries for times and labels need no stacks. */
export interface PartDictionaries {
  readonly groups: readonly SeriesGroup[];
  series(): Promise<SeriesTable>;
  stacks(): Promise<Stacks>;
  /** Asked of a part that has some. */
  links(): Promise<PartLinks>;
}

/** Hours have most frames in common: each is one object, whichever parts it is in, and so are their texts. */
class FramePool {
  #table = new FrameTable({ keepsLines: true });

  share(frame: Frame): Frame {
    if (this.#table.bytes > MAX_POOL_BYTES) this.#table = new FrameTable({ keepsLines: true });
    return this.#table.frames[this.#table.intern(frame)]!;
  }
}

/** Dictionaries that were loaded of late, within a number of bytes. */
export class DictionaryCache {
  readonly frames = new FramePool();
  readonly #values: LRUCache<string, object>;
  readonly #loading = new Map<string, Promise<object>>();

  constructor(maxBytes: number) {
    this.#values = new LRUCache({ maxSize: maxBytes });
  }

  /** Loads what is not there; who asks meanwhile gets the same. */
  async get<T extends object>(key: string, load: () => Promise<{ value: T; bytes: number }>): Promise<T> {
    const known = this.#values.get(key) ?? (await this.#loading.get(key));
    if (known !== undefined) return known as T;
    const loading = load().then(({ value, bytes }) => {
      this.#values.set(key, value, { size: Math.max(1, bytes) });
      return value;
    });
    this.#loading.set(key, loading);
    try {
      return await loading;
    } finally {
      this.#loading.delete(key);
    }
  }
}
