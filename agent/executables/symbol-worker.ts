/** The symbol worker thread: reads symbol tables of foreign files, away from the main loop and its memory. */
import { parentPort, workerData } from 'node:worker_threads';
import { DEFAULT_LIMITS } from '../../common/symbols/dwarf/dwarf-source.ts';
import { AnswerCache } from '../symbols/answer-cache.ts';
import { findScratchRoom } from '../symbols/scratch-file.ts';
import { collectDeadBuffers } from './collect-garbage.ts';
import {
  type SymbolAnswer,
  type SymbolRequest,
  SymbolService,
  type SymbolWorkerData,
} from './symbol-service.ts';
import { threadId } from './thread-time.ts';
import type { WorkerReply, WorkerThread } from './worker-client.ts';

const { cache, detail, maxMemory } = workerData as SymbolWorkerData;
/** A section is held once as it stands in the file and once decompressed, beside all the rest of the agent. */
const DECOMPRESSED_SHARE = 1 / 4;

const service = new SymbolService(detail, {
  decompressedBytes: Math.min(DEFAULT_LIMITS.decompressedBytes, maxMemory * DECOMPRESSED_SHARE),
  cache: cache === undefined ? undefined : new AnswerCache(cache),
  room: findScratchRoom([cache]),
});

parentPort?.postMessage({ thread: threadId() } satisfies WorkerThread);
parentPort?.on('message', async ({ id, request }: { id: number; request: SymbolRequest }) => {
  let reply: WorkerReply<SymbolAnswer>;
  try {
    reply = { id, answer: await service.resolve(request) };
  } catch (error) {
    reply = { id, error: (error as Error).message };
  }
  parentPort?.postMessage(reply);
  collectDeadBuffers();
});
