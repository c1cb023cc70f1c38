/**
 * Which unwind tables leave the kernel since no sample has needed them for a while. What is sampled once in ten minutes
 * needs its table then, so a table stays as long as its file is there and such tables are few.
 */
import type { FileKey } from '../../common/base/brand.ts';
import { withTimeout } from '../base/with-timeout.ts';

export interface TableUse {
  key: FileKey;
  /** In the kernel. */
  bytes: number;
  /** When it was installed, and when a sample last needed it: CLOCK_MONOTONIC. */
  sinceNs: bigint;
  usedNs: bigint;
}

/** Long enough for what runs now and then; reading a file again costs some milliseconds. */
const IDLE_NS = 180_000_000_000n;
/** Idle time after which a table leaves that was used for less than that: a replaced file's looks like that. Above cron's minute. */
const ONCE_NS = 75_000_000_000n;
/** Limit for all idle tables whose files are there. */
const MAX_BYTES = 8 << 20;
/** A file that was there is asked for again after so long. */
const LOOK_AGAIN_NS = 600_000_000_000n;
/** On a mount that is dead a look never ends; until it does, files count as gone. */
const MAX_LOOK_MS = 1000;

export class IdleTables {
  readonly #isThere: (key: FileKey) => Promise<boolean>;
  readonly #maxLookMs: number;
  /** When each file was there last. */
  #seenNs = new Map<FileKey, bigint>();
  #isStuck = false;
  /** Idle tables that stayed in the last {@link pick}. */
  readonly stats = { idleKept: 0, idleKeptBytes: 0 };

  /** `isThere`: whether the file could be mapped again, as it was. */
  constructor(isThere: (key: FileKey) => Promise<boolean>, maxLookMs = MAX_LOOK_MS) {
    this.#isThere = isThere;
    this.#maxLookMs = maxLookMs;
  }

  /** Picks the tables to evict. `tables` are in the order of their last use, the oldest first. */
  async pick(tables: readonly TableUse[], nowNs: bigint): Promise<TableUse[]> {
    const leaving: TableUse[] = [];
    const seenNs = new Map<FileKey, bigint>();
    let bytes = 0;
    for (const table of tables.filter((use) => isIdle(use, nowNs)).reverse()) {
      const seen = bytes + table.bytes <= MAX_BYTES ? await this.#lastSeen(table.key, nowNs) : undefined;
      if (seen === undefined) {
        leaving.push(table);
        continue;
      }
      seenNs.set(table.key, seen);
      bytes += table.bytes;
    }
    this.#seenNs = seenNs;
    this.stats.idleKept = seenNs.size;
    this.stats.idleKeptBytes = bytes;
    return leaving;
  }

  async #lastSeen(key: FileKey, nowNs: bigint): Promise<bigint | undefined> {
    const seen = this.#seenNs.get(key);
    if (seen !== undefined && nowNs - seen < LOOK_AGAIN_NS) return seen;
    return (await this.#look(key)) ? nowNs : undefined;
  }

  async #look(key: FileKey): Promise<boolean> {
    if (this.#isStuck) return false;
    this.#isStuck = true;
    const looking = this.#isThere(key).finally(() => {
      this.#isStuck = false;
    });
    return (await withTimeout(this.#maxLookMs, looking)) ?? false;
  }
}

function isIdle({ sinceNs, usedNs }: TableUse, nowNs: bigint): boolean {
  const isUsedOnce = usedNs - sinceNs < ONCE_NS;
  return nowNs - usedNs > (isUsedOnce ? ONCE_NS : IDLE_NS);
}
