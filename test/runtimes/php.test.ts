/** PHP stacks of real interpreters, compared with what PHP itself says of them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { missingRights } from '../support/fixtures.ts';
import { Recording } from '../support/recording.ts';
import './builds.ts';
import { isWholeMatrix } from './debian-roots.ts';
import { findPhps, type Php } from './phps.ts';
import { countBy, type ScriptFrame, scriptStacks, sum } from './script-frames.ts';

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

interface Running {
  scenario: string;
  child: ChildProcess;
  expected: string;
}

/** Before 8.4 a closure has no name of its own, and the agent gives it one. */
const plainName = (name: string): string => name.replace(/\{closure:.*\}/, '{closure}');

/** Leaf first: `name file:line`. The leaf's line changes; code that the JIT has compiled writes back few. */
const textOf = (frames: ScriptFrame[]): string =>
  frames
    .map(({ name, file, line }, i) => `${plainName(name)} ${file}${i === 0 ? '' : `:${line}`}`)
    .join('\n');

async function start(php: Php, scenario: string): Promise<Running> {
  const script = php.place(join(import.meta.dirname, 'php/scenarios.php'));
  php.place(join(import.meta.dirname, 'php/included.php'));
  const args = ['-n', '19', ...php.command, script, scenario];
  const child = spawn('nice', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const line = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).once('line', resolve);
    child.once('exit', () => reject(new Error(`${args.join(' ')} ended`)));
  });
  const frames = JSON.parse(line) as [string, string, number][];
  return { scenario, child, expected: textOf(frames.map(([name, file, at]) => ({ name, file, line: at }))) };
}

const phps = missingRights ? [] : findPhps().filter(({ jit }) => isWholeMatrix || jit !== 'function');

describe.skipIf(missingRights).each(phps)('$title', (php) => {
  const scenarios = SCENARIOS.filter((name) => php.number >= (OLDEST_WITH[name] ?? 0));
  let recording: Recording;
  const results = new Map<string, { expected: string; counts: Map<string, number> }>();

  beforeAll(async () => {
    recording = await Recording.start({ targets: [] });
    for (let i = 0; i < scenarios.length; i += AT_ONCE) {
      const group = await Promise.all(scenarios.slice(i, i + AT_ONCE).map((name) => start(php, name)));
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

  const countsOf = ({ child, scenario, expected }: Running): Map<string, number> => {
    const counts = countBy(scriptStacks(recording, child.pid!, 'php'), textOf);
    const leaf = expected.slice(0, expected.indexOf('\n') + 1);
    const isCounted = (text: string): boolean =>
      !BRIEF.has(scenario) || text.startsWith(leaf) || text.includes('[php');
    return new Map([...counts].filter(([text]) => isCounted(text)));
  };

  /** From the first sample of each with the expected stack on: what came before lacked tables. */
  async function measure(group: Running[]): Promise<void> {
    await recording
      .until(() => group.every((one) => countsOf(one).has(one.expected)), 30_000)
      .catch(() => {
        /* the tests below say which, and what there was instead */
      });
    recording.clear();
    await recording.until(() => group.every((one) => sum(countsOf(one)) >= SAMPLES), 45_000).catch(() => {});
    for (const one of group) results.set(one.scenario, { expected: one.expected, counts: countsOf(one) });
    recording.clear();
  }

  it.for(scenarios)('%s', (scenario, { task }) => {
    task.meta.build = php.build;
    const { expected, counts } = results.get(scenario)!;
    const total = sum(counts);
    const others = [...counts].filter(([text]) => text !== expected).slice(0, 2);
    expect(total).toBeGreaterThanOrEqual(SAMPLES);
    expect(
      (counts.get(expected) ?? 0) / total,
      `expected\n${expected}\nbut also\n${others.join('\n\n')}`,
    ).toBeGreaterThanOrEqual(0.97);
  });
});
