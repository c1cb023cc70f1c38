/**
 * write-worker-code OUT: has a worker do some of each kind of work, and writes the code that V8 has made of it meanwhile. Workers
 * take it when they start (agent/worker-main/worker-start.ts): compiling all that anew took half of the CPU time of a start.
 */

import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packageRoot } from '../agent/base/package-root.ts';
import type { SourceMapAnswer, SourceMapRequest } from '../agent/source-maps/source-map-service.ts';
import { TableBuilder } from '../agent/stack-deltas/table/table-builder.ts';
import type { SymbolAnswer, SymbolRequest } from '../agent/symbolizer/worker/messages.ts';
import type { OwnCode } from '../agent/worker-main/own-code.ts';
import { createFileWorkers } from '../agent/workers/file-workers.ts';
import type { WorkKind } from '../agent/workers/protocol.ts';
import { WorkerClient } from '../agent/workers/worker-client.ts';

const LIMITS = { maxCpuMs: 60_000, maxWaitMs: 120_000 };
/** Of the Makefile: C++ with debug information, and a script with its map. */
const EXAMPLE = join(packageRoot(), 'build/show/example');
const SCRIPT = join(packageRoot(), 'build/show/symbol-bundle.cjs');
/** The product's own, without debug information. */
const ADDON = join(packageRoot(), 'build/everyframe.node');
const ADDRESSES = Array.from({ length: 64 }, (_, i) => 0x1000 + i * 0x40);

const out = process.argv[2];
if (out === undefined) throw new Error('usage: write-worker-code OUT');
const cache = mkdtempSync(join(tmpdir(), 'everyframe-code-'));
// one request at a time, so that one worker has them all
const workers = createFileWorkers({ cache });
const client = <Request, Answer>(kind: WorkKind): WorkerClient<Request, Answer> =>
  new WorkerClient(workers, { kind, ...LIMITS });

const tables = new TableBuilder(workers);
const names = client<SymbolRequest[], SymbolAnswer[]>('symbols');
for (const path of [ADDON, EXAMPLE]) {
  const fd = openSync(path, 'r');
  await tables.buildFromFd(fd, { isOwn: true, path });
  const addresses = Float64Array.from(ADDRESSES);
  await names.request([{ key: path, view: 0, fileId: path, fd, root: 'own', path, addresses }]);
  closeSync(fd);
}
const places = ADDRESSES.map((line) => ({ name: '', line, column: 1, startLine: line, startColumn: 1 }));
await client<SourceMapRequest[], SourceMapAnswer[]>('source-map').request([
  { pid: process.pid, execution: 1, file: SCRIPT, places },
]);
writeFileSync(out, (await client<undefined, OwnCode>('own-code').request(undefined)).bytes);
await workers.stop();
rmSync(cache, { recursive: true });
