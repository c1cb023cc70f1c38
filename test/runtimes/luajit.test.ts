/** Lua stacks of real interpreters, compared with what Lua itself says of them: in the interpreter, and in code of the JIT. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { missingRights } from '../support/fixtures.ts';
import { Recording } from '../support/recording.ts';
import './builds.ts';
import { findLuajits, type Luajit } from './luajits.ts';
import { countBy, type ScriptFrame, scriptStacks, sum } from './script-frames.ts';

const SAMPLES = 12;

interface Running {
  scenario: string;
  child: ChildProcess;
  expected: string;
}

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
  const args = ['-n', '19', ...luajit.command, scriptOf(luajit), mode, scenario];
  const child = spawn('nice', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const line = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).once('line', resolve);
    child.once('exit', () => reject(new Error(`${args.join(' ')} ended`)));
  });
  const frames = JSON.parse(line) as [string, string, number][];
  return { scenario, child, expected: frames.map(([name, file, at]) => `${name} ${file}:${at}`).join('\n') };
}

const luajits = missingRights ? [] : findLuajits();
const cases = luajits.flatMap((luajit) =>
  ['jit', 'interpreter'].map((mode) => ({ luajit, mode, ...luajit })),
);

describe.skipIf(missingRights).each(cases)('$title, $mode', ({ luajit, mode }) => {
  const scenarios = scenariosOf(luajit);
  let recording: Recording;
  const results = new Map<string, { expected: string; counts: Map<string, number> }>();

  beforeAll(async () => {
    recording = await Recording.start({ targets: [] });
    const running = await Promise.all(scenarios.map((name) => start(luajit, mode, name)));
    for (const { child } of running) recording.controller.addTarget(toPid(child.pid!));
    try {
      await measure(running);
    } finally {
      for (const { child } of running) child.kill('SIGKILL');
    }
  }, 90_000);

  afterAll(async () => {
    await recording?.stop();
  });

  const countsOf = ({ child }: Running): Map<string, number> =>
    countBy(scriptStacks(recording, child.pid!, 'luajit'), textOf);

  /** From the first sample of each with the expected stack on: what came before lacked tables. */
  async function measure(running: Running[]): Promise<void> {
    await recording
      .until(() => running.every((one) => countsOf(one).has(one.expected)), 15_000)
      .catch(() => {
        /* the tests below say which, and what there was instead */
      });
    recording.clear();
    await recording
      .until(() => running.every((one) => sum(countsOf(one)) >= SAMPLES), 30_000)
      .catch(() => {});
    for (const one of running) results.set(one.scenario, { expected: one.expected, counts: countsOf(one) });
  }

  it.for(scenarios)(`%s, ${mode}`, (scenario, { task }) => {
    task.meta.build = luajit.build;
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
