/** Lua stacks of real interpreters, compared with what Lua itself says of them: in the interpreter, and in code of the JIT. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { missingRights } from '../support/fixtures.ts';
import { Recording } from '../support/recording.ts';
import './builds.ts';
import { findLuajits, type Luajit } from './luajits.ts';
import { expectMostly, type Measured, measureScenarios, type Running, startScenario } from './scenarios.ts';
import { countBy, type ScriptFrame, scriptStacks } from './script-frames.ts';

const SAMPLES = 12;

/** Leaf first: `name file:line`; below the one that computes, whose line changes. Lua says the last part of a name. */
const textOf = (frames: ScriptFrame[]): string | undefined =>
  frames[0]?.name === 'spin'
    ? frames
        .slice(1)
        .map(({ name, file, line }) => `${name.split('.').at(-1)} ${file}:${line}`)
        .join('\n')
    : undefined;

function scriptOf(luajit: Luajit): string {
  luajit.place(join(import.meta.dirname, 'luajit/loaded.lua'));
  return luajit.place(join(import.meta.dirname, 'luajit/scenarios.lua'));
}

function scenariosOf(luajit: Luajit): string[] {
  const [program, ...args] = luajit.command;
  return spawnSync(program, [...args, scriptOf(luajit), 'jit', 'list'], { encoding: 'utf8' })
    .stdout.trim()
    .split(',');
}

async function start(luajit: Luajit, mode: string, scenario: string): Promise<Running> {
  const { child, said } = await startScenario<[string, string, number][]>([
    ...luajit.command,
    scriptOf(luajit),
    mode,
    scenario,
  ]);
  return { child, expected: said.map(([name, file, at]) => `${name} ${file}:${at}`).join('\n') };
}

const luajits = missingRights ? [] : findLuajits();
const cases = luajits.flatMap((luajit) =>
  ['jit', 'interpreter'].map((mode) => ({ luajit, mode, ...luajit })),
);

describe.skipIf(missingRights).each(cases)('$title, $mode', ({ luajit, mode }) => {
  const scenarios = scenariosOf(luajit);
  let recording: Recording;
  let results: Map<string, Measured>;

  beforeAll(async () => {
    recording = await Recording.start({ targets: [] });
    results = await measureScenarios(recording, {
      ...{ names: scenarios, atOnce: scenarios.length, samples: SAMPLES },
      start: (name) => start(luajit, mode, name),
      countsOf: ({ child }) => countBy(scriptStacks(recording, child.pid!, 'luajit'), textOf),
    });
  }, 120_000);

  afterAll(async () => {
    await recording?.stop();
  });

  it.for(scenarios)(`%s, ${mode}`, (scenario, { task }) => {
    task.meta.build = luajit.build;
    expectMostly(results.get(scenario)!, SAMPLES);
  });
});
