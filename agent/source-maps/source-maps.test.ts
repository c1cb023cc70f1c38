import { spawn } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Pid, toPid } from '../../common/base/brand.ts';
import { emptyMapping } from '../../common/profile/model/profile.ts';
import { RootViews } from '../processes/root-views.ts';
import type { Frame } from '../traces/frame.ts';
import { createFileWorkers } from '../workers/file-workers.ts';
import { WorkerPool } from '../workers/worker-pool.ts';
import { SourceMaps } from './source-maps.ts';

const workers = createFileWorkers();
let maps: SourceMaps;
beforeEach(() => {
  maps = new SourceMaps(workers, new RootViews());
});
function frameIn(file: string): Frame {
  const line = { function: 'f', systemName: '', file, line: 1, column: 1 };
  return { mapping: emptyMapping(), address: 0, frameType: 'v8js', lines: [line], isChanged: true };
}

function add(to: SourceMaps, pid: Pid, frame: Frame): void {
  const lines = frame.lines.map(({ function: name, ...line }) => ({ ...line, name, startLine: 0 }));
  to.add(pid, frame, lines);
}

afterEach(() => maps.stop());
afterAll(() => workers.stop());

test('that a script has no map is asked once, and again once another program runs under the PID', async () => {
  const pid = toPid(process.pid);
  const ask = (): Promise<void> => {
    add(maps, pid, frameIn('/nonexistent/a.js'));
    return maps.symbolizeFrames();
  };
  await ask();
  await ask();
  expect(maps.stats).toMatchObject({ files: 1, none: 1 });
  maps.forgetProcess(pid);
  await ask();
  expect(maps.stats).toMatchObject({ files: 2, none: 2 });
});

test('a frame that was in a profile already is looked up again once its source is known', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'source-maps-'));
  const script = join(directory, 'a.js');
  const map = { version: 3, sources: ['a.ts'], names: [], mappings: 'AAKA' };
  const inline = Buffer.from(JSON.stringify(map)).toString('base64');
  writeFileSync(script, `f();\n//# sourceMappingURL=data:application/json;base64,${inline}\n`);
  // what is younger than its process is not what that runs
  const child = spawn('sleep', ['60']);
  const frame = frameIn(script);
  add(maps, toPid(child.pid!), frame);
  frame.isChanged = false;
  await maps.symbolizeFrames();
  child.kill();
  expect(frame).toMatchObject({ isChanged: true, lines: [{ file: join(directory, 'a.ts'), line: 6 }] });
});

test('scripts that are asked for together are one request; one that takes the worker down costs only itself', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'source-maps-'));
  const bomb = join(directory, 'bomb.js');
  const code = `
    process.on('message', ({ id, request, data, end }) => {
      if (end) process.exit(0);
      if (data) return;
      if (request.some(({ file }) => file.endsWith('bomb.js'))) process.exit(1);
      const answers = request.map(() => ({ kind: request.length > 1 ? 'none' : 'gone' }));
      process.send({ id, answer: answers.slice(0, 2) });
    });`;
  const data = { cache: undefined, scratch: undefined, detail: 'full', maxMemory: 0, version: '' } as const;
  const pool = new WorkerPool({ command: [process.execPath, '-e', code], data, maxBytes: 256 << 20 });
  const fragile = new SourceMaps(pool, new RootViews());
  const pid = toPid(process.pid);
  for (const name of ['/a.js', '/b.js']) add(fragile, pid, frameIn(name));
  await fragile.symbolizeFrames();
  expect(fragile.stats).toMatchObject({ files: 2, none: 2, workerFailed: 0 });
  expect(pool.stats.started).toBe(1);
  for (const name of ['/c.js', bomb, '/d.js']) add(fragile, pid, frameIn(name));
  await vi.waitFor(async () => {
    await fragile.symbolizeFrames();
    expect(fragile.stats).toMatchObject({ files: 5, none: 2, gone: 2, workerFailed: 1 });
  }, 10_000);
  // a worker that has no time for all of them answers the first
  for (const name of ['/e.js', '/f.js', '/g.js']) add(fragile, pid, frameIn(name));
  await fragile.symbolizeFrames();
  expect(fragile.stats).toMatchObject({ files: 8, none: 4, gone: 3, workerFailed: 1 });
  await fragile.stop();
  await pool.stop();
});
