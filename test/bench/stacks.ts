/**
 * The same programs sampled at the same time by everyframe, by `perf record --call-graph dwarf` and by the
 * OpenTelemetry profiler: which stacks did each see?
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, openSync, rmSync } from 'node:fs';
import { constants, setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { decodeOtlp } from '../../common/profile/otlp/otlp-decode.ts';
import { ScriptedReceiver } from '../fixtures/scripted-receiver.ts';
import { Load, ROOT, unpackPeer } from './measure.ts';
import {
  compare,
  countStacks,
  type Moment,
  momentsOf,
  Places,
  readPerfScript,
  type Stacks,
  sum,
} from './stack-sets.ts';

interface Program {
  name: string;
  command: readonly [string, ...string[]];
}

interface Running extends Program {
  pid: number;
  places: Places;
}

interface Compared {
  program: string;
  /** Tool → what it saw. */
  by: Map<string, Stacks>;
}

export interface StackOptions {
  seconds: number;
  /** File of the reference agent; it is left out where there is none. */
  reference: string | undefined;
}

const RATE = 97;
/** Stacks of each comparison that are shown, of those that one of the two has alone. */
const EXAMPLES = 3;
const MAX_EXAMPLE = 200;
const EXPORT = '/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export';
const MAX_REQUEST_BYTES = 64 << 20;
const LIMIT_MS = 240_000;
/** Samples whose stack ends in no marker, after which an agent is taken to have read a program's files. */
const ENOUGH = 5;
const C = ['gcc', '-O2', '-fomit-frame-pointer', '-pthread'] as const;
const source = (name: string): string => `${ROOT}test/fixtures/${name}`;

function programs(directory: string): Program[] {
  const built = (name: string, build: readonly [string, ...string[]]): string => {
    const path = join(directory, name);
    execFileSync(build[0], [...build.slice(1), '-o', path]);
    return path;
  };
  const deep = built('deep', [...C, source('deep.c')]);
  return [
    { name: '40 deep', command: [deep, '40'] },
    { name: '400 deep', command: [deep, '400'] },
    { name: 'static', command: [built('static', [...C, '-static', source('deep.c')]), '40'] },
    { name: 'threads', command: [built('threads', [...C, source('threads.c')])] },
    { name: 'in a signal handler', command: [built('signal', [...C, source('signal.c')])] },
    { name: 'C++', command: [built('cpp', ['g++', '-O2', '-fomit-frame-pointer', source('deep.cc')])] },
    { name: 'stack not resident', command: [built('paged', [...C, source('paged.c')]), 'shared'] },
    { name: 'openssl speed rsa2048', command: ['openssl', 'speed', '-seconds', '100000', 'rsa2048'] },
    { name: 'xz -9', command: ['sh', '-c', 'exec xz -9 -T1 -c </dev/urandom >/dev/null'] },
    { name: 'python3', command: ['/usr/bin/python3', source('../runtimes/python/split.py'), 'recursive'] },
  ];
}

/** An agent, and what it says of the programs. */
class Sampled {
  readonly tool: string;
  readonly #receiver: ScriptedReceiver;
  readonly #agent: ChildProcess;
  readonly #seen: Map<Running, Moment[]>;
  #newest = 0n;
  #requests = 0;

  private constructor(
    tool: string,
    running: readonly Running[],
    receiver: ScriptedReceiver,
    agent: ChildProcess,
  ) {
    this.tool = tool;
    this.#receiver = receiver;
    this.#agent = agent;
    this.#seen = new Map(running.map((program) => [program, []]));
  }

  static async start(
    tool: string,
    command: readonly [string, ...string[]],
    running: readonly Running[],
    log: string,
  ): Promise<Sampled> {
    let sampled: Sampled | undefined;
    const receiver = await ScriptedReceiver.start({
      path: EXPORT,
      onCall: (call) => {
        call.ok();
        sampled?.take(call.request);
      },
      channel: { 'grpc.max_receive_message_length': MAX_REQUEST_BYTES },
    });
    const [program, ...args] = command;
    const rate = ['-samples-per-second', String(RATE)];
    const flags = ['-collection-agent', receiver.address, '-disable-tls', ...rate];
    const output = openSync(log, 'w');
    const agent = spawn(program, [...args, ...flags], { stdio: ['ignore', output, output] });
    process.once('exit', () => agent.kill('SIGTERM'));
    sampled = new Sampled(tool, running, receiver, agent);
    return sampled;
  }

