/**
 * A collector that stalls, is killed and comes back, under load: the agent stays within its memory, recovers by
 * itself, and what was lost is counted to the sample. OUTAGE_SECONDS says for how long (`npm run test:outage`: 120).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { AgentProcess } from './support/agent-process.ts';
import { type RunningCollector, startCollectorProcess } from './support/collector.ts';
import { compile, missingRights } from './support/fixtures.ts';

const OUTAGE_SECONDS = Number(process.env['OUTAGE_SECONDS'] ?? 20);
/** Small, so that a short outage fills it. */
const QUEUE_BYTES = 1 << 20;
/** Some 250 MiB are usual at this rate, most of it names of what happens to run here and garbage to be collected. */
const RESIDENT_LIMIT_BYTES = 450 << 20;
const AGENT_FLAGS = [
  ...['--samples-per-second', '499', '--reporter-interval', '500ms'],
  ...['--max-queue-bytes', String(QUEUE_BYTES)],
];

const directory = mkdtempSync(join(tmpdir(), 'everyframe-outage-'));
const load: ChildProcess[] = [];
let collector: RunningCollector;
let agent: AgentProcess | undefined;
let questions = 0;

afterAll(async () => {
  for (const child of load) process.kill(-child.pid!, 'SIGKILL');
  await agent?.kill();
  await collector?.end('SIGKILL');
  rmSync(directory, { recursive: true });
});

function startLoad(): void {
  const deep = compile('outage-deep', 'gcc', ['-O2'], 'deep.c');
  const churn = 'while :; do ls / >/dev/null; expr 1 + 1 >/dev/null; done';
  for (const [command, ...args] of [
    [deep, '40'],
    ['sh', '-c', churn],
  ] as const) {
    load.push(spawn('nice', ['-n', '15', command, ...args], { stdio: 'ignore', detached: true }));
  }
}

/** Samples in the store; the same question would be answered from a cache for a second. */
async function countStored(): Promise<number> {
  const { values } = await collector.query<{ values: { samples: number }[] }>(
    `/api/v1/values?label=cpu&range=all&limit=10000&question=${questions++}`,
  );
  return values.reduce((sum, { samples }) => sum + samples, 0);
}

async function untilMoreIsStored(): Promise<void> {
  const before = await countStored();
  await expect.poll(countStored, { timeout: 90_000, interval: 500 }).toBeGreaterThan(before);
}

/** The largest that the agent is meanwhile. */
async function watchFor(seconds: number): Promise<number> {
  let largest = 0;
  for (const end = Date.now() + seconds * 1000; Date.now() < end; ) {
    largest = Math.max(largest, agent!.footprint().residentBytes);
    await sleep(500);
  }
  return largest;
}

const sumOf = (counters: Record<string, number>, ...names: string[]): number =>
  names.reduce((sum, name) => sum + (counters[name] ?? 0), 0);

describe.skipIf(missingRights)('an outage of the collector', () => {
  it(
    `of ${OUTAGE_SECONDS} s: stalled, killed, back`,
    async () => {
      collector = await startCollectorProcess('--data', directory);
      const listen = ['--grpc-listen', collector.grpc, '--data', directory];
      startLoad();
      agent = new AgentProcess(collector.grpc, ...AGENT_FLAGS);
      await untilMoreIsStored();
      // names and tables of what runs here have been read by then
      const before = await watchFor(5);

      collector.process.kill('SIGSTOP');
      const stalled = await watchFor(OUTAGE_SECONDS / 2);
      collector.process.kill('SIGCONT');
      await untilMoreIsStored();

      await collector.end('SIGKILL');
      const away = await watchFor(OUTAGE_SECONDS / 2);
      collector = await startCollectorProcess(...listen);
      await untilMoreIsStored();

      const counters = await agent.stop();
      const stored = await countStored();
      const lostInKernel = sumOf(
        counters,
        ...['bpf.samples_lost_ring', 'bpf.traces_lost_ring', 'bpf.samples_shed'],
      );
      const lostInAgent = sumOf(counters, 'traces.lostTraceMissing', 'traces.lostIntervalFull');
      const lostInReporter = sumOf(
        counters,
        ...['reporter.samplesDroppedOverflow', 'reporter.samplesRefused', 'reporter.samplesRejectedPartial'],
        ...['reporter.samplesDroppedStop', 'reporter.samplesTooLarge'],
      );
      const toMiB = (bytes: number): string => (bytes / 2 ** 20).toFixed(0);
      console.log(
        `${counters['bpf.samples']} samples taken: ${stored} stored, lost and counted: ${lostInKernel} in the kernel, ` +
          `${lostInAgent} in the agent, ${lostInReporter} in the reporter; resident: ${toMiB(before)} MiB before, ` +
          `${toMiB(stalled)} while it stalled, ${toMiB(away)} while it was away`,
      );
      // the collector took some of these after all, as when it went on with what had been sent before it stalled
      const excess = stored + lostInKernel + lostInAgent + lostInReporter - counters['bpf.samples']!;
      expect(excess).toBeGreaterThanOrEqual(0);
      expect(excess).toBeLessThanOrEqual(counters['reporter.samplesDroppedUnanswered']!);
      expect(counters['reporter.retries']).toBeGreaterThan(0);
      // the queue was full, and the oldest made room
      expect(counters['reporter.samplesDroppedOverflow']).toBeGreaterThan(0);
      expect(Math.max(stalled, away)).toBeLessThan(RESIDENT_LIMIT_BYTES);
    },
    300_000 + OUTAGE_SECONDS * 1000,
  );
});
