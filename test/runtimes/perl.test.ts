/** Perl stacks of real interpreters, compared with what Perl itself says of them. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { missingRights } from '../support/fixtures.ts';
import { Recording } from '../support/recording.ts';
import './builds.ts';
import { findPerls, type Perl } from './perls.ts';
import { expectMostly, type Measured, measureScenarios, type Running, startScenario } from './scenarios.ts';
import { countBy, type ScriptFrame, scriptStacks } from './script-frames.ts';

const AT_ONCE = 11;
const SAMPLES = 20;

/** Leaf first: `name file:line`. The leaf's line changes; Perl itself gives closures no line. */
const textOf = (frames: ScriptFrame[]): string =>
  frames
    .map(({ name, file, line }, i) => {
      const plain = name.replace(/(__ANON__):\d+$/, '$1');
      return `${plain} ${file}${i === 0 ? '' : `:${line}`}`;
    })
    .join('\n');

function scriptOf(perl: Perl): string {
  perl.place(join(import.meta.dirname, 'perl/loaded.pl'));
  return perl.place(join(import.meta.dirname, 'perl/scenarios.pl'));
}

/** Which scenarios it knows. */
function scenariosOf(perl: Perl): string[] {
  const [program, ...args] = perl.command;
  return spawnSync(program, [...args, scriptOf(perl), 'list'], { encoding: 'utf8' }).stdout.split(',');
}

async function start(perl: Perl, scenario: string): Promise<Running> {
  const { child, said } = await startScenario<[string, string, number][]>([
    ...perl.command,
    scriptOf(perl),
    scenario,
  ]);
  const expected = textOf(
    said.map(([name, file, at]) => ({ name, file: file.split('/').at(-1)!, line: at })),
  );
  return { child, expected };
}

const perls = missingRights ? [] : findPerls();

describe.skipIf(missingRights).each(perls)('$title', (perl) => {
  const scenarios = scenariosOf(perl);
  let recording: Recording;
  let results: Map<string, Measured>;

  beforeAll(async () => {
    recording = await Recording.start({ targets: [] });
    results = await measureScenarios(recording, {
      ...{ names: scenarios, atOnce: AT_ONCE, samples: SAMPLES },
      start: (name) => start(perl, name),
      countsOf: ({ child }) => countBy(scriptStacks(recording, child.pid!, 'perl'), textOf),
    });
  }, 240_000);

  afterAll(async () => {
    await recording?.stop();
  });

  it.for(scenarios)('%s', (scenario, { task }) => {
    task.meta.build = perl.build;
    expectMostly(results.get(scenario)!, SAMPLES);
  });
});
