/** Profiles from files into the store: read by a process of their own, since they are strangers' files. */

import { basename } from 'node:path';
import type { ColumnProfile } from '../../common/profile/model/frame-columns.ts';
import { StringCache } from '../../common/profile/model/string-cache.ts';
import { type DecodeResult, decodeColumns, OtlpError } from '../../common/profile/otlp/otlp-decode.ts';
import { RecentRequests, requestId } from '../ingest/recent-requests.ts';
import type { Store } from '../store/store.ts';
import type { ImportResult } from './import-result.ts';
import { MAX_IMPORT_BYTES } from './limits.ts';
import { NoReader, readFile, UnreadableFile } from './read-file.ts';

/** Reading at a time; more are asked to come again. */
const MAX_AT_A_TIME = 2;

/** The file, or what was asked to be done with it, is wrong; the message says what. */
export class ImportError extends Error {
  override name = 'ImportError';
}

/** Others are being imported: it will work later. */
export class ImportBusyError extends Error {
  override name = 'ImportBusyError';
}

/** It was taken, and could not be written yet. */
export class ImportUnwrittenError extends Error {
  override name = 'ImportUnwrittenError';
}

export interface ImportOptions {
  /** Its ending names the format. */
  fileName: string;
  /** When the newest sample is to have happened; undefined: as the file says, and now if it doesn't. */
  endMs?: number | undefined;
  /** For a file that doesn't say when: now, unless given. */
  fallbackEndMs?: number | undefined;
}

export class Importer {
  readonly #store: Pick<Store, 'append' | 'busy' | 'commit'>;
  readonly #now: () => number;
  readonly #recent: RecentRequests<ImportResult>;
  /** By what identifies them. */
  readonly #underWay = new Map<string, Promise<ImportResult>>();

  constructor(store: Pick<Store, 'append' | 'busy' | 'commit'>, now: () => number) {
    this.#store = store;
    this.#now = now;
    this.#recent = new RecentRequests(now);
  }

  /**
   * @param bytes the whole file
   * @throws ImportError
   * @throws ImportBusyError
   */
  async import(bytes: Uint8Array, options: ImportOptions): Promise<ImportResult> {
    const { fileName, endMs } = options;
    const id = requestId(`${fileName}\0${endMs}\0`, bytes);
    const underWay = this.#underWay.get(id);
    const known = this.#recent.answerTo(id) ?? (underWay && (await underWay));
    const result = known ? { ...known, samples: 0, repeated: true } : await this.#begin(id, bytes, options);
    await this.#store.commit().catch(({ message }: Error) => {
      throw new ImportUnwrittenError(
        `${fileName} is in memory, and is stored once that works again; until then it is lost if the collector ends: ${message}`,
      );
    });
    return result;
  }

  #begin(id: string, bytes: Uint8Array, options: ImportOptions): Promise<ImportResult> {
    if (this.#underWay.size >= MAX_AT_A_TIME)
      throw new ImportBusyError('other files are being imported: try again in a few seconds');
    const result = this.#take(id, bytes, options).finally(() => this.#underWay.delete(id));
    this.#underWay.set(id, result);
    return result;
  }

  async #take(id: string, bytes: Uint8Array, options: ImportOptions): Promise<ImportResult> {
    const result = this.#add(options.fileName, await this.#read(bytes, options));
    this.#recent.note(id, result);
    return result;
  }

  async #read(bytes: Uint8Array, { fileName, endMs, fallbackEndMs }: ImportOptions): Promise<Decoded> {
    if (bytes.length > MAX_IMPORT_BYTES)
      throw new ImportError(`${fileName} has ${bytes.length} bytes: at most ${MAX_IMPORT_BYTES} are taken`);
    const placement = {
      endMs,
      fallbackEndMs: fallbackEndMs ?? this.#now(),
      processName: basename(fileName).replace(/\..*$/, '') || 'imported',
    };
    try {
      return decodeColumns(await readFile({ fileName, placement }, bytes), new StringCache());
    } catch (error) {
      if (error instanceof NoReader) throw new ImportBusyError(error.message);
      if (error instanceof UnreadableFile) throw new ImportError(error.message);
      if (error instanceof OtlpError) throw new ImportError(`${fileName}: ${error.message}`);
      throw error;
    }
  }

  #add(fileName: string, { profiles, problems }: Decoded): ImportResult {
    const { busy } = this.#store;
    if (busy !== undefined) throw new ImportBusyError(busy);
    let samples = 0;
    const all = new Map(problems);
    for (const profile of profiles) {
      const { stored, rejected } = this.#store.append(profile);
      samples += stored;
      for (const [reason, count] of rejected) all.set(reason, (all.get(reason) ?? 0) + count);
    }
    return {
      fileName,
      samples,
      rejected: [...all].map(([reason, count]) => ({ reason, count })),
      ...rangeOf(profiles),
      repeated: false,
    };
  }
}

type Decoded = DecodeResult<ColumnProfile>;

function rangeOf(profiles: readonly ColumnProfile[]): { fromMs: number; toMs: number } {
  let fromMs = Number.POSITIVE_INFINITY;
  let toMs = 0;
  const add = (nanos: bigint): void => {
    const ms = Number(nanos / 1_000_000n);
    if (ms < fromMs) fromMs = ms;
    if (ms >= toMs) toMs = ms + 1;
  };
  for (const { samples, timeUnixNano, durationNano } of profiles)
    for (const { timestamps } of samples) {
      for (const time of timestamps) add(time);
      if (timestamps.length === 0) add(timeUnixNano + durationNano);
    }
  return { fromMs, toMs };
}
