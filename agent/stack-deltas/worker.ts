/** The worker thread: parses foreign files, so that a hostile one costs this thread and not the agent. */
import { parentPort, workerData } from 'node:worker_threads';
import { bufferSource } from '../../common/elf/source.ts';
import { collectDeadBuffers } from '../executables/collect-garbage.ts';
import { buildFromFile, type CacheUse, type FilePlace, type FileResult } from './build-from-file.ts';
import { type BuildResult, buildTable } from './build-table.ts';
import { TableCache } from './table-cache.ts';

export interface WorkerRequest {
  id: number;
  fd?: number;
  /** Of the file at `fd`. */
  place?: FilePlace;
  bytes?: Uint8Array;
}

export interface TableWorkerData {
  /** Directory where tables are kept for later runs. */
  cache: string | undefined;
}

export interface WorkerReply {
  id: number;
  result: BuildResult | { kind: 'crashed'; reason: string };
  cache: CacheUse;
}

const { cache: directory } = workerData as TableWorkerData;
const cache = directory === undefined ? undefined : openCache(directory);

/** Refused or full: tables are made as without it. */
function openCache(path: string): TableCache | undefined {
  try {
    return new TableCache(path);
  } catch {
    return undefined;
  }
}

function build({ fd, place, bytes }: WorkerRequest): FileResult {
  if (fd !== undefined) return buildFromFile(fd, place, cache);
  return {
    result: buildTable(bufferSource(bytes ?? new Uint8Array(0))),
    cache: { kind: 'unused', failed: false },
  };
}

parentPort?.on('message', (request: WorkerRequest) => {
  let reply: Omit<WorkerReply, 'id'>;
  try {
    reply = build(request);
  } catch (error) {
    const reason = (error as Error).message;
    reply = { result: { kind: 'crashed', reason }, cache: { kind: 'unused', failed: false } };
  }
  const { result } = reply;
  const image = result.kind === 'built' ? result.executable.table?.image : undefined;
  parentPort?.postMessage(
    { id: request.id, ...reply } satisfies WorkerReply,
    image ? [image.buffer as ArrayBuffer] : [],
  );
  collectDeadBuffers();
});
