/**
 * Many addresses of one file, named by several threads: each takes a run of neighbours, so that none reads a
 * compilation unit that another one reads.
 */
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { packageRoot } from '../../agent/base/package-root.ts';
import type { AnswerParts } from './answer-text.ts';

/** What a thread is given. */
export interface NamingShare {
  path: string;
  /** In ascending order. */
  addresses: Float64Array;
  json: boolean;
}

/** Addresses that are worth a thread, which takes some 100 ms to start and opens the file anew. */
const LEAST_SHARE = 10_000;
const MAX_THREADS = 8;

/** 1: not worth it. */
export const threadsFor = (addresses: number): number =>
  Math.max(1, Math.min(availableParallelism(), MAX_THREADS, Math.floor(addresses / LEAST_SHARE)));

/** What `show symbol` prints for ascending addresses: of each thread the answers to its share. Throws what one throws. */
export async function nameInThreads(
  path: string,
  ascending: Float64Array,
  { threads, json }: { threads: number; json: boolean },
): Promise<AnswerParts[]> {
  const size = Math.ceil(ascending.length / threads);
  return Promise.all(
    Array.from({ length: threads }, (_, thread) =>
      nameShare({ path, addresses: ascending.slice(thread * size, (thread + 1) * size), json }),
    ),
  );
}

async function nameShare(share: NamingShare): Promise<AnswerParts> {
  const url = pathToFileURL(join(packageRoot(), 'dist/cli/symbols/name-worker.js'));
  const worker = new Worker(url, {
    workerData: share,
    transferList: [share.addresses.buffer as ArrayBuffer],
  });
  // rejects at its error
  const [parts] = (await once(worker, 'message')) as [AnswerParts];
  return parts;
}
