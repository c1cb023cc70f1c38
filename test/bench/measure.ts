/** What an agent costs, read from the kernel's own books: /proc and bpftool. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** The checkout, seen from dist/test/bench. */
export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

const TICKS_PER_SECOND = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
const STATS_ENABLED = '/proc/sys/kernel/bpf_stats_enabled';

export interface Cost {
  samples: number;
  /** Nanoseconds of BPF a sample. */
  bpfNsPerSample: number;
  /** Of one core. */
  agentCpuPercent: number;
  residentMiB: number;
  mapsMiB: number;
}

interface BpfProgram {
  id: number;
  name?: string;
  type: string;
  run_cnt?: number;
  run_time_ns?: number;
}

export const bpftool = <T>(what: string): T[] => {
  const rows = JSON.parse(execFileSync('bpftool', [what, 'show', '-j'], { encoding: 'utf8' }) || '[]');
  return Array.isArray(rows) ? rows : [];
};

const programs = (): BpfProgram[] => bpftool<BpfProgram>('prog').filter((p) => p.type === 'perf_event');

/** Bytes of each BPF map of the machine, by its id. */
export const mapIds = (): Map<number, number> =>
  new Map(bpftool<{ id: number; bytes_memlock?: number }>('map').map((m) => [m.id, m.bytes_memlock ?? 0]));

function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

function residentMiB(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024;
}

/** What perf_event programs have cost that came after this was made; the kernel's books are switched on. */
export class BpfRuns {
  readonly #before: ReadonlySet<number>;

  constructor() {
    if (existsSync(STATS_ENABLED)) writeFileSync(STATS_ENABLED, '1');
    this.#before = new Set(programs().map((p) => p.id));
  }

  read(): { samples: number; ns: number } {
    let [samples, ns] = [0, 0];
    for (const program of programs()) {
      if (this.#before.has(program.id)) continue;
      samples += program.run_cnt ?? 0;
      ns += program.run_time_ns ?? 0;
    }
    return { samples, ns };
  }
}

/** bin/everyframe replaces itself by node, so the child's PID is the agent's. */
export class MeasuredAgent {
  readonly #child: ChildProcess;
  readonly #bpf: BpfRuns;
  readonly #mapsBefore: Map<number, number>;

  private constructor(child: ChildProcess, bpf: BpfRuns, mapsBefore: Map<number, number>) {
    this.#child = child;
    this.#bpf = bpf;
    this.#mapsBefore = mapsBefore;
  }

  /** Starts everyframe's agent; resolves once its sampler has run. */
  static async start(samplesPerSecond: number): Promise<MeasuredAgent> {
    const [bpf, maps] = [new BpfRuns(), mapIds()];
    const rate = ['--samples-per-second', String(samplesPerSecond)];
    // nobody listens on port 1: the queue is part of the cost, a collector's is not
    const target = ['--collection-agent', '127.0.0.1:1', '--disable-tls'];
    const child = spawn(`${ROOT}bin/everyframe`, ['agent', ...rate, ...target], { stdio: 'ignore' });
    process.once('exit', () => child.kill());
    const agent = new MeasuredAgent(child, bpf, maps);
    const deadline = Date.now() + 60_000;
    while (agent.#bpf.read().samples === 0) {
      if (child.exitCode !== null) throw new Error(`the agent ended with exit code ${child.exitCode}`);
      if (Date.now() > deadline) throw new Error('the agent took no sample within 60 s');
      await sleep(200);
    }
    return agent;
  }

  async measure(seconds: number): Promise<Cost> {
    const pid = this.#child.pid!;
    const [before, cpuBefore, begun] = [this.#bpf.read(), cpuSeconds(pid), performance.now()];
    let resident = 0;
    while (performance.now() - begun < seconds * 1000) {
      await sleep(1000);
      resident = Math.max(resident, residentMiB(pid));
    }
    const [after, cpuAfter] = [this.#bpf.read(), cpuSeconds(pid)];
    const elapsed = (performance.now() - begun) / 1000;
    const samples = after.samples - before.samples;
    let maps = 0;
    for (const [id, bytes] of mapIds()) if (!this.#mapsBefore.has(id)) maps += bytes;
    return {
      samples,
      bpfNsPerSample: (after.ns - before.ns) / Math.max(1, samples),
      agentCpuPercent: (100 * (cpuAfter - cpuBefore)) / elapsed,
      residentMiB: resident,
      mapsMiB: maps / 2 ** 20,
    };
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGTERM');
    await ended;
  }
}

/** Makes an interrupted benchmark end in order: what it started ends with it. */
export function exitOnSignals(): void {
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)
    process.once(signal, () => process.exit(code));
}

/** Processes that this benchmark started, ended together: at the latest with it. */
export class Load {
  readonly #children: ChildProcess[] = [];
  readonly #onExit = (): void => {
    for (const child of this.#children) if (isRunning(child)) process.kill(-child.pid!, 'SIGKILL');
  };

  constructor() {
    process.once('exit', this.#onExit);
  }

  /** Returns the PID. */
  start(path: string, args: string[] = []): number {
    const child = spawn(path, args, { stdio: 'ignore', detached: true });
    this.#children.push(child);
    if (child.pid === undefined) throw new Error(`${path} did not start`);
    return child.pid;
  }

  async stop(): Promise<void> {
    await Promise.all(
      this.#children.map(async (child) => {
        if (!isRunning(child)) return;
        const ended = new Promise((resolve) => child.once('exit', resolve));
        process.kill(-child.pid!, 'SIGKILL');
        await ended;
      }),
    );
    process.off('exit', this.#onExit);
  }
}

const isRunning = ({ pid, exitCode, signalCode }: ChildProcess): boolean =>
  pid !== undefined && exitCode === null && signalCode === null;

export const median = (values: number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
};

/** What a reader needs to compare the figures with their own machine. */
export function describeMachine(): string {
  const cpu = /model name\s*:\s*(.*)/.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1] ?? process.arch;
  const kernel = readFileSync('/proc/sys/kernel/osrelease', 'utf8').trim();
  const busy = readdirSync('/proc').filter((name) => /^\d+$/.test(name)).length;
  return `${availableParallelism()} CPUs (${cpu}), Linux ${kernel}, Node ${process.version}, ${busy} processes before the loads`;
}
