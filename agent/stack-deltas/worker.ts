/** The worker thread: parses foreign files, so that a hostile one costs this thread and not the agent. */
import { parentPort, workerData } from 'node:worker_threads';
import { bufferSource } from '../../common/elf/source.ts';
import { collectDeadBuffers } from '../executables/collect-garbage.ts';
import { threadId } from '../executables/thread-time.ts';
import type { WorkerReply, WorkerThread } from '../executables/worker-client.ts';
import type { DetectedRuntime } from '../interpreters/contract.ts';
import { buildFromFile, type FilePlace, type FileResult } from './build-from-file.ts';
import { buildTable } from './build-table.ts';
import { TableCache } from './table-cache.ts';

export interface TableRequest {
  fd?: number;
  /** Of the file at `fd`. */
  place?: FilePlace;
  bytes?: Uint8Array;
}

export interface TableWorkerData {
  /** Directory where tables are kept for later runs. */
  cache: string | undefined;
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

function build(
  { fd, place, bytes }: TableRequest,
  onRuntime: (runtime: DetectedRuntime) => void,
): FileResult {
  if (fd !== undefined) return buildFromFile(fd, { place, cache, onRuntime });
  return {
    result: buildTable(bufferSource(bytes ?? new Uint8Array(0))),
    cache: { kind: 'unused', failed: false },
  };
}

parentPort?.postMessage({ thread: threadId() } satisfies WorkerThread);
parentPort?.on('message', ({ id, request }: { id: number; request: TableRequest }) => {
  let reply: WorkerReply<FileResult, DetectedRuntime>;
  let image: Uint8Array | undefined;
  try {
    const answer = build(request, (note) => parentPort?.postMessage({ id, note } satisfies typeof reply));
    reply = { id, answer };
    const { result } = answer;
    if (result.kind === 'built') image = result.executable.table?.image;
  } catch (error) {
    reply = { id, error: (error as Error).message };
  }
  parentPort?.postMessage(reply, image ? [image.buffer as ArrayBuffer] : []);
  collectDeadBuffers();
});
