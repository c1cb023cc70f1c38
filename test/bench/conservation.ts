/**
 * `make && node dist/test/bench/conservation.js [MINUTES]` (root): is each sample that was taken stored, or counted as lost? Of all
 * types at once, beside threads and processes that come and go.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import type { TypesAnswer } from '../../collector/api/types.ts';
import type { StatusResponse } from '../../collector/status/status.ts';
import { AgentProcess } from '../support/agent-process.ts';
import { startCollectorProcess } from '../support/collector.ts';
import { ROOT } from './measure.ts';

const minutes = Number(process.argv[2] ?? 10);
const EVENTS = [
  'page-faults',
  'context-switches',
  'cpu-migrations',
  'tracepoint:sched:sched_process_fork',
  'mmap',
];
const folder = mkdtempSync(join(tmpdir(), 'everyframe-conservation-'));
const program = join(folder, 'churn');
execFileSync('gcc', ['-O1', '-pthread', '-o', program, join(ROOT, 'test/fixtures/waits/churn.c')]);

/** By type: what was taken, and what of it arrived in the store. */
function compare(counters: Record<string, number>, { types }: TypesAnswer): [string, number, number][] {
  const counter = (name: string): number => counters[name] ?? 0;
  const stored = (name: string): number => types.find(({ type }) => type === name)?.samples ?? 0;
  const [waits, events] = [counter('bpf.waits_reported'), counter('bpf.events_sampled')];
  return [
    ['samples (CPU time)', counter('bpf.samples') - waits - events, stored('samples')],
    ['off_cpu', waits, stored('off_cpu')],
    // made by the agent, of times that BPF counted
    ['thread_time', counter('reporter.samplesPushed') - counter('samples.reported'), stored('thread_time')],
    [EVENTS.join(', '), events, EVENTS.reduce((sum, name) => sum + stored(name), 0)],
  ];
}

const LOSSES = [
  'bpf.samples_lost_ring',
  'bpf.traces_lost_ring',
  'bpf.samples_shed',
  'bpf.threads_lost_ring',
  'traces.lostTraceMissing',
  'reporter.samplesDroppedOverflow',
  'reporter.samplesDroppedStop',
  'reporter.samplesRefused',
  'reporter.samplesTooLarge',
];
/** Of what was dropped, the requests that the collector did not answer: it may have stored them. */
const UNACKNOWLEDGED = 'reporter.samplesDroppedUnanswered';
/** At most so many reports' worth: more than what is on the wire when a collector ends is a collector that does not answer. */
const MAX_UNACKNOWLEDGED_REPORTS = 2;
const REPORTS_A_MINUTE = 12;

const collector = await startCollectorProcess('--max-memory', '2GiB');
try {
  const flags = ['cpu-clock', ...EVENTS].flatMap((event) => ['--event', event]);
  const agent = new AgentProcess(collector.grpc, '--off-cpu', '--event-budget', '50', ...flags);
  const load = spawn('nice', [program, String(60 * minutes)], { stdio: 'ignore' });
  const processes = spawn('nice', ['sh', '-c', 'while sleep 0.1; do ls >/dev/null; done'], {
    stdio: 'ignore',
  });
  await once(load, 'exit');
  processes.kill();
  const counters = await agent.stop();
  const rows = compare(counters, await collector.query<TypesAnswer>('/api/v1/types?range=all'));
  const { samples, store } = await collector.query<StatusResponse>('/api/v1/status');
  const lost = LOSSES.map((name): [string, number] => [name, counters[name] ?? 0]).concat([
    ['rejected', samples.rejected],
    ['dropped for room', store.droppedForMemory],
  ]);
  console.log('| samples of | taken | stored |\n|---|--:|--:|');
  for (const row of rows) console.log(`| ${row.join(' | ')} |`);
  console.log(`\nLost: ${lost.map(([name, count]) => `${name} ${count}`).join(', ')}`);
  const missing = rows.reduce((sum, [, taken, stored]) => sum + taken - stored, 0);
  const told = lost.reduce((sum, [, count]) => sum + count, 0);
  const unacknowledged = counters[UNACKNOWLEDGED] ?? 0;
  const aReport = (counters['reporter.samplesPushed'] ?? 0) / (REPORTS_A_MINUTE * minutes);
  const bound = Math.ceil(MAX_UNACKNOWLEDGED_REPORTS * aReport);
  console.log(`Not acknowledged: ${UNACKNOWLEDGED} ${unacknowledged}, at most ${bound}`);
  console.log(`Missing: ${missing}; told: ${told - unacknowledged} to ${told}`);
  const isTold = missing <= told && missing >= told - unacknowledged;
  process.exitCode = isTold && unacknowledged <= bound ? 0 : 1;
} finally {
  await collector.end();
  rmSync(folder, { recursive: true });
}
