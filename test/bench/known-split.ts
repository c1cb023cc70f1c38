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
import { all, type Split, shareOf, Windows } from '../runtimes/known-split.ts';
import { ROOT } from './measure.ts';

interface Program {
  title: string;
  command: readonly [string, ...string[]];
  frameType: FrameType;
}

interface Running extends Program {
  child: ChildProcess;
}

/** What an agent said of a program. */
interface Seen {
  /** Of its process, whatever they show. */
  samples: number;
  sum: Split;
  /** Of 5 s. */
  windows: Split[];
}

interface SplitRow {
  title: string;
  reference: Seen;
  ours: Seen;
}

const RATE = 97;
const EXPORT = '/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export';
const MAX_REQUEST_BYTES = 64 << 20;
/** Until what they last sampled has arrived. */
const SETTLE_MS = 12_000;
/** For an agent to have read the files of all programs, which takes some seconds on a machine that does nothing else. */
const LIMIT_MS = 120_000;
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
  readonly #programs: readonly Running[];
  #seen = new Map<Running, Windows>();

  private constructor(receiver: ScriptedReceiver, agent: ChildProcess, programs: readonly Running[]) {
    this.#receiver = receiver;
    this.#agent = agent;
    this.#programs = programs;
    this.clear();
  }

  /** `log`: file that gets what the agent writes. */
  static async start(
    command: readonly [string, ...string[]],
    programs: readonly Running[],
    log: string,
  ): Promise<Observed> {
    let observed: Observed | undefined;
    const receiver = await ScriptedReceiver.start({
      path: EXPORT,
      onCall: (call) => {
        observed?.take(call.request);
        call.ok();
      },
      channel: { 'grpc.max_receive_message_length': MAX_REQUEST_BYTES },
    });
    const [program, ...args] = command;
    const rate = ['-samples-per-second', String(RATE)];
    const flags = ['-collection-agent', receiver.address, '-disable-tls', ...rate];
    const output = openSync(log, 'w');
    const agent = spawn(program, [...args, ...flags], { stdio: ['ignore', output, output] });
    observed = new Observed(receiver, agent, programs);
    return observed;
  }

  get knowsAll(): boolean {
    return [...this.#seen.values()].every(({ hasAny }) => hasAny);
  }

  get hasEnded(): boolean {
    return this.#agent.exitCode !== null || this.#agent.signalCode !== null;
  }

  /** What comes from now on counts. */
  clear(): void {
    this.#seen = new Map(this.#programs.map((program) => [program, new Windows()]));
  }

  seenOf(program: Running): Seen {
    const windows = this.#seen.get(program)!;
    return { samples: windows.samples, sum: windows.sum, windows: windows.whole(MIN_SAMPLES) };
  }

  stop(): void {
    this.#agent.kill('SIGTERM');
    this.#receiver.stop();
  }

  take(request: Buffer): void {
    for (const profile of decodeOtlp(request).profiles)
      for (const [{ child, frameType }, windows] of this.#seen) windows.add(profile, child.pid!, frameType);
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
    for (const [name, command] of [
      ['reference', [reference]],
      ['ours', [`${ROOT}bin/everyframe`, 'agent']],
    ] as const)
      agents.push(await Observed.start(command, running, join(directory, `${name}.log`)));
    await untilKnown(agents);
    for (const agent of agents) agent.clear();
    await sleep(seconds * 1000 + SETTLE_MS);
    const [theirs, own] = agents as [Observed, Observed];
    // kept where something failed: it holds what the agents said
    rmSync(directory, { recursive: true, force: true });
    return running.map((program) => ({
      title: program.title,
      reference: theirs.seenOf(program),
      ours: own.seenOf(program),
    }));
  } finally {
    for (const { child } of running) child.kill('SIGKILL');
    for (const agent of agents) agent.stop();
  }
}

/** Until both agents name functions of every program, or one of them has had time enough to and does not. */
async function untilKnown(agents: readonly Observed[]): Promise<void> {
  const end = Date.now() + LIMIT_MS;
  while (Date.now() < end && !agents.every(({ knowsAll }) => knowsAll)) {
    if (agents.some(({ hasEnded }) => hasEnded))
      throw new Error('an agent ended: its log is in everyframe-split-*');
    await sleep(250);
  }
}

export function describeSplits(rows: SplitRow[]): string {
  const show = ({ samples, sum, windows }: Seen): string => {
    if (all(sum) === 0) return ` ${samples} | 0 | – | –`;
    const shares = windows.map((split) => (shareOf(split) * 100).toFixed(0)).join(' ');
    return ` ${samples} | ${all(sum)} | **${(shareOf(sum) * 100).toFixed(1)}** | ${shares || '–'}`;
  };
  return [
    '| program | reference: samples | with a() or b() | % in a() | by windows of 5 s | everyframe: samples | with a() or b() | % in a() | by windows of 5 s |',
    '|---|--:|--:|--:|---|--:|--:|--:|---|',
    ...rows.map(({ title, reference, ours }) => `| ${title} |${show(reference)} |${show(ours)} |`),
  ].join('\n');
}
