/** Ruby stacks of real interpreters, compared with what Ruby itself says of them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { missingRights } from '../support/fixtures.ts';
import { Recording } from '../support/recording.ts';
import './builds.ts';
import { findRubies, type Ruby } from './rubies.ts';
import { type ScriptFrame, scriptStacks } from './script-frames.ts';

const SCENARIOS = [
  'recursion',
  'deep',
  'methods',
  'mixin',
  'defined',
  'missing',
  'sorted',
  'interpolated',
  'rescued',
  'ensured',
  'yielded',
  'nested',
  'proc',
  'symbol',
  'evaluated',
  'instance',
  'loaded',
  'thread',
  'fiber',
  'enumerator',
  'ractor',
];
const OLDEST_WITH: Readonly<Record<string, number>> = { ractor: 300 };
const AT_ONCE = 5;
const SAMPLES = 40;
/** From this version on methods have the names of their classes. */
const WITH_CLASSES = 303;

interface Running {
  scenario: string;
  child: ChildProcess;
  expected: ScriptFrame[];
}

/** Without the class: Ruby says it from 3.4 on. */
const plainName = (name: string): string => name.replace(/(^| )[A-Z][\w:]*[#.](?=\S+$)/, '$1');

/** Functions that are written in C have no place; the leaf's line changes. */
const isSame = (frames: readonly ScriptFrame[], expected: readonly ScriptFrame[]): boolean =>
  frames.length === expected.length &&
  frames.every(({ name, file, line }, i) => {
    const other = expected[i]!;
    const hasPlace = file === '' || (file === other.file && (i === 0 || line === other.line));
    return plainName(name) === other.name && hasPlace;
  });

const RESCUE = 'rescue in ';
/** From this version on Ruby leaves out the method whose `rescue` clause runs, and calls the clause as it. */
const WITHOUT_RESCUE = 304;

/** Methods of Ruby itself that are written in Ruby, as Array#each with YJIT: Ruby says the place where it is called, from that version on. */
const INTERNAL = '<internal:';

const asRubySays = (frames: readonly ScriptFrame[]): ScriptFrame[] =>
  frames
    .filter((_, i) => !frames[i - 1]?.name.startsWith(RESCUE))
    .map((frame) => ({ ...frame, name: frame.name.replace(RESCUE, '') }))
    .map((frame, i, all) =>
      frame.file.startsWith(INTERNAL)
        ? { ...all.slice(i).find(({ file }) => file !== '' && !file.startsWith(INTERNAL))!, name: frame.name }
        : frame,
    );

const textOf = (frames: readonly ScriptFrame[]): string =>
  frames.map(({ name, file, line }) => `${name} ${file}:${line}`).join('\n');

async function start(ruby: Ruby, scenario: string): Promise<Running> {
  const script = ruby.place(join(import.meta.dirname, 'ruby/scenarios.rb'));
  ruby.place(join(import.meta.dirname, 'ruby/loaded.rb'));
  const args = ['-n', '19', ...ruby.command, '-W0', script, scenario];
  const child = spawn('nice', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const line = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).once('line', resolve);
    child.once('exit', () => reject(new Error(`${args.join(' ')} ended`)));
  });
  const frames = JSON.parse(line) as [string, string, number][];
  return { scenario, child, expected: frames.map(([name, file, at]) => ({ name, file, line: at })) };
}

const rubies = missingRights ? [] : findRubies();

describe.skipIf(missingRights).each(rubies)('a program that collects garbage in $title', (ruby) => {
  it('has the collector on top of what it interrupted', { timeout: 120_000 }, async ({ task }) => {
    task.meta.build = ruby.build;
    const script = ruby.place(join(import.meta.dirname, 'ruby/collecting.rb'));
    const child = spawn('nice', ['-n', '19', ...ruby.command, script], { stdio: 'ignore' });
    const recording = await Recording.start({ targets: [toPid(child.pid!)] });
    const countOf = (isCounted: (names: string[]) => boolean): number =>
      scriptStacks(recording, child.pid!, 'ruby')
        .filter(({ frames }) => isCounted(frames.map(({ name }) => plainName(name))))
        .reduce((sum, { count }) => sum + count, 0);
    try {
      const isCollecting = ([first, ...rest]: string[]) =>
        first === '(garbage collection)' && rest.includes('collect') && rest.at(-1) === '<main>';
      await recording.until(() => countOf(isCollecting) > 0);
      recording.clear();
      await recording.until(() => countOf((names) => names.includes('collect')) >= SAMPLES);
      const all = countOf((names) => names.includes('collect'));
      // the rest marks the begin and the end, and prepares
      expect(countOf(isCollecting) / all).toBeGreaterThan(0.8);
    } finally {
      child.kill('SIGKILL');
      await recording.stop();
    }
  });
});

