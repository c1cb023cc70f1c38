/** The source map worker thread: reads and decodes what foreign programs say of their scripts. */
import { parentPort } from 'node:worker_threads';
import { collectDeadBuffers } from '../executables/collect-garbage.ts';
import { threadId } from '../executables/thread-time.ts';
import type { WorkerReply, WorkerThread } from '../executables/worker-client.ts';
import { type SourceMapAnswer, type SourceMapRequest, SourceMapService } from './source-map-service.ts';

const service = new SourceMapService();

parentPort?.postMessage({ thread: threadId() } satisfies WorkerThread);
parentPort?.on('message', ({ id, request }: { id: number; request: SourceMapRequest }) => {
  let reply: WorkerReply<SourceMapAnswer>;
  try {
    reply = { id, answer: service.resolve(request) };
  } catch (error) {
    reply = { id, error: (error as Error).message };
  }
  parentPort?.postMessage(reply);
  collectDeadBuffers();
});
