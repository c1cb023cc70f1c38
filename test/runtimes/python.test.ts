/** Python stacks of real interpreters, compared with what Python itself says of them. */
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, it } from 'vitest';
import { eachOf } from '../support/each-of.ts';
import { Recording } from '../support/recording.ts';
import './builds.ts';
import { findPythons, type Python } from './pythons.ts';
import { expectMostly, type Measured, measureScenarios, type Running, startScenario } from './scenarios.ts';

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
const AT_ONCE = 5;
const SAMPLES = 40;

type Expected = [name: string, file: string, line: number, firstLine: number][];

interface RunningPython extends Running {
  scenario: string;
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

/** Up to 3.10 each Python call takes three native frames: 500 calls are more than the 1,023 frames of a stack. */
const depthOf = (python: Python, scenario: string): number =>
  scenario === 'deep' && python.minor <= 10 ? 200 : Number.POSITIVE_INFINITY;

async function start(python: Python, scenario: string): Promise<RunningPython> {
  const [name, ...options] = scenario.split(' ');
  const script = python.place(join(import.meta.dirname, 'python/scenarios.py'));
  const { child, said } = await startScenario<Expected>(
    [...python.command, ...(name === COMMAND_LINE ? commandLine(script) : [...options, script, name!])],
    { ...process.env, LC_ALL: 'C.UTF-8', PYTHONIOENCODING: 'utf-8' },
  );
  const innermost = said.slice(0, depthOf(python, scenario));
  return { scenario, child, expected: toText(innermost.map(([name, file, line]) => ({ name, file, line }))) };
}

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

eachOf(findPythons)('$title', (python) => {
  const scenarios = SCENARIOS.filter((name) => python.minor >= (OLDEST_WITH[name] ?? 0));
  let recording: Recording;
  let results: Map<string, Measured>;

  beforeAll(async () => {
    recording = await Recording.start({ targets: [] });
    results = await measureScenarios(recording, {
      ...{ names: scenarios, atOnce: AT_ONCE, samples: SAMPLES },
      start: (name) => start(python, name),
      countsOf: ({ child, scenario }) => pythonStacks(recording, child.pid!, depthOf(python, scenario)),
    });
  }, 240_000);

  afterAll(async () => {
    await recording?.stop();
  });

  it.for(scenarios)('%s', (scenario, { task }) => {
    task.meta.build = python.build;
    expectMostly(results.get(scenario)!, SAMPLES);
  });
});
