/**
 * `make && node dist/test/bench/fleet/main.js [--agents 1000 --rounds 2 --samples 100000000]` (root, and scripts/test-clickhouse.sh
 * before, which fetches the engine): agents that replay recorded requests, into two collectors and one ClickHouse. One collector is
 * killed at half of them. Then what is stored is copied to so many samples, and asked. Prints what docs/scale.md shows. With `--data
 * FOLDER` the data base is kept there, and one that is there is only asked.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type RunningCollector, startCollectorProcess } from '../../support/collector.ts';
import { captureRequests } from '../store-load.ts';
import { Agent, prepare } from './replay.ts';

const { values } = parseArgs({
  options: {
    agents: { type: 'string', default: '1000' },
    rounds: { type: 'string', default: '2' },
    seconds: { type: 'string', default: '15' },
    samples: { type: 'string', default: '100000000' },
    /** Samples of an hour become so many times as many. */
    density: { type: 'string', default: '16' },
    data: { type: 'string' },
  },
});
const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
const folder = process.env['CHDB_FOLDER'] ?? join(cache, 'everyframe/chdb');
if (!existsSync(folder)) throw new Error('no engine: run scripts/test-clickhouse.sh once');

const scratch = mkdtempSync(join(tmpdir(), 'everyframe-fleet-'));
const data = values.data ?? join(scratch, 'engine');
const isKept = existsSync(data);
const TABLES = ['frames', 'nodes', 'series', 'types', 'samples'];
const HOUR_MS = 3_600_000;
/** Of requests that wait in all agents: what one process has room for. */
const MOST_WAITING = 400;
const count = (n: number): string => Math.round(n).toLocaleString('en');
const print = (what: string, figure: string): void => console.log(`| ${what} | ${figure} |`);

function cpuSeconds({ pid }: ChildProcess): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

