/**
 * `make && node dist/test/bench/store.js [--seconds 180 --ingest 600000]`: what the store costs with what the product's own agent
 * sent of this machine, varied as an hour of it would be. Prints the table of docs/store.md. Needs root and a quiet machine; takes
 * minutes.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { DuckDBInstance } from '@duckdb/node-api';
import { Receiver } from '../../collector/ingest/receiver.ts';
import { DuckDbStore } from '../../collector/store/duckdb/duckdb-store.ts';
import { PART_TABLES } from '../../collector/store/duckdb/duckdb-writer.ts';
import { Pusher } from '../browser/push.ts';
import { type RunningCollector, startCollectorProcess } from '../support/collector.ts';
import { describeMachine } from './measure.ts';
import { captureRequests, Repeater } from './store-load.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '180' },
    ingest: { type: 'string', default: '600000' },
    /** Kept, and used again as it is; without: a new one for a while. */
    directory: { type: 'string' },
  },
});
const IN_FLIGHT = 8;
const HOUR_MS = 3_600_000;
const TICKS = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
const directory = values.directory ?? mkdtempSync(join(tmpdir(), 'everyframe-bench-'));
const file = join(directory, 'everyframe.duckdb');
if (values.directory === undefined)
  process.on('exit', () => rmSync(directory, { recursive: true, force: true }));

const rows: [what: string, value: string][] = [];
const note = (what: string, value: string): void => {
  rows.push([what, value]);
  console.error(`${what}: ${value}`);
};
const count = (n: number): string => n.toLocaleString('en-US', { maximumFractionDigits: 0 });

const requests = await captureRequests(Number(values.seconds));
const repeater = new Repeater(requests);
const sizes = requests.map(({ length }) => length);
note(
  'requests',
  `${requests.length} of ${count(repeater.samples)} samples in all, ${count(sizes.reduce((a, b) => a + b, 0) / requests.length)} bytes each`,
);
if (!existsSync(file)) {
  await ingestInProcess();
  await ingest();
}
for (const target of [1e6, 1e7]) {
  await fill(target);
  await measureQueries(target);
}
console.log(`${describeMachine()}.\n\n| what | measured |\n|---|---|`);
for (const [what, value] of rows) console.log(`| ${what} | ${value} |`);

function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}

function memoryMiB(pid: number, name: 'VmHWM' | 'VmRSS'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)![1]) / 1024;
}

async function ingest(): Promise<void> {
  const collector = await startCollectorProcess('--data', directory, '--max-age', '365d');
  const pid = collector.process.pid!;
  const pusher = new Pusher(collector.grpc);
  const rounds = Math.ceil(Number(values.ingest) / repeater.samples);
  const bytes = repeatedRequests(rounds);
  const warm = bytes.splice(0, Math.floor(bytes.length / 5));
  await send(pusher, warm);
  const before = (await collector.query<{ samples: number }>('/api/v1/top?range=all&q=1')).samples;
  const [cpu, start] = [cpuSeconds(pid), performance.now()];
  await send(pusher, bytes);
  const seconds = (performance.now() - start) / 1000;
  const cpuTime = cpuSeconds(pid) - cpu;
  const stored = (await collector.query<{ samples: number }>('/api/v1/top?range=all&q=2')).samples - before;
  note('ingested', `${count(stored)} samples in ${seconds.toFixed(1)} s, ${cpuTime.toFixed(1)} s of CPU`);
  note('ingest, samples a second of one core', count(stored / cpuTime));
  note('memory while ingesting, at most', `${count(memoryMiB(pid, 'VmHWM'))} MiB`);
  pusher.close();
  await collector.end();
}

/** Decoding to disk, as the collector does it, without gRPC; CPU time is that of all threads. */
async function ingestInProcess(): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), 'everyframe-bench-'));
  const limits = { maxBytes: 1e10, maxAgeMs: 365 * 24 * HOUR_MS };
  const store = await DuckDbStore.open({ directory: scratch, ...limits, now: Date.now, logger: console });
  const receiver = new Receiver(store, Date.now, console);
  const bytes = repeatedRequests(Math.ceil(Number(values.ingest) / repeater.samples));
  const take = (all: Buffer[]) => inParallel(all, (one) => receiver.receiveProtobuf(one, 'bench'));
  await take(bytes.splice(0, Math.floor(bytes.length / 5)));
  const [cpu, start, before] = [process.cpuUsage(), performance.now(), receiver.stats.storedSamples];
  await take(bytes);
  const { user, system } = process.cpuUsage(cpu);
  const [cpuTime, seconds] = [(user + system) / 1e6, (performance.now() - start) / 1000];
  const stored = receiver.stats.storedSamples - before;
  note(
    'ingest without gRPC, samples a second of one core',
    `${count(stored / cpuTime)} (${count(stored)} in ${cpuTime.toFixed(1)} s of CPU, ${seconds.toFixed(1)} s on the clock)`,
  );
  await store.close();
  rmSync(scratch, { recursive: true });
}

