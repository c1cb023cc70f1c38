/** Runs programs whose stacks are known, and holds what the agent says of them against that. */
import { type ChildProcess, spawn } from 'node:child_process';
import { toPid } from '../../common/base/brand.ts';
import { Recording, type Stack, share, total } from '../support/recording.ts';

export interface KnownProgram {
  title: string;
  /** Commands that it is built with; without them it is left out. */
  tools: readonly string[];
  /** Builds it; the command that runs it. */
  build(): readonly [string, ...string[]];
  isWhole(stack: Stack): boolean;
}

export interface Outcome {
  samples: number;
  /** Share of samples that are whole, 0 to 1. */
  wholeShare: number;
  /** The first few that are not whole. */
  others: Stack[];
}

const SAMPLES = 150;
/** So many at once share the machine, and its two perf events a tick. */
const BATCH = 10;
const TIMEOUT_MS = 240_000;

export const root = (stack: Stack): string => stack.frames.at(-1) ?? '';

export const countOf = (stack: Stack, pattern: RegExp): number =>
  stack.frames.filter((frame) => pattern.test(frame)).length;

/** Frames in this order, leaf first, others in between allowed. */
export function isChain(stack: Stack, ...names: RegExp[]): boolean {
  let at = 0;
  for (const frame of stack.frames) if (at < names.length && names[at]!.test(frame)) at++;
  return at === names.length;
}

/** What became of each program. */
export async function observe(programs: readonly KnownProgram[]): Promise<Map<KnownProgram, Outcome>> {
  const outcomes = new Map<KnownProgram, Outcome>();
  for (let at = 0; at < programs.length; at += BATCH)
    await observeBatch(programs.slice(at, at + BATCH), outcomes);
  return outcomes;
}

async function observeBatch(
  programs: readonly KnownProgram[],
  outcomes: Map<KnownProgram, Outcome>,
): Promise<void> {
  const running = new Map<KnownProgram, ChildProcess>();
  let recording: Recording | undefined;
  try {
    for (const program of programs) {
      const [path, ...args] = program.build();
      // nice: ten busy programs would starve the agent on a small machine
      running.set(program, spawn('nice', ['-n', '19', path, ...args], { stdio: 'ignore' }));
    }
    const pids = [...running.values()].map(({ pid }) => toPid(pid!));
    recording = await Recording.start({ targets: pids });
    const stacksOf = (program: KnownProgram): Stack[] => recording!.stacks(running.get(program)!.pid);
    const hasEnough = (p: KnownProgram): boolean =>
      total(stacksOf(p)) >= SAMPLES || hasEnded(running.get(p)!);
    // from the first whole stack of each on: what came before lacked tables
    const isReady = (p: KnownProgram): boolean => stacksOf(p).some((s) => p.isWhole(s)) || hasEnough(p);
    await recording.until(() => programs.every(isReady), TIMEOUT_MS);
    recording.clear();
    await recording.until(() => programs.every(hasEnough), TIMEOUT_MS);
    for (const program of programs) outcomes.set(program, judge(program, stacksOf(program)));
  } finally {
    for (const child of running.values()) child.kill('SIGKILL');
    await recording?.stop();
  }
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean =>
  exitCode !== null || signalCode !== null;

function judge(program: KnownProgram, stacks: Stack[]): Outcome {
  return {
    samples: total(stacks),
    wholeShare: share(stacks, (s) => program.isWhole(s)),
    others: stacks.filter((s) => !program.isWhole(s)).slice(0, 3),
  };
}
