/**
 * A worker: reads foreign files in a process of its own, so that a hostile one costs this process and not the agent.
 * From before the first request on it can open nothing, start nothing and reach no other process.
 */
import { closeSync } from 'node:fs';
import { collectDeadBuffers } from '../base/collect-garbage.ts';
import { type Native, useNative } from '../base/native.ts';
import { setProductVersion } from '../base/product-version.ts';
import { useFileOpener } from '../files/file-opener.ts';
import { putDescriptors } from '../workers/descriptors.ts';
import type {
  WorkerBegin,
  WorkerData,
  WorkerEnd,
  WorkerReply,
  WorkerRequest,
  WorkHandler,
  WorkKind,
} from '../workers/protocol.ts';
import { openerClient } from './opener-client.ts';

/** As confine/worker-launcher.cc has placed them. */
const DESCRIPTORS_FD = 4;
const OPENER_FD = 5;
const ADDON_FD = 8;

/** Each is loaded with its first request. */
const loaders: Record<WorkKind, (data: WorkerData) => Promise<WorkHandler>> = {
  table: async (data) => (await import('../stack-deltas/table/table-requests.ts')).createTableHandler(data),
  symbols: async (data) =>
    (await import('../symbolizer/worker/symbol-requests.ts')).createSymbolHandler(data),
  'source-map': async () => (await import('../source-maps/source-map-requests.ts')).createSourceMapHandler(),
  pdb: async () => (await import('../pdb/pdb-requests.ts')).createPdbHandler(),
  probes: async () => (await import('../events/find-probes.ts')).createProbeHandler(),
  'thread-local': async () =>
    (await import('../thread-contexts/variable-requests.ts')).createVariableHandler(),
  'own-code': async () => (await import('./own-code.ts')).createCodeHandler(),
};
/** Since the last answer; most work comes in bursts. */
const IDLE_MS = 2000;
/** Between two times: a worker that has something to do every few seconds keeps what that takes. */
const GIVE_BACK_EVERY_MS = 10_000;
const handlers = new Map<WorkKind, WorkHandler>();
const native = loadAddon();
let data: WorkerData;

function loadAddon(): Native {
  const module = { exports: {} };
  process.dlopen(module, `/proc/self/fd/${ADDON_FD}`);
  closeSync(ADDON_FD);
  return module.exports as Native;
}

function begin({ data: given }: WorkerBegin): void {
  data = given;
  setProductVersion(data.version);
  useNative(native);
  useFileOpener(openerClient(native, OPENER_FD, data.cache));
  // what starting needed and nothing since; from then on it can't know what is mapped
  native.releaseCode();
  native.confine();
}

let idle: NodeJS.Timeout | undefined;
let gaveBackAtMs = Number.NEGATIVE_INFINITY;

/** What a burst of work has left, as the code that it ran: idle workers live on for up to a minute and a half. */
function giveBackWhenIdle(): void {
  idle = idle?.refresh() ?? setTimeout(giveBack, IDLE_MS).unref();
}

function giveBack(): void {
  if (performance.now() - gaveBackAtMs < GIVE_BACK_EVERY_MS) return;
  gaveBackAtMs = performance.now();
  native.releaseFreeMemory();
  native.releaseCode();
}

async function handlerOf(kind: WorkKind): Promise<WorkHandler> {
  let handler = handlers.get(kind);
  if (!handler) {
    handler = await loaders[kind](data);
    handlers.set(kind, handler);
  }
  return handler;
}

const reply = (message: WorkerReply): void => void process.send?.(message);

function end(): void {
  try {
    for (const handler of handlers.values()) handler.end?.();
  } finally {
    process.exit(0);
  }
}

async function answer({ id, kind, request, descriptors }: WorkerRequest): Promise<void> {
  const fds = descriptors > 0 ? native.receiveDescriptors(DESCRIPTORS_FD, descriptors) : [];
  try {
    const handler = await handlerOf(kind);
    const work = handler.handle(putDescriptors(request, fds) as never, (note) => reply({ id, note }));
    reply({ id, answer: await work });
  } catch (error) {
    reply({ id, error: (error as Error).message });
  } finally {
    for (const fd of fds) closeSync(fd);
  }
  collectDeadBuffers();
  giveBackWhenIdle();
}

process.on('disconnect', () => process.exit(0));
process.on('message', (message: WorkerBegin | WorkerRequest | WorkerEnd) => {
  if ('data' in message) begin(message);
  else if ('end' in message) end();
  else void answer(message);
});
