/**
 * Many addresses of one file, named by several threads: each takes a run of neighbours, so that none reads a
 * compilation unit that another one reads.
 */
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { packageRoot } from '../agent/tracer/package-root.ts';

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

/** What `show symbol` prints for each address, in their order. Throws what a thread throws. */
export async function nameInThreads(
  path: string,
  addresses: readonly number[],
  { threads, json }: { threads: number; json: boolean },
): Promise<string[]> {
  const order = Uint32Array.from(addresses, (_, i) => i).sort((a, b) => addresses[a]! - addresses[b]!);
  const size = Math.ceil(order.length / threads);
  const texts: string[] = new Array(addresses.length);
  await Promise.all(
    Array.from({ length: threads }, async (_, thread) => {
      const share = order.subarray(thread * size, (thread + 1) * size);
      const named = await nameShare({
        path,
        addresses: Float64Array.from(share, (i) => addresses[i]!),
        json,
      });
      for (const [at, i] of share.entries()) texts[i] = named[at]!;
    }),
  );
  return texts;
}

async function nameShare(share: NamingShare): Promise<string[]> {
  const url = pathToFileURL(join(packageRoot(), 'dist/cli/name-worker.js'));
  const worker = new Worker(url, {
    workerData: share,
    transferList: [share.addresses.buffer as ArrayBuffer],
  });
  // rejects at its error
  const [texts] = (await once(worker, 'message')) as [string[]];
  return texts;
}