  take(request: Buffer): void {
    this.#requests++;
    for (const profile of decodeOtlp(request).profiles) {
      for (const { timestamps } of profile.samples)
        for (const time of timestamps) if (time > this.#newest) this.#newest = time;
      for (const [{ pid, places }, seen] of this.#seen) seen.push(...momentsOf(profile, pid, places));
    }
  }

  stacks(program: Running, from: bigint, to: bigint): Stacks {
    return countStacks(this.#seen.get(program)!, from, to);
  }

  /** Until the tables of every program are there; one that never is has no identical stacks then. */
  async untilKnown(): Promise<void> {
    const end = Date.now() + LIMIT_MS;
    const isKnown = (seen: Moment[]): boolean =>
      seen.filter(({ stack }) => !stack.endsWith(']')).length >= ENOUGH;
    while (![...this.#seen.values()].every(isKnown) && Date.now() < end) {
      if (this.#agent.exitCode !== null)
        throw new Error(`${this.tool} ended with exit code ${this.#agent.exitCode}`);
      await sleep(1000);
    }
    for (const [{ name }, seen] of this.#seen)
      if (!isKnown(seen)) console.error(`${this.tool} shows no whole stack of ${name}`);
  }

  /** Until what was sampled before that time has arrived: agents push in the order of time. */
  async untilDelivered(time: bigint): Promise<void> {
    const end = Date.now() + LIMIT_MS;
    while (this.#newest <= time) {
      if (Date.now() > end) throw new Error(`${this.tool} pushes nothing any more`);
      await sleep(1000);
    }
    // and one more request: an interval may come in several
    const before = this.#requests;
    while (this.#requests === before && Date.now() < end) await sleep(1000);
  }

  stop(): void {
    this.#agent.kill('SIGTERM');
    this.#receiver.stop();
  }
}

export async function compareStacks(options: StackOptions): Promise<Compared[]> {
  const directory = mkdtempSync(join(tmpdir(), 'everyframe-stacks-'));
  const load = new Load();
  const agents: Sampled[] = [];
  try {
    const started = programs(directory).map((program) => {
      const pid = load.start(program.command[0], program.command.slice(1));
      // the profilers come first: on few CPUs they would have to wait for all these
      setPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL);
      return { ...program, pid };
    });
    // until each has its libraries
    await sleep(1000);
    const running = started.map((program): Running => ({ ...program, places: new Places(program.pid) }));
    const start = async (tool: string, command: readonly [string, ...string[]]): Promise<void> => {
      agents.push(await Sampled.start(tool, command, running, join(directory, `${tool}.log`)));
    };
    await start('everyframe', [`${ROOT}bin/everyframe`, 'agent']);
    if (options.reference)
      await start('reference', [unpackPeer(options.reference, join(directory, 'reference'))]);
    console.error('waiting until all agents show whole stacks of all programs');
    for (const agent of agents) await agent.untilKnown();
    console.error(`sampling for ${options.seconds} s`);
    const from = BigInt(Date.now()) * 1_000_000n;
    const fileOf = (perf: Perf): string => join(directory, `${perf.title}.data`);
    await Promise.all(PERFS.map((perf) => recordPerf(perf, fileOf(perf), running, options.seconds)));
    const to = BigInt(Date.now()) * 1_000_000n;
    for (const agent of agents) await agent.untilDelivered(to);
    const perfs = PERFS.map((perf) => readPerf(perf, fileOf(perf)));
    return running.map((program) => {
      const by = new Map(agents.map((agent) => [agent.tool, agent.stacks(program, from, to)]));
      for (const [at, text] of perfs.entries()) {
        by.set(PERFS[at]!.title, readPerfScript(text, program.pid, program.places));
      }
      return { program: program.name, by };
    });
  } finally {
    for (const agent of agents) agent.stop();
    await load.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

interface Perf {
  title: string;
  flags: readonly string[];
  scriptFlags: readonly string[];
}

/** As people call it, and with as much of the stack and as many frames as perf can. */
const PERFS: readonly Perf[] = [
  { title: 'perf', flags: ['--call-graph', 'dwarf'], scriptFlags: [] },
  {
    title: 'perf, 64 KiB',
    flags: ['--call-graph', 'dwarf,65528', '-q'],
    scriptFlags: ['--max-stack', '1023'],
  },
];

/** perf copies the top of each stack, and unwinds when it is asked. */
async function recordPerf(
  perf: Perf,
  file: string,
  running: readonly Running[],
  seconds: number,
): Promise<void> {
  const pids = running.map(({ pid }) => pid).join();
  // without -N it makes hard links to the programs, which changes their inodes' ctime: another file for us
  const record = [
    'record',
    '-N',
    '-e',
    'cpu-clock',
    '-F',
    String(RATE),
    ...perf.flags,
    '-p',
    pids,
    '-o',
    file,
  ];
  const recorded = spawn('perf', [...record, '--', 'sleep', String(seconds)], { stdio: 'ignore' });
  const status = await new Promise<number | null>((resolve) => recorded.once('exit', resolve));
  if (status !== 0) throw new Error(`perf record ended with ${status}`);
}

function readPerf(perf: Perf, file: string): string {
  const script = ['script', '-i', file, '--no-inline', '-F', 'pid,ip,sym,dso', ...perf.scriptFlags];
  return execFileSync('perf', script, {
    encoding: 'utf8',
    maxBuffer: 1 << 30,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
}

const percent = (part: number): string => (100 * part).toFixed(1);

/** A recursion as one frame and how often it stands there. */
const shorten = (stack: string): string =>
  stack.replace(/(^|;)([^;]+)(;\2)+(?=;|$)/g, (all, before: string, one: string) => {
    const times = all.split(';').length - (before === '' ? 0 : 1);
    return `${before}${one} × ${times}`;
  });

/** A table, and beneath it what makes the differences. */
export function describeStacks(compared: readonly Compared[]): { table: string; examples: string } {
  const rows: string[] = [];
  const examples: string[] = [];
  for (const { program, by } of compared) {
    const ours = by.get('everyframe')!;
    for (const [tool, stacks] of by) {
      if (tool === 'everyframe') continue;
      const found = compare(ours, stacks);
      const shares = [found.identical, found.endsEarly, found.weEndEarly, found.only, found.weOnly].map(
        percent,
      );
      rows.push(
        `| ${program} | ${tool} | ${sum(ours)}, ${sum(stacks)} | **${shares[0]}** | ${shares.slice(1).join(' | ')} |`,
      );
      for (const { by: who, kind, stack, count } of found.examples.slice(0, EXAMPLES))
        examples.push(
          `${program}, ${tool}: ${who} ${kind} ${count} × ${shorten(stack).slice(0, MAX_EXAMPLE)}`,
        );
    }
  }
  const head =
    '| program | against | samples: ours, theirs | identical, % | they end early | we end early | only they saw | only we saw |';
  return {
    table: [head, '|---|---|--:|--:|--:|--:|--:|--:|', ...rows].join('\n'),
    examples: examples.join('\n'),
  };
}
