/** What an agent costs, read from the kernel's own books: /proc and bpftool. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { BPF_COUNTERS } from '../../agent/records/counters.gen.ts';

/** The checkout, seen from dist/test/bench. */
export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

const TICKS_PER_SECOND = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
const STATS_ENABLED = '/proc/sys/kernel/bpf_stats_enabled';
/** BPF_MAP_TYPE_ARRAY_OF_MAPS and BPF_PROG_TYPE_PERF_EVENT of linux/bpf.h. */
const ARRAY_OF_MAPS = 12;
const PERF_EVENT = 7;
const SAMPLES = BPF_COUNTERS.findIndex(({ name }) => name === 'samples');
const BOOKS = { encoding: 'utf8', maxBuffer: 64 << 20 } as const;

export interface Cost {
  samples: number;
  /** Nanoseconds of BPF a sample. */
  bpfNsPerSample: number;
  /** Of one core. */
  agentCpuPercent: number;
  residentMiB: number;
  mapsMiB: number;
}

export const bpftool = <T>(what: string, ...args: string[]): T[] => {
  const rows = JSON.parse(execFileSync('bpftool', ['-j', what, ...args], BOOKS) || '[]');
  return Array.isArray(rows) ? rows : [];
};

/** The fdinfo of each descriptor of a kind, proc(5): of this process alone, whatever else is measured on the machine. */
function fdinfos(pid: number, kind: 'bpf-map' | 'bpf-prog'): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      if (readlinkSync(`/proc/${pid}/fd/${fd}`) !== `anon_inode:${kind}`) return [];
      return [readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8')];
    } catch {
      return []; // closed meanwhile
    }
  });
}

const figure = (fdinfo: string, name: string): number =>
  Number(new RegExp(`^${name}:\\s*(\\d+)$`, 'm').exec(fdinfo)?.[1] ?? 0);

/** Bytes as bpftool writes them, "0x12" each. */
const littleEndian = (bytes: readonly string[]): number =>
  bytes.reduceRight((number, byte) => number * 256 + Number(byte), 0);

/** Bytes of each BPF map of a process by its id, the maps that are held by one of its maps included. */
export function mapsOf(pid: number): Map<number, number> {
  const maps = new Map<number, number>();
  const inner = new Set<number>();
  for (const info of fdinfos(pid, 'bpf-map')) {
    const id = figure(info, 'map_id');
    maps.set(id, figure(info, 'memlock'));
    if (figure(info, 'map_type') !== ARRAY_OF_MAPS) continue;
    const rows = bpftool<{ value: string[] | object }>('map', 'dump', 'id', String(id));
    for (const { value } of rows) if (Array.isArray(value)) inner.add(littleEndian(value));
  }
  if (inner.size === 0) return maps;
  for (const { id, bytes_memlock } of bpftool<{ id: number; bytes_memlock?: number }>('map', 'show'))
    if (inner.has(id)) maps.set(id, bytes_memlock ?? 0);
  return maps;
}

/** Those that work for an agent, as the kernel names them; what it records is its child, too. */
const HELPERS: ReadonlySet<string> = new Set(['everyframe-work', 'everyframe-read', 'worker-launcher']);

/** By its parent. Not of /proc/PID/task/TID/children, which kernels may lack. */
function childrenOf(pid: number): number[] {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
  return all.filter((child) => tryTo((it) => Number(statOf(it)[1]), child) === pid);
}

/** The fields behind the name, proc(5): state, parent and so on. */
const statOf = (pid: number): string[] =>
  readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ');

/** Of a process and its threads, of its children that have ended, and of those that work for it. */
export const cpuSeconds = (pid: number): number =>
  ownCpuSeconds(pid) + helpersOf(pid).reduce((sum, helper) => sum + (tryTo(ownCpuSeconds, helper) ?? 0), 0);

function helpersOf(pid: number): number[] {
  return childrenOf(pid).flatMap((child) => {
    const name = tryTo((it) => readFileSync(`/proc/${it}/comm`, 'utf8').trim(), child);
    return name !== undefined && HELPERS.has(name) ? [child, ...helpersOf(child)] : [];
  });
}

/** Undefined where the process has ended meanwhile. */
function tryTo<T>(read: (pid: number) => T, pid: number): T | undefined {
  try {
    return read(pid);
  } catch {
    return undefined;
  }
}

function ownCpuSeconds(pid: number): number {
  // utime, stime, and both of children that were waited for
  return (
    statOf(pid)
      .slice(11, 15)
      .reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_PER_SECOND
  );
}

