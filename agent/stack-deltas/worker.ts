/** The worker thread: parses foreign files, so that a hostile one costs this thread and not the agent. */
import { parentPort } from 'node:worker_threads';
import { bufferSource } from '../../common/elf/source.ts';
import { collectDeadBuffers } from '../executables/collect-garbage.ts';
import { type BuildResult, buildTable } from './build-table.ts';
import { fdSource } from './fd-source.ts';

export interface WorkerRequest {
  id: number;
  fd?: number;
  bytes?: Uint8Array;
}

export interface WorkerReply {
  id: number;
  result: BuildResult | { kind: 'crashed'; reason: string };
}

parentPort?.on('message', ({ id, fd, bytes }: WorkerRequest) => {
  let result: WorkerReply['result'];
  try {
    result = buildTable(fd === undefined ? bufferSource(bytes ?? new Uint8Array(0)) : fdSource(fd));
  } catch (error) {
    result = { kind: 'crashed', reason: (error as Error).message };
  }
  const image = result.kind === 'built' ? result.executable.table?.image : undefined;
  parentPort?.postMessage({ id, result } satisfies WorkerReply, image ? [image.buffer as ArrayBuffer] : []);
  collectDeadBuffers();
});
