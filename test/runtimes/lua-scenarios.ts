/** Lua stacks of real interpreters, compared with what Lua itself says of them. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import type { FrameType } from '../../common/profile/model/profile.ts';
import type { TestedBuild } from '../../scripts/runtime-support.ts';
import { missingRights } from '../support/fixtures.ts';
import { Recording } from '../support/recording.ts';
import './builds.ts';
import type { Interpreter } from './package-roots.ts';
import { expectMostly, type Measured, measureScenarios, type Running, startScenario } from './scenarios.ts';
import { countBy, type ScriptFrame, scriptStacks } from './script-frames.ts';

const SAMPLES = 12;

export interface TestedLua extends Interpreter {
  title: string;
  build: TestedBuild;
  /** First argument of scenarios.lua. */
  mode: 'jit' | 'interpreter';
  frameType: FrameType;
}

/** Leaf first: `name file:line`; below the one that computes, whose line changes. Lua says the last part of a name. */
const textOf = (frames: ScriptFrame[]): string | undefined =>
  frames[0]?.name === 'spin'
    ? frames
        .slice(1)
        .map(({ name, file, line }) => `${name.split('.').at(-1)} ${file}:${line}`)
        .join('\n')
    : undefined;

function scriptOf(lua: TestedLua): string {
  lua.place(join(import.meta.dirname, 'luajit/loaded.lua'));
  return lua.place(join(import.meta.dirname, 'luajit/scenarios.lua'));
}

function scenariosOf(lua: TestedLua): string[] {
  const [program, ...args] = lua.command;
  return spawnSync(program, [...args, scriptOf(lua), lua.mode, 'list'], { encoding: 'utf8' })
    .stdout.trim()
    .split(',');
}

async function start(lua: TestedLua, scenario: string): Promise<Running> {
  const { child, said } = await startScenario<[string, string, number][]>([
    ...lua.command,
    scriptOf(lua),
    lua.mode,
    scenario,
  ]);
  return { child, expected: said.map(([name, file, at]) => `${name} ${file}:${at}`).join('\n') };
}

export function describeLuaScenarios(cases: readonly TestedLua[]): void {
  describe.skipIf(missingRights).each(cases)('$title, $mode', (lua) => {
    const scenarios = scenariosOf(lua);
    let recording: Recording;
    let results: Map<string, Measured>;

    beforeAll(async () => {
      recording = await Recording.start({ targets: [] });
      results = await measureScenarios(recording, {
        ...{ names: scenarios, atOnce: scenarios.length, samples: SAMPLES },
        start: (name) => start(lua, name),
        countsOf: ({ child }) => countBy(scriptStacks(recording, child.pid!, lua.frameType), textOf),
      });
    }, 120_000);

    afterAll(async () => {
      await recording?.stop();
    });

    it.for(scenarios)(`%s, ${lua.mode}`, (scenario, { task }) => {
      task.meta.build = lua.build;
      expectMostly(results.get(scenario)!, SAMPLES);
    });
  });
}
