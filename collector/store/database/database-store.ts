/** Base of the stores in databases: samples gather in open parts, and are written together. */
import type { Logger } from 'pino';
import type { ColumnProfile } from '../../../common/profile/model/frame-columns.ts';
import type { Profile } from '../../../common/profile/model/profile.ts';
import type { ProfileType } from '../../../common/profile/model/profile-type.ts';
import type { AppendResult, SamplePart, Store, StoreStats, TimeRange, TypedRange } from '../store.ts';
import { DictionaryCache, type PartInfo } from './database-part.ts';
import { Flusher } from './flusher.ts';
import { OpenParts } from './open-parts.ts';

export interface DatabaseStoreOptions {
  maxAgeMs: number;
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  logger: Pick<Logger, 'error' | 'info'>;
}

interface Database {
  /** Commits wait for each other so long, to be written together. */
  commitGapMs: number;
  /** Name of what is slow if nothing fails and too much waits. */
  bottleneck: string;
}

/** Dictionaries of parts that were read. */
const MAX_LOADED_BYTES = 96 * 2 ** 20;
const RETENTION_INTERVAL_MS = 30_000;

export abstract class DatabaseStore implements Store {
  protected readonly open: OpenParts;
  protected readonly loaded = new DictionaryCache(MAX_LOADED_BYTES);
  readonly #options: DatabaseStoreOptions;
  readonly #bottleneck: string;
  readonly #flusher: Flusher;
  #retainedMs: number;

  protected constructor(options: DatabaseStoreOptions, { commitGapMs, bottleneck }: Database) {
    this.#options = options;
    this.#bottleneck = bottleneck;
    this.#retainedMs = options.now();
    this.open = new OpenParts(
      { begin: (startMs, type) => this.beginPart(startMs, type), types: () => this.knownTypes() },
      options,
    );
    this.#flusher = new Flusher({
      gapMs: commitGapMs,
      write: () => this.write(),
      tidy: () => this.#tidy(),
      logger: options.logger,
    });
  }

  abstract recentRequests(): readonly string[];
  abstract parts(range: TypedRange): Promise<SamplePart[]>;
  abstract types(range: TimeRange): Promise<ProfileType[]>;
  abstract stats(): StoreStats;

  /** Names the part of a type that begins at a time. */
  protected abstract beginPart(startMs: number, type: ProfileType): PartInfo;
  /** Keys of the types of all parts. */
  protected abstract knownTypes(): ReadonlySet<string>;
  /** @throws Error when not everything that waits was written: it is tried again */
  protected abstract write(): Promise<void>;
  /** Drops what is older, or more, than is to be kept; when the store is opened, and every half minute. */
  protected abstract retain(): Promise<void>;

  get busy(): string | undefined {
    if (!this.open.isFull) return undefined;
    const reason = this.#flusher.error ?? `the ${this.#bottleneck} is slow`;
    return `the store could not write for a while and has no room to wait: ${reason}`;
  }

  get problem(): string | undefined {
    return this.#flusher.error;
  }

  hold(): () => void {
    return this.open.hold();
  }

  append(profile: Profile | ColumnProfile): AppendResult {
    return this.open.append(profile);
  }

  noteRequest(id: string): void {
    this.open.noteRequest(id);
  }

  commit(): Promise<void> {
    return this.#flusher.commit();
  }

  /** Writes what waits; a failure is logged, and tried again with the next flush. */
  flush(): Promise<void> {
    return this.#flusher.flush();
  }

  /** After a last flush. */
  close(): Promise<void> {
    return this.#flusher.close();
  }

  /** Sums complete parts; called after each flush. */
  protected async sumParts(): Promise<void> {}

  async #tidy(): Promise<void> {
    this.open.closeOld();
    await this.sumParts();
    if (this.#options.now() - this.#retainedMs < RETENTION_INTERVAL_MS) return;
    this.#retainedMs = this.#options.now();
    await this.tryToRetain();
  }

  protected async tryToRetain(): Promise<void> {
    try {
      await this.retain();
    } catch (error) {
      this.#options.logger.error({ err: error }, 'old samples could not be dropped: trying again');
    }
  }
}
