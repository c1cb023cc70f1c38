/** A worker thread: reads foreign files, so that a hostile one costs this thread and not the agent. */
import { parentPort, workerData } from 'node:worker_threads';
import { collectDeadBuffers } from './collect-garbage.ts';
import type {
  WorkerData,
  WorkerEnd,
  WorkerReply,
  WorkerRequest,
  WorkerSelf,
  WorkHandler,
  WorkKind,
} from './protocol.ts';
import { threadId } from './thread-time.ts';

const data = workerData as WorkerData;
/** Each is loaded with its first request. */
const loaders: Record<WorkKind, () => Promise<WorkHandler>> = {
  table: async () => (await import('../stack-deltas/table-requests.ts')).createTableHandler(data),
  symbols: async () => (await import('../executables/symbol-requests.ts')).createSymbolHandler(data),
  'source-map': async () => (await import('../source-maps/source-map-requests.ts')).createSourceMapHandler(),
};
const handlers = new Map<WorkKind, WorkHandler>();

async function handlerOf(kind: WorkKind): Promise<WorkHandler> {
  let handler = handlers.get(kind);
  if (!handler) {
    handler = await loaders[kind]();
    handlers.set(kind, handler);
  }
  return handler;
}

const reply = (message: WorkerReply, transfer: readonly ArrayBuffer[] = []): void =>
  parentPort?.postMessage(message, transfer);

function end(): void {
  try {
    for (const handler of handlers.values()) handler.end?.();
  } finally {
    // of this thread alone
    process.exit(0);
  }
}

parentPort?.postMessage({ thread: threadId() } satisfies WorkerSelf);
parentPort?.on('message', async (message: WorkerRequest | WorkerEnd) => {
  if ('end' in message) return end();
  const { id, kind, request } = message;
  try {
    const handler = await handlerOf(kind);
    const answer = await handler.handle(request as never, (note) => reply({ id, note }));
    reply({ id, answer }, handler.transfer?.(answer as never));
  } catch (error) {
    reply({ id, error: (error as Error).message });
  }
  collectDeadBuffers();
});