/** With what those that work for it have for themselves. */
export const residentMiB = (pid: number): number =>
  mebibytes(pid, 'VmRSS') +
  helpersOf(pid).reduce((sum, helper) => sum + (tryTo((it) => mebibytes(it, 'RssAnon'), helper) ?? 0), 0);

const mebibytes = (pid: number, what: string): number =>
  Number(new RegExp(`${what}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024;

/** What a process's perf_event programs have cost since they were loaded, and for how many samples; the kernel's books are
 * switched on. */
export class BpfRuns {
  readonly #pid: number;
  #counters: number | undefined;

  constructor(pid: number) {
    if (existsSync(STATS_ENABLED)) writeFileSync(STATS_ENABLED, '1');
    this.#pid = pid;
  }

  read(): { samples: number; ns: number } {
    const programs = new Map<number, string>();
    for (const info of fdinfos(this.#pid, 'bpf-prog'))
      if (figure(info, 'prog_type') === PERF_EVENT) programs.set(figure(info, 'prog_id'), info);
    const ns = [...programs.values()].reduce((sum, info) => sum + figure(info, 'run_time_ns'), 0);
    return { samples: programs.size > 0 ? this.#samples() : 0, ns };
  }

  /** Ticks on the idle task, and on processes that were not asked for, are none. */
  #samples(): number {
    this.#counters ??= this.#findCounters();
    const at = ['lookup', 'id', String(this.#counters), 'key', String(SAMPLES), '0', '0', '0'];
    const { values } = JSON.parse(execFileSync('bpftool', ['-j', 'map', ...at], BOOKS)) as {
      values: { value: string[] }[];
    };
    return values.reduce((sum, { value }) => sum + littleEndian(value), 0);
  }

  #findCounters(): number {
    const own = mapsOf(this.#pid);
    const maps = bpftool<{ id: number; name?: string }>('map', 'show');
    const found = maps.find(({ id, name }) => name === 'counters' && own.has(id));
    if (!found) throw new Error(`process ${this.#pid} has no BPF map of counters`);
    return found.id;
  }
}

/** bin/everyframe replaces itself by node, so the child's PID is the agent's. */
export class MeasuredAgent {
  readonly #child: ChildProcess;
  readonly #bpf: BpfRuns;
  readonly #onExit = (): void => killGroup(this.#child.pid!);

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.#bpf = new BpfRuns(child.pid!);
  }

  /** Starts everyframe recording a command and its children, and nothing else; resolves once its sampler has run. */
  static async record(samplesPerSecond: number, output: string, command: string[]): Promise<MeasuredAgent> {
    const flags = [
      'record',
      '-F',
      String(samplesPerSecond),
      '-d',
      '0',
      '--force',
      '-o',
      output,
      '--',
      ...command,
    ];
    const child = spawn(`${ROOT}bin/everyframe`, flags, { stdio: 'ignore', detached: true });
    const agent = new MeasuredAgent(child);
    process.once('exit', agent.#onExit);
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
    const maps = [...mapsOf(pid).values()].reduce((sum, bytes) => sum + bytes, 0);
    return {
      samples,
      bpfNsPerSample: (after.ns - before.ns) / Math.max(1, samples),
      agentCpuPercent: (100 * (cpuAfter - cpuBefore)) / elapsed,
      residentMiB: resident,
      mapsMiB: maps / 2 ** 20,
    };
  }

  async stop(): Promise<void> {
    process.off('exit', this.#onExit);
    if (this.#child.exitCode !== null) return;
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#onExit();
    await ended;
  }
}

/** With what runs in it. */
function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // it has ended already
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

  /** Behind all that is not nice: each of them is a session, which the kernel may give an equal share (sched(7), autogroup). */
  startNice(path: string, args: string[] = []): void {
    const pid = this.start('nice', ['-n', '19', path, ...args]);
    const group = `/proc/${pid}/autogroup`;
    if (existsSync(group)) writeFileSync(group, '19');
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

/** Unpacks a peer's program to `path`, which is returned. */
export function unpackPeer(packed: string, path: string): string {
  execFileSync('sh', ['-c', 'xz -dc "$1" >"$2" && chmod +x "$2"', 'sh', packed, path]);
  return path;
}

/** What the processes of load/spread.c share: two of them have the first turns. */
export function writeTurns(path: string, processes: number): void {
  const turns = new Uint32Array(processes);
  turns[0]!++;
  turns[processes >> 1]!++;
  writeFileSync(path, turns);
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
