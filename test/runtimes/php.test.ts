/** PHP stacks of real interpreters, compared with what PHP itself says of them. */
import { afterAll, beforeAll, describe, it } from 'vitest';
import { missingRights } from '../support/fixtures.ts';
import { Recording } from '../support/recording.ts';
import './builds.ts';
import { isWholeMatrix } from './package-roots.ts';
import { startPhp, textOf } from './php-scenario.ts';
import { findPhps, type Php } from './phps.ts';
import { expectMostly, type Measured, measureScenarios, type Running } from './scenarios.ts';
import { countBy, scriptStacks } from './script-frames.ts';

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

const start = async (php: Php, scenario: string): Promise<RunningPhp> => ({
  scenario,
  ...(await startPhp(php, scenario)),
});

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
