/**
 * Programs that spend 30 % of their CPU time in a() and 70 % in b(), as a receiver sees them through everyframe and
 * through the OpenTelemetry profiler: both sample the same processes at the same time, each pushes to a receiver of
 * its own.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { decodeOtlp } from '../../common/profile/otlp-decode.ts';
import type { FrameType } from '../../common/profile/profile.ts';
import { ScriptedReceiver } from '../fixtures/scripted-receiver.ts';
import { all, type Split, shareOf, sumOf, Windows } from '../runtimes/known-split.ts';
import { ROOT } from './measure.ts';

interface Program {
  title: string;
  command: readonly [string, ...string[]];
  frameType: FrameType;
}

interface Running extends Program {
  child: ChildProcess;
}

interface SplitRow {
  title: string;
  /** Windows of 5 s of each agent. */
  reference: Split[];
  ours: Split[];
}

const RATE = 997;
const EXPORT = '/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export';
const MAX_REQUEST_BYTES = 64 << 20;
/** Until what they last sampled has arrived. */
const SETTLE_MS = 12_000;
/** For an agent to have read the files of all programs; it has four of that on a machine that does nothing else. */
const LIMIT_MS = 90_000;
/** A window with fewer says nothing. */
const MIN_SAMPLES = 20;

const node = (shape: string): Program => ({
  title: `Node ${process.versions.node}: ${shape}`,
  command: [process.execPath, `${ROOT}test/runtimes/v8/split.cjs`, shape],
  frameType: 'v8js',
});

function programs(): Program[] {
  const version = execFileSync(
    '/usr/bin/python3',
    ['-c', 'import platform; print(platform.python_version())'],
    {
      encoding: 'utf8',
    },
  ).trim();
  const python = (shape: string): Program => ({
    title: `Python ${version}: ${shape}`,
    command: ['/usr/bin/python3', `${ROOT}test/runtimes/python/split.py`, shape],
    frameType: 'cpython',
  });
  return [
    ...['leaf', 'recursive', 'threads'].map(python),
    ...['leaf', 'hot', 'recursive', 'threads'].map(node),
  ];
}

/** An agent that pushes to a receiver in this process. */
class Observed {
  readonly #receiver: ScriptedReceiver;
  readonly #agent: ChildProcess;
  readonly #requests: Buffer[];

  private constructor(receiver: ScriptedReceiver, agent: ChildProcess, requests: Buffer[]) {
    this.#receiver = receiver;
    this.#agent = agent;
    this.#requests = requests;
  }

  /** `log`: file that gets what the agent writes. */
  static async start(command: readonly [string, ...string[]], log: string): Promise<Observed> {
    const requests: Buffer[] = [];
    const receiver = await ScriptedReceiver.start({
      path: EXPORT,
      onCall: (call) => {
        requests.push(call.request);
        call.ok();
      },
      channel: { 'grpc.max_receive_message_length': MAX_REQUEST_BYTES },
    });
    const [program, ...args] = command;
    const flags = [
      '-collection-agent',
      receiver.address,
      '-disable-tls',
      '-samples-per-second',
      String(RATE),
    ];
    const output = openSync(log, 'w');
    const agent = spawn(program, [...args, ...flags], { stdio: ['ignore', output, output] });
    return new Observed(receiver, agent, requests);
  }

  knows({ child, frameType }: Running): boolean {
    return this.#splitOf(child.pid!, frameType).hasAny;
  }

  get hasEnded(): boolean {
    return this.#agent.exitCode !== null || this.#agent.signalCode !== null;
  }

  /** What comes from now on counts. */
  clear(): void {
    this.#requests.length = 0;
  }

  windowsOf({ child, frameType }: Running): Split[] {
    return this.#splitOf(child.pid!, frameType).whole(MIN_SAMPLES);
  }

  #splitOf(pid: number, frameType: FrameType): Windows {
    const windows = new Windows();
    for (const request of this.#requests)
      for (const profile of decodeOtlp(request).profiles) windows.add(profile, pid, frameType);
    return windows;
  }

  stop(): void {
    this.#agent.kill('SIGTERM');
    this.#receiver.stop();
  }
}

/** `peers`: directory with `ebpf-profiler.xz`. */
export async function compareSplits(peers: string, seconds: number): Promise<SplitRow[]> {
  const directory = mkdtempSync(join(tmpdir(), 'everyframe-split-'));
  const reference = join(directory, 'ebpf-profiler');
  execFileSync('sh', [
    '-c',
    'xz -dc "$1" >"$2" && chmod +x "$2"',
    'sh',
    `${peers}/ebpf-profiler.xz`,
    reference,
  ]);
  const running: Running[] = programs().map((program) => ({
    ...program,
    child: spawn(program.command[0], program.command.slice(1), { stdio: 'ignore' }),
  }));
  const agents: Observed[] = [];
  try {
    agents.push(await Observed.start([reference], join(directory, 'reference.log')));
    agents.push(await Observed.start([`${ROOT}bin/everyframe`, 'agent'], join(directory, 'ours.log')));
    await untilKnown(agents, running);
    for (const agent of agents) agent.clear();
    await sleep(seconds * 1000 + SETTLE_MS);
    const [theirs, own] = agents as [Observed, Observed];
    // kept where something failed: it holds what the agents said
    rmSync(directory, { recursive: true, force: true });
    return running.map((program) => ({
      title: program.title,
      reference: theirs.windowsOf(program),
      ours: own.windowsOf(program),
    }));
  } finally {
    for (const { child } of running) child.kill('SIGKILL');
    for (const agent of agents) agent.stop();
  }
}

/** Until both agents name functions of every program; one that never does has no row of figures then. */
async function untilKnown(agents: Observed[], running: Running[]): Promise<void> {
  const end = Date.now() + LIMIT_MS;
  while (Date.now() < end && !agents.every((agent) => running.every((program) => agent.knows(program)))) {
    if (agents.some(({ hasEnded }) => hasEnded))
      throw new Error('an agent ended: its log is in everyframe-split-*');
    await sleep(1000);
  }
}

export function describeSplits(rows: SplitRow[]): string {
  const show = (splits: Split[]): string => {
    const whole = sumOf(splits);
    if (all(whole) === 0) return ' 0 | – | –';
    const windows = splits.map((split) => (shareOf(split) * 100).toFixed(0)).join(' ');
    return ` ${all(whole)} | **${(shareOf(whole) * 100).toFixed(1)}** | ${windows}`;
  };
  return [
    '| program | reference: samples | % in a() | by windows of 5 s | everyframe: samples | % in a() | by windows of 5 s |',
    '|---|--:|--:|---|--:|--:|---|',
    ...rows.map(({ title, reference, ours }) => `| ${title} |${show(reference)} |${show(ours)} |`),
  ].join('\n');
}
