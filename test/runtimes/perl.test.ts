/** Perl stacks of real interpreters, compared with what Perl itself says of them. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { missingRights } from '../support/fixtures.ts';
import { Recording } from '../support/recording.ts';
import './builds.ts';
import { findPerls, type Perl } from './perls.ts';
import { countBy, type ScriptFrame, scriptStacks, sum } from './script-frames.ts';

const AT_ONCE = 11;
const SAMPLES = 20;

interface Running {
  scenario: string;
  child: ChildProcess;
  expected: string;
}

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
  const args = ['-n', '19', ...perl.command, scriptOf(perl), scenario];
  const child = spawn('nice', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const line = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).once('line', resolve);
    child.once('exit', () => reject(new Error(`${args.join(' ')} ended`)));
  });
  const frames = JSON.parse(line) as [string, string, number][];
  const expected = textOf(
    frames.map(([name, file, at]) => ({ name, file: file.split('/').at(-1)!, line: at })),
  );
  return { scenario, child, expected };
}

const perls = missingRights ? [] : findPerls();

describe.skipIf(missingRights).each(perls)('$title', (perl) => {
  const scenarios = scenariosOf(perl);
  let recording: Recording;
  const results = new Map<string, { expected: string; counts: Map<string, number> }>();

  beforeAll(async () => {
    recording = await Recording.start({ targets: [] });
    for (let i = 0; i < scenarios.length; i += AT_ONCE) {
      const group = await Promise.all(scenarios.slice(i, i + AT_ONCE).map((name) => start(perl, name)));
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

  const countsOf = ({ child }: Running): Map<string, number> =>
    countBy(scriptStacks(recording, child.pid!, 'perl'), textOf);

  /** From the first sample of each with the expected stack on: what came before lacked tables. */
  async function measure(group: Running[]): Promise<void> {
    await recording
      .until(() => group.every((one) => countsOf(one).has(one.expected)), 20_000)
      .catch(() => {
        /* the tests below say which, and what there was instead */
      });
    recording.clear();
    await recording.until(() => group.every((one) => sum(countsOf(one)) >= SAMPLES), 45_000).catch(() => {});
    for (const one of group) results.set(one.scenario, { expected: one.expected, counts: countsOf(one) });
    recording.clear();
  }

  it.for(scenarios)('%s', (scenario, { task }) => {
    task.meta.build = perl.build;
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
