/**
 * A file that makes its parser explode costs a worker, never the agent: of every format that is read, one that takes
 * memory, time or stack without end. The process that asks stays as it is, and so does what others ask for.
 */

import { execFileSync, spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { JitFrames } from '../agent/jit/jit-frames.ts';
import { TableBuilder } from '../agent/stack-deltas/table/table-builder.ts';
import type { SymbolAnswer, SymbolRequest } from '../agent/symbolizer/worker/messages.ts';
import { createFileWorkers } from '../agent/workers/file-workers.ts';
import { WorkerClient } from '../agent/workers/worker-client.ts';
import type { WorkerPool } from '../agent/workers/worker-pool.ts';
import { toFileKey, toPid } from '../common/base/brand.ts';
import { AgentProcess } from './support/agent-process.ts';
import { startCollectorProcess } from './support/collector.ts';
import { compile, missingRights } from './support/fixtures.ts';
import {
  deepDies,
  HOSTILE_ADDRESS,
  hostileElves,
  hostileMaps,
  hostilePerfMaps,
} from './support/hostile-files.ts';

const MIB = 2 ** 20;
/** What a worker may take with the agent's default budget, and what it may have before it is seen. */
const WORKER_BYTES = 128 * MIB + 64 * MIB;
/** Of this process meanwhile: messages and what the test itself makes of them. */
const OWN_BYTES = 48 * MIB;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'everyframe-hostile-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('hostile ELF files', () => {
  let pool: WorkerPool;
  let tables: TableBuilder;
  let names: WorkerClient<SymbolRequest[], SymbolAnswer[]>;
  let peak = 0;
  let watch: NodeJS.Timeout;

  beforeAll(() => {
    pool = createFileWorkers();
    tables = new TableBuilder(pool);
    names = new WorkerClient(pool, { kind: 'symbols', maxCpuMs: 3000, maxWaitMs: 60_000 });
    watch = setInterval(() => {
      peak = Math.max(peak, pool.privateBytes);
    }, 20);
  });
  afterAll(async () => {
    clearInterval(watch);
    await Promise.all([tables.close(), names.stop()]);
    await pool.stop();
  });

  const nameOf = async (path: string, address: number): Promise<SymbolAnswer | undefined> => {
    const fd = openSync(path, 'r');
    try {
      const key = toFileKey(path);
      const addresses = Float64Array.of(address);
      const request = { key, view: 0, fileId: path, fd, root: undefined, path, addresses };
      const [answer] = await names.request([request]);
      return answer;
    } finally {
      closeSync(fd);
    }
  };

  it('cost a worker at most, one after the other', async () => {
    const outcomes: string[] = [];
    const before = process.memoryUsage.rss();
    const files = [...hostileElves()].map(([what, bytes], i) => {
      const path = join(folder, String(i));
      writeFileSync(path, bytes);
      return { what, path };
    });
    const own = process.memoryUsage.rss();
    for (const { what, path } of files) {
      const fd = openSync(path, 'r');
      const table = await tables.buildFromFd(fd);
      closeSync(fd);
      const found = await nameOf(path, HOSTILE_ADDRESS).catch((error) => error);
      outcomes.push(`${what}: ${table.kind}, ${found?.kind ?? found?.reason}`);
      rmSync(path);
    }
    console.log(
      `${outcomes.join('\n')}\nworkers: up to ${Math.round(peak / MIB)} MiB, ${pool.stats.failed} failed`,
    );
    expect(peak).toBeLessThan(WORKER_BYTES);
    expect(process.memoryUsage.rss()).toBeLessThan(Math.max(before, own) + OWN_BYTES);
    const honest = await nameOf('/proc/self/exe', 0).catch((error) => error);
    expect(honest).toMatchObject({ kind: 'names' });
  }, 240_000);
});

