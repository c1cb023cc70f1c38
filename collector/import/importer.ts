/** Profiles from files into the store: read in a worker thread, since they are strangers' files. */
import { basename } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Profile } from '../../common/profile/profile.ts';
import type { ImportResult } from '../api/types.ts';
import { RecentRequests, requestId } from '../ingest/recent-requests.ts';
import type { Store } from '../store/store.ts';
import type { ImportFile, ImportReply } from './import-worker.ts';

/** Largest file that is taken, as it is on disk. */
export const MAX_IMPORT_BYTES = 64 * 2 ** 20;
/** What reading a file may take: a few KiB can unpack to a GiB. */
const MAX_HEAP_MB = 1024;
const MAX_READ_MS = 60_000;
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
  #running = 0;

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
    const known = this.#recent.answerTo(id);
    if (known !== undefined) return { ...known, samples: 0, repeated: true };
    if (this.#running >= MAX_AT_A_TIME)
      throw new ImportBusyError('other files are being imported: try again in a few seconds');
    this.#running++;
    try {
      const result = this.#add(fileName, await this.#read(bytes, options));
      this.#recent.note(id, result);
      await this.#store.commit().catch(({ message }: Error) => {
        throw new ImportUnwrittenError(
          `${fileName} is in memory, and is stored once that works again; until then it is lost if the collector ends: ${message}`,
        );
      });
      return result;
    } finally {
      this.#running--;
    }
  }

  async #read(bytes: Uint8Array, { fileName, endMs, fallbackEndMs }: ImportOptions): Promise<Profile> {
    if (bytes.length > MAX_IMPORT_BYTES)
      throw new ImportError(`${fileName} has ${bytes.length} bytes: at most ${MAX_IMPORT_BYTES} are taken`);
    const placement = {
      endMs,
      fallbackEndMs: fallbackEndMs ?? this.#now(),
      processName: basename(fileName).replace(/\..*$/, '') || 'imported',
    };
    const reply = await readInWorker({ fileName, bytes, placement });
    if ('error' in reply) throw new ImportError(reply.error);
    if (reply.profile.samples.length === 0) throw new ImportError(`${fileName} holds no samples`);
    return reply.profile;
  }

  #add(fileName: string, profile: Profile): ImportResult {
    const { busy } = this.#store;
    if (busy !== undefined) throw new ImportBusyError(busy);
    const { stored, rejected } = this.#store.append(profile);
    return {
      fileName,
      samples: stored,
      rejected: [...rejected].map(([reason, count]) => ({ reason, count })),
      ...rangeOf(profile),
      repeated: false,
    };
  }
}

function rangeOf({ samples, timeUnixNano, durationNano }: Profile): { fromMs: number; toMs: number } {
  let fromMs = Number.POSITIVE_INFINITY;
  let toMs = 0;
  const add = (nanos: bigint): void => {
    const ms = Number(nanos / 1_000_000n);
    if (ms < fromMs) fromMs = ms;
    if (ms >= toMs) toMs = ms + 1;
  };
  for (const { timestamps } of samples) {
    for (const time of timestamps) add(time);
    if (timestamps.length === 0) add(timeUnixNano + durationNano);
  }
  return { fromMs, toMs };
}

/** This file runs from dist/collector/import, and in tests from collector/import. */
const WORKER = new URL(
  import.meta.url.endsWith('.js') ? './import-worker.js' : '../../dist/collector/import/import-worker.js',
  import.meta.url,
);

function readInWorker(file: ImportFile): Promise<ImportReply> {
  const worker = new Worker(WORKER, {
    workerData: file,
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
  });
  return new Promise((resolve) => {
    const fail = (why: string): void => resolve({ error: `${file.fileName} could not be read: ${why}` });
    const timer = setTimeout(() => {
      fail(`it took more than ${MAX_READ_MS / 1000} seconds`);
      void worker.terminate();
    }, MAX_READ_MS);
    worker.once('message', resolve);
    worker.once('error', (error) => fail(error.message));
    worker.once('exit', (code) => {
      clearTimeout(timer);
      fail(`its reader ended with code ${code}`);
    });
  });
}