/** All in the hour before the last one, so that no part is half full. */
function repeatedRequests(rounds: number): Buffer[] {
  const firstNanos = BigInt((Math.floor(Date.now() / HOUR_MS) - 1) * HOUR_MS) * 1_000_000n;
  const stepNanos = (BigInt(HOUR_MS - 60_000) * 1_000_000n) / BigInt(rounds);
  return Array.from({ length: rounds }, (_, round) => [
    ...repeater.round(round, firstNanos + BigInt(round) * stepNanos - repeater.firstNanos),
  ]).flat();
}

function send(pusher: Pusher, all: readonly Buffer[]): Promise<void> {
  return inParallel(all, async (one) => {
    const { errorMessage } = await pusher.push(one);
    if (errorMessage !== '') throw new Error(errorMessage);
  });
}

async function inParallel(all: readonly Buffer[], run: (one: Buffer) => Promise<unknown>): Promise<void> {
  let next = 0;
  const one = async (): Promise<void> => {
    for (let at = next++; at < all.length; at = next++) await run(all[at]!);
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, one));
}

/** Copies the parts of the recorded hour to earlier hours until the store has so many samples. */
async function fill(target: number): Promise<void> {
  await sumParts();
  const instance = await DuckDBInstance.create(file);
  const connection = await instance.connect();
  const read = async (sql: string): Promise<number[][]> =>
    (await connection.runAndReadAll(sql)).getRows().map((row) => row.map(Number));
  const parts = await read(
    'SELECT id, start_ms, min_ms, max_ms, events FROM parts WHERE start_ms = (SELECT max(start_ms) FROM parts)',
  );
  let [[have = 0, id = 0, hours = 0] = []] = await read(
    'SELECT sum(events), max(id), count(DISTINCT start_ms) FROM parts',
  );
  for (; have < target; hours++) {
    const agoMs = hours * HOUR_MS;
    for (const [from, startMs = 0, minMs = 0, maxMs = 0, events = 0] of parts) {
      id++;
      for (const table of [...PART_TABLES, 'tree', 'events'])
        await connection.run(`CREATE TABLE ${table}_${id} AS SELECT * FROM ${table}_${from}`);
      const times = [startMs - agoMs, events, minMs - agoMs, maxMs - agoMs];
      await connection.run(`INSERT INTO parts VALUES (${[id, ...times, true].join()});
        INSERT INTO trees SELECT ${id}, nodes, true FROM trees WHERE part = ${from}`);
      have += events;
    }
  }
  await connection.run('CHECKPOINT');
  const [[used = 0] = []] = await read(
    'SELECT (block_size * used_blocks)::DOUBLE FROM pragma_database_size()',
  );
  note(`bytes a sample, ${count(have)} samples`, (used / have).toFixed(1));
  connection.closeSync();
  instance.closeSync();
}

/** Of the recorded hour, as the collector does it by the way. */
async function sumParts(): Promise<void> {
  const limits = { maxBytes: 1e11, maxAgeMs: 365 * 24 * HOUR_MS };
  const store = await DuckDbStore.open({ directory, ...limits, now: Date.now, logger: console });
  const [parts, cpu] = [store.partsToSum, process.cpuUsage()];
  for (await store.flush(); store.partsToSum > 0; await store.flush()) await sleep(10);
  const { user, system } = process.cpuUsage(cpu);
  if (parts > 0) note(`summing ${parts} parts`, `${count((user + system) / 1e3)} ms of CPU`);
  await store.close();
}

async function measureQueries(target: number): Promise<void> {
  const collector = await startCollectorProcess('--data', directory, '--max-age', '365d');
  const pid = collector.process.pid!;
  const label = `${target / 1e6}M samples`;
  for (const [what, path] of [
    ['flame graph', 'tree?range=all'],
    ['flame graph of one process', 'tree?range=all&where=process%3Dnode'],
    ['timeline by process', 'timeline?range=all&by=process&steps=120'],
    ['timeline', 'timeline?range=all&steps=120'],
    ['top functions', 'top?range=all'],
    ['values of a label', 'values?range=all&label=process'],
  ] as const) {
    note(`${what}, ${label}`, await timeQuery(collector, path));
  }
  note(`memory, ${label}, at most`, `${count(memoryMiB(pid, 'VmHWM'))} MiB`);
  note(`file, ${label}`, `${count(statSync(file).size / 2 ** 20)} MiB`);
  await collector.end();
}

/** The first time, and the median of the next five. */
async function timeQuery(collector: RunningCollector, path: string): Promise<string> {
  const times: number[] = [];
  const cpu = cpuSeconds(collector.process.pid!);
  for (let i = 0; i < 6; i++) {
    const start = performance.now();
    await collector.query(`/api/v1/${path}&question=${i}`);
    times.push(performance.now() - start);
  }
  const again = times.slice(1).sort((a, b) => a - b);
  const cpuMs = ((cpuSeconds(collector.process.pid!) - cpu) * 1000) / times.length;
  return `${count(again[2]!)} ms (first ${count(times[0]!)} ms, ${count(cpuMs)} ms of CPU each)`;
}
