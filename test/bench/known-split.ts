/**
 * Programs that spend 30 % of their CPU time in a() and 70 % in b(), as a receiver sees them through everyframe and
 * through the OpenTelemetry profiler: both sample the same processes at the same time, each pushes to a receiver of
 * its own, and both are asked for the same five seconds.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FrameType } from '../../common/profile/model/profile.ts';
import { decodeOtlp } from '../../common/profile/otlp/otlp-decode.ts';
import { ScriptedReceiver } from '../fixtures/scripted-receiver.ts';
import { all, deviation, SHARE, type Span, type Split, shareOf, Windows } from '../runtimes/known-split.ts';
import { SPLIT_CASES, type SplitCase } from '../runtimes/split-cases.ts';
import { ROOT, unpackPeer } from './measure.ts';

export type RuntimeName = keyof typeof SPLIT_CASES;

/** One shape of a program. */
interface SplitProgram {
  title: string;
  command: readonly string[];
  environment?: Readonly<Record<string, string>>;
  frameType: FrameType;
}

interface Running extends SplitProgram {
  child: ChildProcess;
}

/** What an agent said of a program. */
interface Seen {
  /** Of its process, whatever they show. */
  samples: number;
  sum: Split;
  /** Of 5 s; undefined where nothing was seen. */
  windows: (Split | undefined)[];
}

interface SplitRow {
  title: string;
  reference: Seen;
  ours: Seen;
}

/** At 997 Hz this process could not take all that both agents say of a machine on which much else runs. */
export const SPLIT_RATE = 97;
const EXPORT = '/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export';
const MAX_REQUEST_BYTES = 64 << 20;
/** For samples of the last window to arrive. */
const SETTLE_MS = 240_000;
/** For the first sample of each program: the reference alone takes most of a minute to load where the machine is busy. */
const START_LIMIT_MS = 180_000;
/** For names, from then on. */
const NAMES_LIMIT_MS = 45_000;
const POLL_MS = 250;
/** The requests of one profile come within less. */
const BETWEEN_REQUESTS_MS = 1000;
/** Of both agents' pushes; one that holds later samples comes after all that hold earlier ones. */
const INTERVAL_NS = 5_000_000_000n;
/** A window with fewer says nothing. */
const MIN_SAMPLES = 20;

/** An agent that pushes to a receiver in this process. */
class Observed {
  readonly #receiver: ScriptedReceiver;
  readonly #agent: ChildProcess;
  readonly #programs: readonly Running[];
  /** Of requests: an agent that got no answer in time sends one again. */
  readonly #taken = new Set<string>();
  #seen = new Map<Running, Windows>();
  /** Unix nanoseconds. */
  #newest = 0n;
  /** When the last request came. */
  #takenAtMs = 0;
  /** The longest that a request was behind its newest sample. */
  #latestMs = 0;

