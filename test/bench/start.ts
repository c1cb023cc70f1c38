/**
 * What starting costs an agent, and how soon a person sees functions, on an idle machine and beside programs that keep all
 * CPUs busy. The programs are those of the side-by-side benchmark.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { decodeOtlp } from '../../common/profile/otlp/otlp-decode.ts';
import { ScriptedReceiver } from '../fixtures/scripted-receiver.ts';
import { cpuSeconds, Load, median, ROOT, unpackPeer } from './measure.ts';

export interface StartOptions {
  /** Of the side-by-side benchmark; its `load` has the programs. */
  directory: string;
  rounds: number;
  /** File of the reference agent; it is left out where there is none. */
  reference: string | undefined;
}

interface Start {
  /** From the command to the first profile that arrives, and CPU time up to then. */
  firstSeconds: number;
  firstCpu: number;
  /** CPU time in the first {@link WINDOW_SECONDS}, sampling included. */
  windowCpu: number;
}

export interface Starts {
  agents: Map<string, Start[]>;
  /** Seconds from `everyframe` to an answer of its page that has functions. */
  page: Map<string, number[]>;
}

type Command = readonly [string, ...string[]];

const RATE = 97;
const WINDOW_SECONDS = 15;
/** The page is asked so often. */
const LOOK_MS = 50;
const LIMIT_MS = 120_000;
const EXPORT = '/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export';
const CHANNEL = { 'grpc.max_receive_message_length': 64 << 20 };
const EVERYFRAME = `${ROOT}bin/everyframe`;
const ANY_PORT = ['grpc', 'http', 'page'].flatMap((name) => [`--${name}-listen`, '127.0.0.1:0']);

export async function measureStarts({ directory, rounds, reference }: StartOptions): Promise<Starts> {
  const scratch = mkdtempSync(join(tmpdir(), 'everyframe-start-'));
  const starts: Starts = { agents: new Map(), page: new Map() };
  const load = new Load();
  try {
    const commands = agentCommands(scratch, reference);
    const programs = buildPrograms(join(directory, 'load'), scratch);
    for (let round = 0; round < rounds; round++) note(starts.page, 'idle machine', await timePage());
    for (const [path, ...args] of programs) load.start(path, args);
    await sleep(3000);
    await timeAgent(commands.at(-1)![1]);
    for (let round = 0; round < rounds; round++) {
      for (const [title, command] of commands) {
        rmSync(join(scratch, 'nothing'), { recursive: true, force: true });
        note(starts.agents, title, await timeAgent(command));
        console.error(`${title}: round ${round + 1} of ${rounds}`);
      }
      note(starts.page, 'all CPUs busy', await timePage());
    }
    return starts;
  } finally {
    await load.stop();
    rmSync(scratch, { recursive: true, force: true });
  }
}

function note<T>(results: Map<string, T[]>, title: string, result: T): void {
  results.set(title, [...(results.get(title) ?? []), result]);
}

function agentCommands(scratch: string, reference: string | undefined): [string, Command][] {
  const cached = (name: string): Command => [EVERYFRAME, 'agent', '--symbol-cache', join(scratch, name)];
  const commands: [string, Command][] = [
    ['everyframe, nothing on disk', cached('nothing')],
    ['everyframe, after an earlier run', cached('earlier')],
  ];
  if (reference) commands.unshift(['reference', [unpackPeer(reference, join(scratch, 'reference'))]]);
  return commands;
}

export function buildPrograms(sources: string, scratch: string): Command[] {
  const source = (name: string): string => join(sources, name);
  const built = (name: string): string => join(scratch, name);
  execFileSync('gcc', ['-O2', '-fomit-frame-pointer', '-o', built('deep'), source('deep.c')]);
  execFileSync('go', ['build', '-o', built('workgo'), source('work.go')]);
  execFileSync('javac', ['-d', scratch, source('Work.java')]);
  return [
    [built('deep'), '40'],
    [built('workgo')],
    ['python3', source('work.py')],
    ['node', source('work.js')],
    ['java', '-cp', scratch, 'Work'],
    ['perl', source('work.pl')],
  ];
}

