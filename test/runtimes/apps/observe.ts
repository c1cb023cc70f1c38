/** Runs an app under load, and records it as a person does. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { readAttributes } from '../../../common/profile/model/attributes.ts';
import type { Profile } from '../../../common/profile/model/profile.ts';
import { type App, type Command, PORT } from './apps.ts';

const ROOT = join(import.meta.dirname, '../../..');
const CONNECTIONS = 4;
/** What the agent says in place of a name; stubs of the JVM, of .NET and of V8 are such as they have names. */
const MARK = /^\[(?!jvm|clr|v8)\w+: /;
const START_LIMIT_MS = 60_000;

/** What a recording shows of an app, in samples. */
export interface Shown {
  samples: number;
  /** No part of the stack is missing, and every frame that is not native has a name. */
  whole: number;
  /** In the app's own functions, and those of them in which one is at a line that is not its own. */
  own: number;
  elsewhere: number;
  /** Of those in the innermost of its functions: callers of the app's stand further out, up to the process's or thread's start. */
  leaf: number;
  rooted: number;
  /** Those with the app's attribute. */
  attributed: number;
  /** Marks in place of frames → samples. */
  missing: Map<string, number>;
  /** Own functions with their lines. */
  seen: Map<string, Set<number>>;
}

/** Starts the app, asks it until its answers come, and records for so many seconds while it is asked. `output`: .otlp */
export async function recordApp(commands: Command[], seconds: number, output: string): Promise<void> {
  const children = commands.map(({ command: [program, ...args], environment }) =>
    spawn('nice', ['-n', '5', program, ...args], {
      stdio: ['ignore', 'ignore', 'inherit'],
      cwd: '/',
      env: { ...process.env, PWD: '/', LC_ALL: 'C', ...environment },
      detached: true,
    }),
  );
  const load = new AbortController();
  try {
    await answers();
    for (const { exitCode, spawnargs } of children)
      if (exitCode !== null) throw new Error(`another program answers: ${spawnargs.join(' ')} has ended`);
    for (let i = 0; i < CONNECTIONS; i++) void askUntil(load.signal, i);
    const pids = children.flatMap(({ pid }) => ['-p', `${pid}`]);
    const args = ['record', '-F', '199', '-d', `${seconds}s`, ...pids, '--force', '-o', output];
    const { stderr } = await promisify(execFile)(join(ROOT, 'bin/everyframe'), args);
    console.log(stderr);
  } finally {
    load.abort();
    await Promise.all(children.map(end));
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  // workers are of its group
  process.kill(-child.pid!, 'SIGKILL');
  await ended;
}

async function ask(user: number): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${PORT}/orders?user=${user}`);
  const text = await answer.text();
  // of the first two: 1 and the root of 2
  if (!answer.ok || !text.includes('2.41')) throw new Error(`${answer.status}: ${text.slice(0, 2000)}`);
}

async function answers(): Promise<void> {
  for (const limit = Date.now() + START_LIMIT_MS; ; await sleep(250)) {
    try {
      return await ask(0);
    } catch (error) {
      if (Date.now() > limit) throw error;
    }
  }
}

async function askUntil(signal: AbortSignal, user: number): Promise<void> {
  // an app that is ended answers no more
  while (!signal.aborted) await ask(user).catch(() => sleep(250));
}

export function describeShown(app: App, profile: Profile): Shown {
  const lines = readFileSync(join(import.meta.dirname, app.folder ?? app.name, app.source), 'utf8').split(
    '\n',
  );
  const shown: Shown = {
    ...{ samples: 0, whole: 0, own: 0, elsewhere: 0, leaf: 0, rooted: 0, attributed: 0 },
    ...{ missing: new Map(), seen: new Map() },
  };
  for (const { stack, value, process: at } of profile.samples) {
    const locations = Array.from(profile.stacks[stack]!, (at) => profile.locations[at]!);
    const functions = locations.flatMap((location) =>
      location.lines.map(({ func, line }) => ({ ...profile.functions[func]!, line })),
    );
    const names = functions.map(({ name }) => name);
    const marks = new Set([
      ...names.filter((name) => MARK.test(name)),
      ...locations
        .filter(({ lines, frameType }) => lines.length === 0 && frameType === app.frameType)
        .map(() => 'no name'),
    ]);
    const own = functions.filter(
      ({ name, filename }) => basename(filename) === app.source && app.own.some(([text]) => text === name),
    );
    shown.samples += value;
    if (marks.size === 0) shown.whole += value;
    for (const mark of marks) shown.missing.set(mark, (shown.missing.get(mark) ?? 0) + value);
    for (const { name, line } of own) shown.seen.set(name, (shown.seen.get(name) ?? new Set()).add(line));
    if (own.length > 0) shown.own += value;
    const isAt = ({ name, line }: { name: string; line: number }): boolean =>
      app.own.find(([text]) => text === name)![1].test(lines[line - 1] ?? '');
    if (!own.every(isAt)) shown.elsewhere += value;
    if (!own.some(({ name }) => name === app.own[0]![0])) continue;
    shown.leaf += value;
    const attributes = readAttributes(profile.processes[at]!.attributes ?? '');
    if (app.attribute && attributes.get(app.attribute[0]) === app.attribute[1]) shown.attributed += value;
    if (isInOrder(names, [...app.own.slice(1).map(([name]) => name), ...app.outer])) shown.rooted += value;
  }
  return shown;
}

function isInOrder(functions: readonly string[], expected: readonly string[]): boolean {
  let at = -1;
  return expected.every((name) => {
    at = functions.indexOf(name, at + 1);
    return at >= 0;
  });
}