describe('hostile perf maps', () => {
  const path = `/tmp/perf-${process.pid}.map`;
  /** Field 22 of proc(5), in ticks of 10 ms. */
  const started = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)!.split(' ')[19]!;
  const self = { pid: toPid(process.pid), execId: 1, startBoottimeNs: BigInt(started) * 10_000_000n };
  afterAll(() => rmSync(path, { force: true }));

  it('cost the main thread neither its memory nor long pieces of its time', async () => {
    for (const [what, text] of hostilePerfMaps()) {
      writeFileSync(path, text);
      const before = process.memoryUsage.rss();
      let nowMs = 0;
      const frames = new JitFrames({ nowMs: () => nowMs });
      const delay = monitorEventLoopDelay({ resolution: 10 });
      delay.enable();
      frames.frameOf(self, HOSTILE_ADDRESS);
      // a few report intervals; each reads some of it
      for (let i = 0; i < 4; i++) {
        nowMs += 60_000;
        await frames.symbolizeFrames();
      }
      delay.disable();
      const grown = process.memoryUsage.rss() - before;
      const slowest = delay.percentile(99) / 1e6;
      console.log(
        `${what}: ${Math.round(grown / MIB)} MiB, 99 % of turns within ${Math.round(slowest)} ms; ${JSON.stringify(frames.stats)}`,
      );
      await frames.stop();
      expect(grown).toBeLessThan(OWN_BYTES);
      expect(slowest).toBeLessThan(500);
    }
  }, 120_000);
});

describe.skipIf(missingRights)('the agent beside hostile programs', () => {
  /** Runs while its stack is sampled; its function is named after the file. */
  const script = (name: string): string =>
    `function spin_${name}(end){let x=0;while(Date.now()<end)for(let i=0;i<1e6;i++)x+=i;return x}\n` +
    `spin_${name}(Date.now()+90_000);\n//# sourceMappingURL=${name}.js.map\n`;

  it('stays the same process, within its memory', async () => {
    for (const [name, map] of hostileMaps()) {
      writeFileSync(join(folder, `${name}.js`), script(name));
      writeFileSync(join(folder, `${name}.js.map`), map);
    }
    const { info, abbrev } = deepDies(8 * MIB);
    for (const [name, bytes] of Object.entries({ info, abbrev })) writeFileSync(join(folder, name), bytes);
    const program = compile('hostile-dwarf', 'gcc', ['-O1', '-Wl,--build-id=none'], 'deep.c');
    const added = ['info', 'abbrev'].flatMap((name) => [
      '--add-section',
      `.debug_${name}=${join(folder, name)}`,
    ]);
    execFileSync('objcopy', [...added, program]);
    const collector = await startCollectorProcess();
    const agent = new AgentProcess(
      collector.grpc,
      ...['--symbol-cache', 'off', '--reporter-interval', '1s', '--samples-per-second', '97'],
    );
    let most = 0;
    const watch = setInterval(() => {
      if (!agent.hasEnded) most = Math.max(most, agent.footprint().residentBytes);
    }, 50);
    try {
      await vi.waitFor(() => expect(agent.log).toContain('sampl'), 30_000);
      const runs = [...hostileMaps().keys()].map((name) => spawn('node', [join(folder, `${name}.js`)]));
      runs.push(spawn(program, [], { timeout: 90_000 }));
      try {
        // they run until one was read, and the machine may be busy
        await vi.waitFor(
          () => expect(agent.log).toMatch(/\.js.* could not be read: .*left alone for/),
          80_000,
        );
      } finally {
        for (const run of runs) run.kill('SIGKILL');
      }
      expect(agent.hasEnded).toBe(false);
      clearInterval(watch);
      const counters = await agent.stop();
      console.log(`agent: up to ${Math.round(most / MIB)} MiB;`, pick(counters, /^(workers|sourceMaps)\./));
      expect(most).toBeLessThan(256 * MIB);
      expect(counters['workers.penalised']).toBeGreaterThan(0);
    } finally {
      clearInterval(watch);
      await agent.kill();
      await collector.end();
    }
  }, 120_000);
});

const pick = (counters: Record<string, number>, which: RegExp): string =>
  JSON.stringify(Object.fromEntries(Object.entries(counters).filter(([name]) => which.test(name))));
