/** Erlang stacks of real VMs, compared with what Erlang itself says of them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { missingRights } from '../support/fixtures.ts';
import { Recording } from '../support/recording.ts';
import './builds.ts';
import { type Erlang, findErlangs, runModule } from './erlangs.ts';
import { countBy, type ScriptFrame, scriptStacks, sum } from './script-frames.ts';

const SCENARIOS = [
  'chain',
  'deep',
  'variables',
  'bif',
  'compared',
  'trying',
  'catching',
  'server',
  'garbage',
  'binaries',
  'maps',
  'tables',
  'comprehension',
  'closures',
  'applying',
  'waiting',
  'numbers',
  'quoted name',
  'regex',
  'records',
];
const SAMPLES = 20;

/** Leaf first: `name file:line`; the leaf's line changes. */
const textOf = (frames: ScriptFrame[]): string | undefined =>
  frames.map(({ name, file, line }, i) => `${name} ${file}${i === 0 ? '' : `:${line}`}`).join('\n') ||
  undefined;

/** A scenario's processes begin with a function of which each has a line of its own. */
const scenarioOf = (text: string): string =>
  /scenarios:scenario\/1 .*/.exec(text)?.[0] ?? text.split('\n').at(-1)!;

async function start(erlang: Erlang): Promise<{ child: ChildProcess; expected: Map<string, string> }> {
  const args = ['-n', '19', ...runModule(erlang, join(import.meta.dirname, 'beam/scenarios.erl'))];
  const child = spawn('nice', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const expected = new Map<string, string>();
  await new Promise<void>((resolve, reject) => {
    child.once('exit', () => reject(new Error(`${args.join(' ')} ended`)));
    createInterface(child.stdout).on('line', (line) => {
      const [scenario, ...frames] = JSON.parse(line) as [string, ...[string, string, number][]];
      expected.set(scenario, textOf(frames.map(([name, file, at]) => ({ name, file, line: at })))!);
      if (expected.size === SCENARIOS.length) resolve();
    });
  });
  return { child, expected };
}

const erlangs = missingRights ? [] : findErlangs();

describe.skipIf(missingRights).each(erlangs)('$title', (erlang) => {
  let recording: Recording;
  let child: ChildProcess;
  let expected: Map<string, string>;
  let counts: Map<string, number>;

  beforeAll(async () => {
    recording = await Recording.start({ targets: [] });
    ({ child, expected } = await start(erlang));
    recording.controller.addTarget(toPid(child.pid!));
    const count = (): Map<string, number> => countBy(scriptStacks(recording, child.pid!, 'beam'), textOf);
    const have = (least: number) => (): boolean => {
      const now = count();
      return [...expected.values()].every((text) => (now.get(text) ?? 0) >= least);
    };
    const expectAll = async (least: number, timeoutMs: number): Promise<void> =>
      recording.until(have(least), timeoutMs).catch(() => {
        /* the tests below say which, and what there was instead */
      });
    await expectAll(1, 20_000);
    recording.clear();
    await expectAll(SAMPLES, 90_000);
    counts = count();
  }, 240_000);

  afterAll(async () => {
    child?.kill('SIGKILL');
    await recording?.stop();
  });

  it.for(SCENARIOS)('%s', (scenario, { task }) => {
    task.meta.build = erlang.build;
    const text = expected.get(scenario)!;
    const own = [...counts].filter(([other]) => scenarioOf(other) === scenarioOf(text));
    const total = sum(new Map(own));
    const others = own.filter(([other]) => other !== text).slice(0, 2);
    expect(total).toBeGreaterThanOrEqual(SAMPLES);
    expect(
      (counts.get(text) ?? 0) / total,
      `expected\n${text}\nbut also\n${others.join('\n\n')}`,
    ).toBeGreaterThanOrEqual(0.97);
  });

  it('all stacks reach their root', ({ task }) => {
    task.meta.build = erlang.build;
    const roots = new Set([...expected.values()].map((text) => text.split('\n').at(-1)));
    const lost = [...counts].filter(([text]) => !roots.has(text.split('\n').at(-1)));
    expect(sum(new Map(lost)) / sum(counts), lost.slice(0, 3).join('\n\n')).toBeLessThanOrEqual(0.02);
  });
});