  private constructor(receiver: ScriptedReceiver, agent: ChildProcess, programs: readonly Running[]) {
    this.#receiver = receiver;
    this.#agent = agent;
    this.#programs = programs;
    this.countFrom();
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
      // answered before it is read, so that this process being busy costs no agent its time limit
      onCall: (call) => {
        call.ok();
        setImmediate(() => observed?.take(call.request));
      },
      channel: { 'grpc.max_receive_message_length': MAX_REQUEST_BYTES },
    });
    const [program, ...args] = command;
    const rate = ['-samples-per-second', String(SPLIT_RATE)];
    const flags = ['-collection-agent', receiver.address, '-disable-tls', ...rate];
    const output = openSync(log, 'a');
    const agent = spawn(program, [...args, ...flags], { stdio: ['ignore', output, output] });
    observed = new Observed(receiver, agent, programs);
    return observed;
  }

  get knowsAll(): boolean {
    return [...this.#seen.values()].every(({ hasAny }) => hasAny);
  }

  get samplesAll(): boolean {
    return [...this.#seen.values()].every(({ samples }) => samples > 0);
  }

  get hasEnded(): boolean {
    return hasEnded(this.#agent);
  }

  get latestMs(): number {
    return this.#latestMs;
  }

  /** What was sampled until then has arrived, as far as one can see: a profile that comes late comes in several requests. */
  isPast(time: bigint): boolean {
    return this.#newest >= time && Date.now() - this.#takenAtMs > BETWEEN_REQUESTS_MS;
  }

  /** What was sampled in this span counts, or all from now on. */
  countFrom(span?: Span): void {
    this.#seen = new Map(this.#programs.map((program) => [program, new Windows(span)]));
  }

  seenOf(program: Running, span: Span): Seen {
    const windows = this.#seen.get(program)!;
    return { samples: windows.samples, sum: windows.sum, windows: windows.inSpan(span) };
  }

  async stop(): Promise<void> {
    const ended = hasEnded(this.#agent) ? undefined : once(this.#agent, 'exit');
    this.#agent.kill('SIGTERM');
    // it sends what it still has
    await ended;
    this.#receiver.stop();
  }

  take(request: Buffer): void {
    const digest = createHash('sha256').update(request).digest('base64');
    if (this.#taken.has(digest)) return;
    this.#taken.add(digest);
    this.#takenAtMs = Date.now();
    let newest = 0n;
    for (const profile of decodeOtlp(request).profiles) {
      for (const { timestamps } of profile.samples)
        for (const time of timestamps) if (time > newest) newest = time;
      for (const [{ child, frameType }, windows] of this.#seen) windows.add(profile, child.pid!, frameType);
    }
    if (newest > this.#newest) this.#newest = newest;
    if (newest > 0n) this.#latestMs = Math.max(this.#latestMs, Date.now() - Number(newest / 1_000_000n));
  }
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean =>
  exitCode !== null || signalCode !== null;

/**
 * The rows of each build in turn. `peers`: directory with `ebpf-profiler`, or that packed by xz. `seconds`: whole windows of 5.
 * Throws where we have no samples.
 */
export async function* compareSplits(
  runtimes: readonly RuntimeName[],
  peers: string,
  seconds: number,
): AsyncGenerator<SplitRow[]> {
  // before other work of the machine: this is about what agents see, not about who gets a CPU
  setPriority(-20);
  const directory = mkdtempSync(join(tmpdir(), 'everyframe-split-'));
  const unpacked = `${peers}/ebpf-profiler`;
  const reference = existsSync(unpacked)
    ? unpacked
    : unpackPeer(`${unpacked}.xz`, join(directory, 'ebpf-profiler'));
  for (const runtime of runtimes)
    for (const build of SPLIT_CASES[runtime]()) {
      const rows = await compareGroup(programsOf(build), { directory, reference, seconds });
      const unseen = rows.filter(isUnseen).map(({ title }) => title);
      if (unseen.length > 0)
        throw new Error(`no or few samples of ${unseen.join(', ')}: ${directory} has the agents' logs`);
      yield rows;
    }
  rmSync(directory, { recursive: true, force: true });
}

export const isRuntimeName = (name: string): name is RuntimeName => Object.hasOwn(SPLIT_CASES, name);
export const RUNTIME_NAMES = Object.keys(SPLIT_CASES) as RuntimeName[];

/** By us: what came late is missing, and must not pass for a result. */
const isUnseen = ({ reference, ours }: SplitRow): boolean =>
  all(ours.sum) === 0 || ours.samples * 2 < reference.samples;

/** Those of a group run at once. */
const programsOf = ({ title, command, shapes, environment = {}, frameType }: SplitCase): SplitProgram[] =>
  shapes.map((shape) => ({
    ...{ title: `${title}: ${shape}`, environment, frameType },
    command: [...command, shape],
  }));

/** `directory` is kept where something fails: it holds what the agents said. */
async function compareGroup(
  group: readonly SplitProgram[],
  { directory, reference, seconds }: { directory: string; reference: string; seconds: number },
): Promise<SplitRow[]> {
  const ours = [`${ROOT}bin/everyframe`, 'agent'] as const;
  // behind the agents and this process, which receives
  const running: Running[] = group.map((program) => ({
    ...program,
    child: spawn('nice', ['-n', '10', ...program.command], {
      stdio: 'ignore',
      env: { ...process.env, ...program.environment },
    }),
  }));
  const agents: Observed[] = [];
  try {
    for (const [name, command] of Object.entries({ reference: [reference] as const, ours }))
      agents.push(await Observed.start(command, running, join(directory, `${name}.log`)));
    const until = (limitMs: number, isDone: (agent: Observed) => boolean): Promise<boolean> =>
      waitFor(limitMs, agents, running, isDone);
    if (!(await until(START_LIMIT_MS, ({ samplesAll }) => samplesAll)))
      throw new Error(`a program without a sample: ${directory} has the agents' logs`);
    // not each agent names each program, which the table then says
    await until(NAMES_LIMIT_MS, ({ knowsAll }) => knowsAll);
    const from = BigInt(Date.now()) * 1_000_000n;
    const span = { from, to: from + BigInt(seconds) * 1_000_000_000n };
    for (const agent of agents) agent.countFrom(span);
    await sleep(seconds * 1000);
    await until(SETTLE_MS, (agent) => agent.isPast(span.to + INTERVAL_NS));
    const [theirs, own] = agents as [Observed, Observed];
    console.error(
      `requests were at most ${theirs.latestMs} and ${own.latestMs} ms behind their newest samples`,
    );
    return running.map((program) => ({
      title: program.title,
      reference: theirs.seenOf(program, span),
      ours: own.seenOf(program, span),
    }));
  } finally {
    for (const { child } of running) child.kill('SIGKILL');
    await Promise.all(agents.map((agent) => agent.stop()));
  }
}

/** False after the limit. Throws where an agent or a program has ended. */
async function waitFor(
  limitMs: number,
  agents: readonly Observed[],
  running: readonly Running[],
  isDone: (agent: Observed) => boolean,
): Promise<boolean> {
  for (const end = Date.now() + limitMs; !agents.every(isDone); await sleep(POLL_MS)) {
    if (agents.some((agent) => agent.hasEnded))
      throw new Error('an agent ended: its log is in everyframe-split-*');
    const ended = running.find(({ child }) => hasEnded(child));
    if (ended) throw new Error(`${ended.title} ended with ${ended.child.exitCode ?? ended.child.signalCode}`);
    if (Date.now() > end) return false;
  }
  return true;
}

/** Windows that are off by more than their number of samples allows are in bold: {@link deviation}. */
function describeWindow(split: Split | undefined): string {
  if (split === undefined || all(split) < MIN_SAMPLES) return '–';
  const text = (shareOf(split) * 100).toFixed(0);
  const isOff = Math.abs(shareOf(split) - SHARE) > Math.max(0.03, 4 * deviation(split));
  return isOff ? `**${text}**` : text;
}

/** Rows of `old`, a table, stay where they are not among these; new ones come last. */
export function describeSplits(rows: readonly SplitRow[], old: string): string {
  const show = ({ samples, sum, windows }: Seen): string => {
    if (all(sum) === 0) return ` ${samples} | 0 | – | –`;
    const share = (shareOf(sum) * 100).toFixed(1);
    return ` ${samples} | ${all(sum)} | ${share} | ${windows.map(describeWindow).join(' ')}`;
  };
  const known = old.split('\n').filter((line) => /^\| .*: /.test(line) && !line.startsWith('| program |'));
  const lines = new Map(known.map((line) => [line.split(' |')[0]!.slice(2), line]));
  for (const { title, reference, ours } of rows)
    lines.set(title, `| ${title} |${show(reference)} |${show(ours)} |`);
  return [
    '| program | reference: samples | with a() or b() | % in a() | by windows of 5 s | everyframe: samples | with a() or b() | % in a() | by windows of 5 s |',
    '|---|--:|--:|--:|---|--:|--:|--:|---|',
    ...lines.values(),
  ].join('\n');
}
