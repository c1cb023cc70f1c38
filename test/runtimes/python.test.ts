/** Python stacks of real interpreters, compared with what Python itself says of them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { missingRights } from '../support/fixtures.ts';
import { Recording } from '../support/recording.ts';
import './builds.ts';
import { findPythons, type Python } from './pythons.ts';

/** The scenario `native` with CPython's perf trampoline, which 3.12 brought. */
const PERF = 'native -X perf';
/** What `python -c` runs. */
const COMMAND_LINE = '-c';
const SCENARIOS = [
  'recursion',
  'deep',
  'native',
  'attribute',
  'closure',
  'delegating',
  'coroutines',
  'exceptions',
  'evaluated',
  'callback',
  'regular_expression',
  'comprehension',
  'names',
  'thread',
  'many_keys',
  'subinterpreter',
  'nested_subinterpreters',
  'parallel_subinterpreters',
  COMMAND_LINE,
  PERF,
];
/** Minor versions. */
const OLDEST_WITH: Readonly<Record<string, number>> = {
  subinterpreter: 8,
  nested_subinterpreters: 8,
  // before, a state keeps the number of the thread that has made its interpreter
  parallel_subinterpreters: 12,
  [PERF]: 12,
};
/** A few at a time: all at once would starve the agent on a small machine. */
const AT_ONCE = 5;
const SAMPLES = 40;

type Expected = [name: string, file: string, line: number, firstLine: number][];

interface Running {
  scenario: string;
  child: ChildProcess;
  expected: Expected;
}

/** Python frames as text, leaf first: `name file:line`; the leaf's line changes, so it is left out. */
const toText = (frames: { name: string; file: string; line: number }[]): string =>
  frames
    .map(({ name, file, line }, i) => (i === 0 ? `${name} ${file}` : `${name} ${file}:${line}`))
    .join('\n');

const commandLine = (script: string): string[] => [
  COMMAND_LINE,
  `import sys\nsys.path.insert(0, '${dirname(script)}')\nfrom scenarios import burn\ndef command():\n    burn()\ncommand()\n`,
];

async function start(python: Python, scenario: string): Promise<Running> {
  const [name, ...options] = scenario.split(' ');
  const script = python.place(join(import.meta.dirname, 'python/scenarios.py'));
  const args = [
    ...python.command,
    ...(name === COMMAND_LINE ? commandLine(script) : [...options, script, name!]),
  ];
  const child = spawn('nice', ['-n', '19', ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, LC_ALL: 'C.UTF-8', PYTHONIOENCODING: 'utf-8' },
  });
  const line = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).once('line', resolve);
    child.once('exit', () => reject(new Error(`${args.join(' ')} ended`)));
  });
  return { scenario, child, expected: JSON.parse(line) as Expected };
}

/** Up to 3.10 each Python call takes three native frames: 500 calls are more than the 1,023 frames of a stack. */
const depthOf = (python: Python, scenario: string): number =>
  scenario === 'deep' && python.minor <= 10 ? 200 : Number.POSITIVE_INFINITY;

/** Samples by the text of their innermost Python frames, of one process. */
function pythonStacks(recording: Recording, pid: number, depth: number): Map<string, number> {
  const counts = new Map<string, number>();
  for (const profile of recording.profiles) {
    for (const sample of profile.samples) {
      if (profile.processes[sample.process]!.pid !== pid) continue;
      const frames = [...profile.stacks[sample.stack]!].flatMap((at) => {
        const { frameType, lines } = profile.locations[at]!;
        if (frameType !== 'cpython') return [];
        const { func, line } = lines[0]!;
        const { name, filename } = profile.functions[func]!;
        return [{ name, file: filename, line }];
      });
      const text = toText(frames.slice(0, depth));
      counts.set(text, (counts.get(text) ?? 0) + sample.value);
    }
  }
  return counts;
}

const sum = (counts: Map<string, number>): number => [...counts.values()].reduce((a, b) => a + b, 0);

describe.skipIf(missingRights).each(missingRights ? [] : findPythons())('$title', (python) => {
  const scenarios = SCENARIOS.filter((name) => python.minor >= (OLDEST_WITH[name] ?? 0));
  let recording: Recording;
  const results = new Map<string, { expected: string; counts: Map<string, number> }>();

  beforeAll(async () => {
    recording = await Recording.start({ targets: [] });
    for (let i = 0; i < scenarios.length; i += AT_ONCE) {
      const group = await Promise.all(scenarios.slice(i, i + AT_ONCE).map((name) => start(python, name)));
      for (const { child } of group) recording.controller.addTarget(toPid(child.pid!));
      try {
        await measure(group);
      } finally {
        for (const { child } of group) child.kill('SIGKILL');
      }
    }
  }, 240_000);

  afterAll(async () => {
    await recording?.stop();
  });

  /** From the first sample of each with the expected leaf and a root on: what came before lacked tables. */
  async function measure(group: Running[]): Promise<void> {
    const countsOf = ({ child, scenario }: Running) =>
      pythonStacks(recording, child.pid!, depthOf(python, scenario));
    const textOf = ({ expected, scenario }: Running) =>
      toText(
        expected.slice(0, depthOf(python, scenario)).map(([name, file, line]) => ({ name, file, line })),
      );
    await recording
      .until(() => group.every((one) => countsOf(one).has(textOf(one))), 45_000)
      .catch(() => {
        /* the tests below say which, and what there was instead */
      });
    recording.clear();
    await recording.until(() => group.every((one) => sum(countsOf(one)) >= SAMPLES), 45_000).catch(() => {});
    for (const one of group) {
      results.set(one.scenario, { expected: textOf(one), counts: countsOf(one) });
    }
    recording.clear();
  }

  it.for(scenarios)('%s', (scenario, { task }) => {
    task.meta.build = python.build;
    const { expected, counts } = results.get(scenario)!;
    const total = sum(counts);
    const right = counts.get(expected) ?? 0;
    const others = [...counts].filter(([text]) => text !== expected).slice(0, 2);
    expect(total).toBeGreaterThanOrEqual(SAMPLES);
    expect(right / total, `expected\n${expected}\nbut also\n${others.join('\n\n')}`).toBeGreaterThanOrEqual(
      0.97,
    );
  });
});