async function timeAgent([path, ...args]: Command): Promise<Start> {
  let child: ChildProcess | undefined;
  let first: { seconds: number; cpu: number } | undefined;
  const begun = performance.now();
  const elapsed = (): number => (performance.now() - begun) / 1000;
  const receiver = await ScriptedReceiver.start({
    path: EXPORT,
    channel: CHANNEL,
    onCall: (call) => {
      call.ok();
      const hasSamples = decodeOtlp(call.request).profiles.some(({ samples }) => samples.length > 0);
      if (hasSamples) first ??= { seconds: elapsed(), cpu: cpuSeconds(child!.pid!) };
    },
  });
  const flags = ['-collection-agent', receiver.address, '-disable-tls', '-samples-per-second', String(RATE)];
  child = spawn(path, [...args, ...flags], { stdio: 'ignore' });
  const kill = (): void => void child?.kill('SIGKILL');
  process.once('exit', kill);
  try {
    await sleep(WINDOW_SECONDS * 1000);
    if (child.exitCode !== null) {
      const why = 'run it by hand to see why (the reference wants tracefs to be mounted)';
      throw new Error(`${path} ended with code ${child.exitCode} within ${WINDOW_SECONDS} s: ${why}`);
    }
    const windowCpu = cpuSeconds(child.pid!);
    while (!first && elapsed() * 1000 < LIMIT_MS) await sleep(LOOK_MS);
    if (!first) throw new Error(`${path} pushed nothing within ${LIMIT_MS} ms`);
    return { firstSeconds: first.seconds, firstCpu: first.cpu, windowCpu };
  } finally {
    await end(child);
    process.off('exit', kill);
    receiver.stop();
  }
}

/** Seconds from the command to the first answer of the page with functions. */
async function timePage(): Promise<number> {
  const begun = performance.now();
  const child = spawn(EVERYFRAME, ['run', ...ANY_PORT], { stdio: ['ignore', 'ignore', 'pipe'] });
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  let printed = '';
  child.stderr.on('data', (text) => {
    printed += text;
  });
  try {
    while (!(await hasFunctions(/"page":"(http[^"]+)"/.exec(printed)?.[1]))) {
      if (performance.now() - begun > LIMIT_MS) throw new Error(`no function on the page in ${LIMIT_MS} ms`);
      await sleep(LOOK_MS);
    }
    return (performance.now() - begun) / 1000;
  } finally {
    await end(child);
    process.off('exit', kill);
  }
}

async function hasFunctions(page: string | undefined): Promise<boolean> {
  if (!page) return false;
  const answer = await fetch(new URL('api/v1/top?range=5m', page));
  const { functions } = (await answer.json()) as { functions?: { name: string }[] };
  return (functions ?? []).some(({ name }) => name !== '');
}

async function end(child: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => child.once('exit', resolve));
  if (child.exitCode === null && child.kill('SIGTERM')) await ended;
}

export function describeStarts({ agents, page }: Starts): string {
  const show = (values: number[]): string =>
    `${median(values).toFixed(2)} (${Math.min(...values).toFixed(2)}–${Math.max(...values).toFixed(2)})`;
  const rows = [...agents].map(
    ([title, starts]) =>
      `| ${title} | ${show(starts.map((s) => s.firstSeconds))} | ${show(starts.map((s) => s.firstCpu))} | ${show(starts.map((s) => s.windowCpu))} |`,
  );
  return [
    `| beside busy programs | first profile after, s | CPU up to then, s | CPU in the first ${WINDOW_SECONDS} s, s |`,
    '|---|--:|--:|--:|',
    ...rows,
    '',
    '| from `everyframe` to functions on its page | s |',
    '|---|--:|',
    ...[...page].map(([title, seconds]) => `| ${title} | ${show(seconds)} |`),
  ].join('\n');
}
