/**
 * How long after its start a new process has its first stack with names of its own functions, by the times of samples,
 * on an agent that runs: processes whose interpreter the agent has never met (each runs a copy of it with other
 * contents, so neither memory nor disk knows its table), and such of one that it has read before.
 */
import { execFileSync, spawn } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { Controller } from '../../agent/controller.ts';
import type { FrameType, Profile } from '../../common/profile/model/profile.ts';
import { median } from './measure.ts';

interface Script {
  title: string;
  interpreter: string;
  script: string;
  frameType: FrameType;
}

/** Milliseconds from the start of a process to the time of a sample. */
interface Start {
  /** Any sample of it. */
  sampled: number;
  /** One in which the script's function has its name. */
  named: number;
}

interface ScriptStarts {
  title: string;
  /** Of interpreters that were never met; the first one has its runtime's code loaded, too. */
  unmet: Start[];
  further: Start[];
}

const RATE = 97;
const INTERVAL_MS = 250;
const LIMIT_MS = 60_000;
/** Without a file that is met or read. */
const QUIET_MS = 3000;
const MAX_MEMORY = 2 ** 32;
const QUIET = { info: () => {}, debug: () => {}, warn: (message: string) => console.error(message) };

function writeScripts(directory: string): Script[] {
  const [python, node] = [join(directory, 'busy.py'), join(directory, 'busy.cjs')];
  writeFileSync(python, 'def busy():\n    while True:\n        sum(range(100))\n\nbusy()\n');
  writeFileSync(node, 'function busy() {\n  for (;;) JSON.parse("[1,2,3]");\n}\nbusy();\n');
  const version = execFileSync('/usr/bin/python3', ['--version'], { encoding: 'utf8' }).trim();
  return [
    { title: version, interpreter: realpathSync('/usr/bin/python3'), script: python, frameType: 'cpython' },
    {
      title: `Node ${process.versions.node}`,
      interpreter: process.execPath,
      script: node,
      frameType: 'v8js',
    },
  ];
}

/** The first sample of a process, and the first with `busy`, in Unix milliseconds; undefined: none yet. */
class Watch {
  sampled: number | undefined;
  named: number | undefined;
  readonly #pid: number;
  readonly #frameType: FrameType;

  constructor(pid: number, frameType: FrameType) {
    this.#pid = pid;
    this.#frameType = frameType;
  }

  take({ samples, processes, stacks, locations, functions }: Profile): void {
    for (const { process: at, stack, timestamps } of samples) {
      if (processes[at]!.pid !== this.#pid) continue;
      const time = Number(timestamps.reduce((a, b) => (b < a ? b : a))) / 1e6;
      this.sampled = Math.min(this.sampled ?? time, time);
      const isNamed = [...stacks[stack]!].some((frame) => {
        const { frameType, lines } = locations[frame]!;
        return frameType === this.#frameType && lines.some(({ func }) => functions[func]!.name === 'busy');
      });
      if (isNamed) this.named = Math.min(this.named ?? time, time);
    }
  }
}

export async function measureFirstStacks(starts: number): Promise<ScriptStarts[]> {
  const directory = mkdtempSync(join(tmpdir(), 'everyframe-first-'));
  let watch: Watch | undefined;
  const controller = await Controller.start(
    {
      samplesPerSecond: RATE,
      symbols: 'full',
      sourceMaps: true,
      sendIdleFrames: false,
      maxUserFrames: 1023,
      maxTableBytes: 64 << 20,
      maxMemoryBytes: MAX_MEMORY,
      intervalMs: INTERVAL_MS,
      jitter: 0,
      probabilisticThreshold: 100,
      probabilisticIntervalMs: 60_000,
    },
    { push: (profile) => watch?.take(profile) },
    QUIET,
  );
  const measure = async ({ interpreter, script, frameType, title }: Script): Promise<Start> => {
    const begun = Date.now();
    const child = spawn(interpreter, [script], {
      stdio: 'ignore',
      env: { ...process.env, PYTHONHOME: '/usr' },
    });
    const own = new Watch(child.pid!, frameType);
    watch = own;
    try {
      while (own.named === undefined) {
        if (Date.now() - begun > LIMIT_MS) throw new Error(`${title}: no stack with names in ${LIMIT_MS} ms`);
        await sleep(20);
      }
      return { sampled: own.sampled! - begun, named: own.named - begun };
    } finally {
      child.kill('SIGKILL');
    }
  };
  try {
    await untilQuiet(controller);
    const results: ScriptStarts[] = [];
    for (const script of writeScripts(directory)) {
      const unmet: Start[] = [];
      for (let i = 0; i < starts; i++) {
        const interpreter = copyWithMark(script.interpreter, join(directory, 'interpreters'), i);
        unmet.push(await measure({ ...script, interpreter }));
        rmSync(interpreter);
      }
      await measure(script);
      const further: Start[] = [];
      for (let i = 0; i < starts; i++) further.push(await measure(script));
      results.push({ title: script.title, unmet, further });
      console.error(describeFirstStacks(results.slice(-1)));
    }
    return results;
  } finally {
    await controller.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** The same program in a file that nobody has seen. */
function copyWithMark(path: string, folder: string, number: number): string {
  mkdirSync(folder, { recursive: true });
  const copy = join(folder, basename(path));
  copyFileSync(path, copy);
  appendFileSync(copy, `${process.pid} ${number} ${Date.now()}`);
  chmodSync(copy, 0o755);
  return copy;
}

/** Until the agent has read the files of what ran before: an agent that has just begun has a queue of them. */
async function untilQuiet(controller: Controller): Promise<void> {
  const end = Date.now() + LIMIT_MS;
  let [known, since] = [-1, Date.now()];
  while (Date.now() < end && Date.now() - since < QUIET_MS) {
    const counters = controller.counters();
    const now = (counters['executables.reported'] ?? 0) + (counters['tables.installed'] ?? 0);
    if (now !== known) [known, since] = [now, Date.now()];
    await sleep(200);
  }
}

export function describeFirstStacks(results: readonly ScriptStarts[]): string {
  const ms = (values: number[]): string => `${median(values).toFixed(0)} (${Math.max(...values).toFixed(0)})`;
  return [
    '| program | interpreter never met: sampled, ms | named, ms | further: sampled, ms | named, ms |',
    '|---|--:|--:|--:|--:|',
    ...results.map(
      ({ title, unmet, further }) =>
        `| ${title} | ${ms(unmet.map(({ sampled }) => sampled))} | ${ms(unmet.map(({ named }) => named))} | ${ms(further.map(({ sampled }) => sampled))} | ${ms(further.map(({ named }) => named))} |`,
    ),
  ].join('\n');
}
