/**
 * What --off-cpu costs: BPF and the agent, at 0, 10,000 and 100,000 switches a second beside what the machine does anyway. Root.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AgentProcess } from '../support/agent-process.ts';
import { startCollectorProcess } from '../support/collector.ts';
import { bpftool, cpuSeconds, ROOT } from './measure.ts';

const RATES = [0, 10_000, 100_000];
/** The last: hardly a stack, so that what is left is the switches themselves. */
const VARIANTS = [[], ['--off-cpu'], ['--off-cpu', '--off-cpu-budget', '1']];
const SETTLE_MS = 5000;
const SECONDS = 10;
const STATS = '/proc/sys/kernel/bpf_stats_enabled';
/** Their stacks are taken in what on_switch calls at its end. */
const PROGRAMS = ['on_switch', 'on_waking'] as const;

interface Run {
  runs: number;
  ns: number;
}
interface Books {
  cpuSeconds: number;
  programs: Map<string, Run>;
}

/** Programs of a process by name. */
function programsOf(pid: number): Map<string, Run> {
  const names = new Map(
    bpftool<{ id: number; name?: string }>('prog', 'show').map(({ id, name }) => [id, name]),
  );
  const found = new Map<string, Run>();
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    if (readlinkSync(`/proc/${pid}/fd/${fd}`) !== 'anon_inode:bpf-prog') continue;
    const info = readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8');
    const figure = (name: string): number =>
      Number(new RegExp(`^${name}:\\s*(\\d+)$`, 'm').exec(info)?.[1] ?? 0);
    const name = names.get(figure('prog_id'));
    if (name !== undefined) found.set(name, { runs: figure('run_cnt'), ns: figure('run_time_ns') });
  }
  return found;
}

const booksOf = (pid: number): Books => ({ cpuSeconds: cpuSeconds(pid), programs: programsOf(pid) });

async function measure(address: string, program: string, rate: number, flags: string[]): Promise<string[]> {
  const load = rate === 0 ? undefined : spawn(program, [String(rate), '60'], { stdio: 'ignore' });
  const agent = new AgentProcess(address, ...flags);
  await sleep(SETTLE_MS);
  const before = booksOf(agent.pid);
  await sleep(SECONDS * 1000);
  const after = booksOf(agent.pid);
  const counters = await agent.stop();
  if (load) {
    load.kill('SIGKILL');
    await once(load, 'exit');
  }
  const during = PROGRAMS.map((name): Run => {
    const [from, to] = [before.programs.get(name), after.programs.get(name)];
    return { runs: (to?.runs ?? 0) - (from?.runs ?? 0), ns: (to?.ns ?? 0) - (from?.ns ?? 0) };
  });
  const [switches, wakings] = during as [Run, Run];
  const ofCore = (ns: number): string => `${(ns / SECONDS / 1e7).toFixed(2)} %`;
  const each = ({ runs, ns }: Run): string => (runs === 0 ? '-' : `${Math.round(ns / runs)} ns`);
  return [
    flags.join(' ') || '-',
    String(rate),
    switches.runs === 0 ? '-' : String(Math.round(switches.runs / SECONDS)),
    `${each(switches)}, ${each(wakings)}`,
    ofCore(switches.ns + wakings.ns),
    `${((100 * (after.cpuSeconds - before.cpuSeconds)) / SECONDS).toFixed(1)} %`,
    // of all of its life
    String(Math.round((counters['bpf.waits_sampled'] ?? 0) / (SECONDS + SETTLE_MS / 1000))),
  ];
}

/** Nanoseconds that the books have for a program that does nothing, at the highest rate. */
function measureEmpty(folder: string, program: string): string {
  const source = (name: string): string => join(ROOT, 'test/bench/load', name);
  const [object, loader] = [join(folder, 'empty.o'), join(folder, 'empty')];
  execFileSync('clang', ['-O2', '-g', '-target', 'bpf', '-c', '-o', object, source('empty.bpf.c')]);
  execFileSync('gcc', ['-O2', '-o', loader, source('empty.c'), '-lbpf']);
  const load = spawn(program, [String(RATES.at(-1)), '60'], { stdio: 'ignore' });
  try {
    return execFileSync(loader, [object, String(SECONDS)], { encoding: 'utf8' }).trim();
  } finally {
    load.kill('SIGKILL');
  }
}

const folder = mkdtempSync(join(tmpdir(), 'everyframe-cost-'));
const statsBefore = readFileSync(STATS, 'utf8');
const collector = await startCollectorProcess();
try {
  const program = join(folder, 'switches');
  execFileSync('gcc', ['-O2', '-pthread', '-o', program, join(ROOT, 'test/fixtures/waits/switches.c')]);
  writeFileSync(STATS, '1');
  console.log(
    '| flags | asked for | switches a second | a switch, a wake-up | BPF of a core | agent of a core | stacks a second |',
  );
  console.log('|---|---|---|---|---|---|---|');
  for (const rate of RATES)
    for (const flags of VARIANTS)
      console.log(`| ${(await measure(collector.grpc, program, rate, flags)).join(' | ')} |`);
  console.log(`a program that does nothing: ${measureEmpty(folder, program)} ns a switch by the same books`);
} finally {
  writeFileSync(STATS, statsBefore);
  await collector.end();
  rmSync(folder, { recursive: true });
}