/** Up to 2.7 one variable has the stack of the thread with the lock. */
const WITH_STACK_OF_EACH_THREAD = 300;

describe.skipIf(missingRights).each(rubies)('a thread that has released the lock in $title', (ruby) => {
  it('has no frames of the thread that holds it', { timeout: 120_000 }, async ({ task }) => {
    task.meta.build = ruby.build;
    const script = ruby.place(join(import.meta.dirname, 'ruby/unlocked.rb'));
    const child = spawn('nice', ['-n', '19', ...ruby.command, script], { stdio: 'ignore' });
    const recording = await Recording.start({ targets: [toPid(child.pid!)] });
    const samples = () =>
      scriptStacks(recording, child.pid!, 'ruby').filter(({ threadName }) => threadName === 'fills');
    const countOf = (isCounted: (names: string[]) => boolean): number =>
      samples()
        .filter(({ frames }) => isCounted(frames.map(({ name }) => plainName(name))))
        .reduce((sum, { count }) => sum + count, 0);
    const all = () => countOf(() => true);
    try {
      await recording.until(() => countOf((names) => names.includes('fill')) > 0);
      recording.clear();
      await recording.until(() => all() >= 4 * SAMPLES);
      expect(countOf((names) => names.includes('spin'))).toBe(0);
      if (ruby.number >= WITH_STACK_OF_EACH_THREAD)
        expect(countOf((names) => names.includes('fill')) / all()).toBeGreaterThan(0.95);
    } finally {
      child.kill('SIGKILL');
      await recording.stop();
    }
  });
});

describe.skipIf(missingRights).each(rubies)('$title', (ruby) => {
  const scenarios = SCENARIOS.filter((name) => ruby.number >= (OLDEST_WITH[name] ?? 0));
  let recording: Recording;
  const results = new Map<
    string,
    { expected: ScriptFrame[]; stacks: { frames: ScriptFrame[]; count: number }[] }
  >();

  beforeAll(async () => {
    recording = await Recording.start({ targets: [] });
    for (let i = 0; i < scenarios.length; i += AT_ONCE) {
      const group = await Promise.all(scenarios.slice(i, i + AT_ONCE).map((name) => start(ruby, name)));
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

  /** Those with Ruby frames: threads of the interpreter's own have none. */
  const stacksOf = ({ child }: Running) =>
    scriptStacks(recording, child.pid!, 'ruby')
      .filter(({ frames }) => frames.length > 0)
      .map(({ frames, count }) => ({
        frames: ruby.number < WITHOUT_RESCUE ? frames : asRubySays(frames),
        count,
      }));

  /** From the first sample of each with the expected stack on: what came before lacked tables. */
  async function measure(group: Running[]): Promise<void> {
    const hasExpected = (one: Running) => stacksOf(one).some(({ frames }) => isSame(frames, one.expected));
    const hasEnough = (one: Running) => stacksOf(one).reduce((sum, { count }) => sum + count, 0) >= SAMPLES;
    await recording
      .until(() => group.every(hasExpected), 30_000)
      .catch(() => {
        /* the tests below say which, and what there was instead */
      });
    recording.clear();
    await recording.until(() => group.every(hasEnough), 45_000).catch(() => {});
    for (const one of group) results.set(one.scenario, { expected: one.expected, stacks: stacksOf(one) });
    recording.clear();
  }

  it.for(scenarios)('%s', (scenario, { task }) => {
    task.meta.build = ruby.build;
    const { expected, stacks } = results.get(scenario)!;
    const sumOf = (some: typeof stacks) => some.reduce((sum, { count }) => sum + count, 0);
    const right = stacks.filter(({ frames }) => isSame(frames, expected));
    const other = stacks.find(({ frames }) => !isSame(frames, expected));
    const problem = `expected\n${textOf(expected)}\nbut also\n${textOf(other?.frames ?? [])}`;
    expect(sumOf(stacks)).toBeGreaterThanOrEqual(SAMPLES);
    expect(sumOf(right) / sumOf(stacks), problem).toBeGreaterThanOrEqual(0.97);
  });

  it.skipIf(ruby.number < WITH_CLASSES)('methods have the names of their classes', () => {
    const names = results.get('methods')!.stacks[0]!.frames.map(({ name }) => name);
    expect(names.slice(1, 6)).toEqual([
      'Shape.outside',
      'Shape#inside',
      'block in Shape#run',
      'Array#each',
      'Shape#run',
    ]);
  });
});
