/** PHP stacks of real interpreters, compared with what PHP itself says of them. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { missingRights } from '../support/fixtures.ts';
import { Recording } from '../support/recording.ts';
import './builds.ts';
import { isWholeMatrix } from './debian-roots.ts';
import { findPhps, type Php } from './phps.ts';
import { expectMostly, type Measured, measureScenarios, type Running, startScenario } from './scenarios.ts';
import { countBy, type ScriptFrame, scriptStacks } from './script-frames.ts';

const SCENARIOS = [
  'recursion',
  'deep',
  'methods',
  'callback',
  'sort',
  'regular_expression',
  'generator',
  'delegating',
  'resumed',
  'magic_get',
  'magic_call',
  'to_string',
  'destructor',
  'exception',
  'autoload',
  'included',
  'evaluated',
  'fleeting',
  'evaluated_briefly',
  'internal',
  'fiber',
];
/** Versions, 802 of 8.2. */
const OLDEST_WITH: Readonly<Record<string, number>> = { fiber: 801 };
/** Their functions live for less than a millisecond; between them other code runs, which is not counted. */
const BRIEF: ReadonlySet<string> = new Set(['fleeting', 'evaluated_briefly']);
const AT_ONCE = 5;
const SAMPLES = 40;

interface RunningPhp extends Running {
  scenario: string;
}

/** Before 8.4 a closure has no name of its own, and the agent gives it one. */
const plainName = (name: string): string => name.replace(/\{closure:.*\}/, '{closure}');

/** Leaf first: `name file:line`. The leaf's line changes; code that the JIT has compiled writes back few. */
const textOf = (frames: ScriptFrame[]): string =>
  frames
    .map(({ name, file, line }, i) => `${plainName(name)} ${file}${i === 0 ? '' : `:${line}`}`)
    .join('\n');

async function start(php: Php, scenario: string): Promise<RunningPhp> {
  const script = php.place(join(import.meta.dirname, 'php/scenarios.php'));
  php.place(join(import.meta.dirname, 'php/included.php'));
  const { child, said } = await startScenario<[string, string, number][]>([...php.command, script, scenario]);
  return { scenario, child, expected: textOf(said.map(([name, file, at]) => ({ name, file, line: at }))) };
}

const phps = missingRights ? [] : findPhps().filter(({ jit }) => isWholeMatrix || jit !== 'function');

describe.skipIf(missingRights).each(phps)('$title', (php) => {
  const scenarios = SCENARIOS.filter((name) => php.number >= (OLDEST_WITH[name] ?? 0));
  let recording: Recording;
  let results: Map<string, Measured>;

  beforeAll(async () => {
    recording = await Recording.start({ targets: [] });
    results = await measureScenarios(recording, {
      ...{ names: scenarios, atOnce: AT_ONCE, samples: SAMPLES, countsOf },
      start: (name) => start(php, name),
    });
  }, 240_000);

  afterAll(async () => {
    await recording?.stop();
  });

  const countsOf = ({ child, scenario, expected }: RunningPhp): Map<string, number> => {
    const counts = countBy(scriptStacks(recording, child.pid!, 'php'), textOf);
    const leaf = expected.slice(0, expected.indexOf('\n') + 1);
    const isCounted = (text: string): boolean =>
      !BRIEF.has(scenario) || text.startsWith(leaf) || text.includes('[php');
    return new Map([...counts].filter(([text]) => isCounted(text)));
  };

  it.for(scenarios)('%s', (scenario, { task }) => {
    task.meta.build = php.build;
    expectMostly(results.get(scenario)!, SAMPLES);
  });
});