const engine = spawn(process.execPath, [join(import.meta.dirname, 'engine.js'), folder, data], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
process.on('exit', () => {
  engine.kill('SIGKILL');
  rmSync(scratch, { recursive: true, force: true });
});
const [line] = (await once(engine.stdout, 'data')) as [Buffer];
const url = `${String(line).trim()}/fleet`;

async function ask(query: string): Promise<string[]> {
  const response = await fetch(`${new URL(url).origin}/?database=fleet`, { method: 'POST', body: query });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return text.trim().split('\t');
}

const flags = ['--clickhouse', url, '--max-sender-rate', '10GiB', '--max-memory', '512MiB'];
if (!isKept) {
  await replay();
  await multiply();
}
await timeQueries();
process.exit();

/** Round and round: the next request of each, as long as not too many wait. */
async function replay(): Promise<void> {
  const collectors = [await startCollectorProcess(...flags), await startCollectorProcess(...flags)] as const;
  const requests = prepare(await captureRequests(Number(values.seconds)), Number(values.rounds));
  const places = collectors.map(({ grpc }) => grpc);
  const agents = Array.from(
    { length: Number(values.agents) },
    (_, i) => new Agent(i, i % 2 === 0 ? places : places.toReversed()),
  );
  const sum = (name: keyof ReturnType<Agent['stats']>): number =>
    agents.reduce((all, agent) => all + agent.stats()[name], 0);
  const start = performance.now();
  const before = cpuSeconds(engine) + cpuSeconds(collectors[1].process);
  let killedCpu = 0;
  const half = Math.floor((requests.length * agents.length) / 2);
  let pushed = 0;
  for (const request of requests) {
    for (const agent of agents) {
      agent.push(request);
      if (++pushed === half) {
        killedCpu = cpuSeconds(collectors[0].process);
        await collectors[0].end('SIGKILL');
      }
      if (pushed % 50 === 0) while (sum('queueEntries') > MOST_WAITING) await sleep(20);
    }
  }
  while (sum('queueEntries') > 0) await sleep(50);
  const seconds = (performance.now() - start) / 1000;
  const cpu = cpuSeconds(engine) + cpuSeconds(collectors[1].process) + killedCpu - before;
  const [stored, rows] = await ask('SELECT toUInt64(sum(weight)), count() FROM samples');
  const samples = sum('samplesPushed');
  const bytes = requests.reduce((all, each) => all + each.bytes.length, 0) * agents.length;
  print('agents, requests, samples pushed', `${agents.length}, ${count(pushed)}, ${count(samples)}`);
  print('lost by agents', count(samples - sum('samplesSent')));
  print('stored', `${count(Number(stored))} in ${count(Number(rows))} rows; tries again ${sum('retries')}`);
  print('time, CPU of collectors and engine', `${seconds.toFixed(0)} s, ${cpu.toFixed(0)} s`);
  print('samples a second of one core', count(samples / cpu));
  print('bytes a sample on the wire, not compressed', (bytes / samples).toFixed(1));
  for (const agent of agents) agent.close();
  await collectors[1].end();
  if (sum('samplesSent') !== samples || Number(stored) < samples) throw new Error('samples were lost');
}

/**
 * What was pushed, as samples of a whole hour that is so many times as busy; then each part once more under another number, an hour
 * earlier each time, until there are as many samples as were asked for.
 */
async function multiply(): Promise<void> {
  const stored = async (): Promise<number> =>
    Number((await ask('SELECT toUInt64(sum(weight)) FROM samples'))[0]);
  const [first, density] = [await stored(), Number(values.density)];
  if (density > 1)
    await ask(
      `INSERT INTO samples SELECT * REPLACE (toUInt32((t + ${HOUR_MS / density} * copy) % ${HOUR_MS}) AS t)
      FROM samples ARRAY JOIN range(1, ${density}) AS copy`,
    );
  const hour = await stored();
  const copies = Math.ceil(Number(values.samples) / hour) - 1;
  const parts = (await ask('SELECT DISTINCT toString(part) FROM parts FORMAT TSV'))
    .join('\t')
    .split(/\s+/)
    .join(',');
  // one copy at a time: a query may take a minute
  for (let copy = 1; copy <= copies; copy++)
    for (const table of TABLES)
      await ask(
        `INSERT INTO ${table} SELECT * REPLACE (part + ${copy} AS part, start - toIntervalHour(${copy}) AS start)
        FROM (SELECT * FROM ${table} WHERE part IN (${parts}))`,
      );
  print(
    'copied to',
    `${count(await stored())} samples (${count(first)} of them pushed), ${count(hour)} an hour`,
  );
}

async function timeQueries(): Promise<void> {
  const [samples, parts, newest] = await ask(
    'SELECT toUInt64(sum(events)), uniqExact(part), toUnixTimestamp(max(start)) FROM parts',
  );
  const [bytes] = await ask(
    `SELECT sum(bytes_on_disk) FROM system.parts WHERE database = 'fleet' AND active`,
  );
  print('samples, parts', `${count(Number(samples))}, ${parts}`);
  print('bytes a sample on disk', (Number(bytes) / Number(samples)).toFixed(2));
  const collector = await startCollectorProcess(...flags);
  const hour = `from=${Number(newest) * 1000}&to=${Number(newest) * 1000 + HOUR_MS}`;
  const questions = {
    'hosts, the last hour': `values?label=host&limit=20&${hour}`,
    'top table, the last hour': `top?limit=20&${hour}`,
    'flame graph, the last hour': `tree?${hour}`,
    'timeline, the last hour': `timeline?steps=120&${hour}`,
    'flame graph of one host, the last hour': `tree?where=host%3Dfleet-host-00007&${hour}`,
    'timeline of all time': 'timeline?range=all&steps=120',
    'timeline of one host, all time': 'timeline?range=all&steps=120&where=host%3Dfleet-host-00007',
    'flame graph of one host, all time': 'tree?range=all&where=host%3Dfleet-host-00007',
    'hosts, all time': 'values?label=host&range=all&limit=20',
    'top table, all time': 'top?range=all&limit=20',
    'flame graph, all time': 'tree?range=all',
  };
  for (const [what, path] of Object.entries(questions)) await timeQuestion(collector, what, path);
  print('memory of the collector, at most', `${memoryMiB(collector.process)} MiB`);
  print('memory of the engine, at most', `${memoryMiB(engine)} MiB`);
  await collector.end();
}

/** The first and the second time: what the collector keeps of a part it need not read again. */
async function timeQuestion(collector: RunningCollector, what: string, path: string): Promise<void> {
  const times: string[] = [];
  for (let i = 0; i < 2; i++) {
    const start = performance.now();
    const failed = await collector.query<object>(`/api/v1/${path}&try=${i}`).then(
      () => '',
      (error: Error) => ` (${error.message})`,
    );
    times.push(`${((performance.now() - start) / 1000).toFixed(2)} s${failed}`);
  }
  print(what, times.join(', then '));
}

function memoryMiB({ pid }: ChildProcess): string {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return count(Number(/VmHWM:\s+(\d+)/.exec(status)![1]) / 1024);
}
