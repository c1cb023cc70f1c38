/** Erlang and Elixir stacks of real VMs, compared with what they themselves say of them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { readAttributes } from '../../common/profile/model/attributes.ts';
import { BEAM_PROCESS_NAME } from '../../common/profile/model/sample-attributes.ts';
import { missingRights } from '../support/fixtures.ts';
import { Recording } from '../support/recording.ts';
import './builds.ts';
import { type Erlang, findElixirs, findErlangs, runModule, runScript } from './erlangs.ts';
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
  'dirty',
  'mailed',
];
/** 24 has the stack of comparisons and guards in a register that is not restored; 29 does not export what runs functions of C on
 * threads of their own. */
const HIDDEN = ['24 compared', '29 dirty'];
const SAMPLES = 20;
const CUT = '[cut: code that no file backs]';
/** Most where garbage collection frees the memory that a stack was in: until then the new one's end is not told. */
const CUT_WHILE_MOVED = 0.04;
/** Of few samples a share says little. */
const MAY_DIFFER = 2;

/** Leaf first: `name file:line`; the leaf's line changes. Erlang has none of the stubs in its traces that call functions of C. */
const textOf = (frames: ScriptFrame[]): string | undefined =>
  frames
    .filter(({ name, file }, i) => i > 0 || file !== '' || !name.startsWith('erlang:'))
    .map(({ name, file, line }, i) => `${name} ${file}${i === 0 ? '' : `:${line}`}`)
    .join('\n') || undefined;

/** A scenario's processes begin with a function of which each has a line of its own. */
const scenarioOf = (text: string): string =>
  /(?:scenarios:|Shop\.Cart\.)scenario\/1 .*/.exec(text)?.[0] ?? text.split('\n').at(-1)!;

interface Program extends Erlang {
  scenarios: readonly string[];
  run: readonly string[];
}

const ELIXIR_SCENARIOS = [
  'enum',
  'comprehension',
  'server',
  'question',
  'operator',
  'rescued',
  'streamed',
  'nested',
];

function findPrograms(): Program[] {
  const folder = join(import.meta.dirname, 'beam');
  const ofErlang = findErlangs().map((erlang) => {
    const scenarios = SCENARIOS.filter((name) => !HIDDEN.includes(`${erlang.build.runtimeVersion} ${name}`));
    return { ...erlang, scenarios, run: [...runModule(erlang, join(folder, 'scenarios.erl')), ...scenarios] };
  });
  const ofElixir = findElixirs().map((elixir) => ({
    ...elixir,
    scenarios: ELIXIR_SCENARIOS,
    run: runScript(elixir, join(folder, 'scenarios.exs')),
  }));
  return [...ofErlang, ...ofElixir];
}

async function start({
  scenarios,
  run,
}: Program): Promise<{ child: ChildProcess; expected: Map<string, string> }> {
  const args = ['-n', '19', ...run];
  const child = spawn('nice', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const expected = new Map<string, string>();
  await new Promise<void>((resolve, reject) => {
    child.once('exit', () => reject(new Error(`${args.join(' ')} ended`)));
    createInterface(child.stdout).on('line', (line) => {
      const [scenario, ...frames] = JSON.parse(line) as [string, ...[string, string, number][]];
      expected.set(scenario, textOf(frames.map(([name, file, at]) => ({ name, file, line: at })))!);
      if (scenarios.every((name) => expected.has(name))) resolve();
    });
  });
  return { child, expected };
}

const programs = missingRights ? [] : findPrograms();

describe.skipIf(missingRights).each(programs)('$title', (program) => {
  const { build, scenarios } = program;
  let recording: Recording;
  let child: ChildProcess;
  let expected: Map<string, string>;
  let counts: Map<string, number>;

  beforeAll(async () => {
    recording = await Recording.start({ targets: [] });
    ({ child, expected } = await start(program));
    recording.controller.addTarget(toPid(child.pid!));
    const count = (): Map<string, number> => countBy(scriptStacks(recording, child.pid!, 'beam'), textOf);
    const have = (least: number) => (): boolean => {
      const now = count();
      return scenarios.every((name) => (now.get(expected.get(name)!) ?? 0) >= least);
    };
    const expectAll = async (least: number, timeoutMs: number): Promise<void> =>
      recording.until(have(least), timeoutMs).catch(() => {
        /* the tests below say which, and what there was instead */
      });
    await expectAll(1, 20_000);
    recording.clear();
    await expectAll(SAMPLES, 60_000);
    counts = count();
  }, 240_000);

  afterAll(async () => {
    child?.kill('SIGKILL');
    await recording?.stop();
  });

  it.for(scenarios)('%s', (scenario, { task }) => {
    task.meta.build = build;
    const text = expected.get(scenario)!;
    const own = [...counts].filter(([other]) => scenarioOf(other) === scenarioOf(text));
    const total = sum(new Map(own));
    const others = own.filter(([other]) => other !== text);
    const mayDiffer = Math.max(MAY_DIFFER, total * 0.03);
    expect(total).toBeGreaterThanOrEqual(SAMPLES);
    expect(
      sum(new Map(others)),
      `of ${total} others than\n${text}\nsuch as\n${others.slice(0, 2).join('\n\n')}`,
    ).toBeLessThanOrEqual(mayDiffer);
  });

  it.skipIf(scenarios === ELIXIR_SCENARIOS)('samples say which process it is', ({ task }) => {
    task.meta.build = build;
    const names = recording.profiles.flatMap(({ samples, processes }) =>
      samples.map(({ process }) =>
        readAttributes(processes[process]!.attributes ?? '').get(BEAM_PROCESS_NAME),
      ),
    );
    expect([...new Set(names)].filter((name) => name !== undefined)).toEqual(
      expect.arrayContaining(['chain', 'deep', 'quoted name']),
    );
  });

  it.skipIf(build.runtimeVersion === '24')(
    'hardly a stack ends where code of the JIT has called C',
    ({ task }) => {
      task.meta.build = build;
      const ended = recording.stacks(child.pid!).filter(({ frames }) => frames.at(-1) === CUT);
      const count = ended.reduce((total, stack) => total + stack.count, 0);
      const texts = ended.map(({ frames }) => frames.join('\n')).slice(0, 3);
      expect(count / sum(counts), texts.join('\n\n')).toBeLessThanOrEqual(CUT_WHILE_MOVED);
    },
  );

  it('all stacks reach their root', ({ task }) => {
    task.meta.build = build;
    const roots = new Set([...expected.values()].map((text) => text.split('\n').at(-1)));
    const lost = [...counts].filter(([text]) => !roots.has(text.split('\n').at(-1)));
    expect(sum(new Map(lost)) / sum(counts), lost.slice(0, 3).join('\n\n')).toBeLessThanOrEqual(0.02);
  });
});
