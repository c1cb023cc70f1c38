/**
 * Do the times of threads add up? Thousands of threads come and go for some minutes; each says how long it was there and how
 * long it ran. Root. Minutes: the first argument, 10 unless given.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readProfiles } from '../../common/profile/formats/formats.ts';
import { readAttributes } from '../../common/profile/model/attributes.ts';
import type { Profile, Sample } from '../../common/profile/model/profile.ts';

const ROOT = join(import.meta.dirname, '../../..');
const minutes = Number(process.argv[2] ?? 10);
const folder = mkdtempSync(join(tmpdir(), 'everyframe-sums-'));

interface Thread {
  wallNs: number;
  cpuNs: number;
  switches: number;
  /** By what was counted. */
  allNs: number;
  runningNs: number;
}

const stateOf = ({ processes }: Profile, { process }: Sample): string =>
  readAttributes(processes[process]!.attributes ?? '').get('thread.state') ?? '';
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
const percent = (share: number): string => `${(100 * share).toFixed(3)} %`;

function record(): { said: string; log: string; profiles: readonly Profile[] } {
  const [program, file] = [join(folder, 'churn'), join(folder, 'churn.pb.gz')];
  const flags = ['-O1', '-g', '-pthread', '-o', program, join(ROOT, 'test/fixtures/waits/churn.c')];
  if (spawnSync('gcc', flags, { stdio: 'inherit' }).status !== 0) throw new Error('gcc failed');
  const command = ['record', '-v', '--off-cpu', '-o', file, '--', program, String(60 * minutes)];
  const { stdout, stderr } = spawnSync(join(ROOT, 'bin/everyframe'), command, {
    ...{ encoding: 'utf8', maxBuffer: 2 ** 28 },
  });
  return { said: stdout, log: stderr, profiles: readProfiles(file, readFileSync(file)).profiles };
}

function compare(said: string, times: Profile): Thread[] {
  const threads = new Map<number, Thread>();
  for (const line of said.trim().split('\n')) {
    const [tid, wallNs, cpuNs, switches] = line.split(' ').map(Number);
    threads.set(tid!, { wallNs: wallNs!, cpuNs: cpuNs!, switches: switches!, allNs: 0, runningNs: 0 });
  }
  for (const sample of times.samples) {
    const thread = threads.get(sample.tid);
    if (thread === undefined) continue;
    thread.allNs += sample.value;
    if (stateOf(times, sample) === 'running') thread.runningNs += sample.value;
  }
  return [...threads.values()];
}

try {
  const { said, log, profiles } = record();
  const ofType = (name: string): Profile => profiles.find(({ type }) => type.sampleType.type === name)!;
  const [times, waits] = [ofType('thread_time'), ofType('off_cpu')];
  const threads = compare(said, times);
  const errors = threads.map(({ wallNs, allNs }) => Math.abs(allNs / wallNs - 1)).sort((a, b) => a - b);
  const [wall, all, cpu, running, switches] = (
    ['wallNs', 'allNs', 'cpuNs', 'runningNs', 'switches'] as const
  ).map((key) => sum(threads.map((thread) => thread[key]))) as [number, number, number, number, number];
  const waited = sum(
    times.samples.filter((sample) => stateOf(times, sample) !== 'running').map(({ value }) => value),
  );
  const sampled = sum(waits.samples.map(({ value }) => value));
  const counter = (name: string): number => Number(new RegExp(`"bpf.${name}":(\\d+)`).exec(log)?.[1] ?? 0);
  const rows = [
    ['threads', String(threads.length)],
    ['time that they were there', `${(wall / 1e9).toFixed(1)} s`],
    ['sum of all states against it', percent(all / wall - 1)],
    ['a thread: median, worst', `${percent(errors[errors.length >> 1]!)}, ${percent(errors.at(-1)!)}`],
    ['threads that differ by more than 1 %', String(errors.filter((error) => error > 0.01).length)],
    ['switches', String(switches)],
    ['running against the clock of the threads, a switch', `${Math.round((running - cpu) / switches)} ns`],
    ['what stacks stand for against time not running', percent(sampled / waited - 1)],
    [
      'stacks, samples, switches that the kernel left out',
      ['waits_sampled', 'waits_reported', 'switches_missed'].map(counter).join(', '),
    ],
    ['lost', String(counter('samples_lost_ring') + counter('threads_lost_ring') + counter('threads_full'))],
  ];
  for (const [name, value] of rows) console.log(`| ${name} | ${value} |`);
  // the kernel may leave out a switch at the start or the end of some
  process.exitCode = errors.filter((error) => error > 0.01).length > 0.005 * errors.length ? 1 : 0;
} finally {
  rmSync(folder, { recursive: true });
}
