/** Which native frame runs which Perl functions, where C calls back and between two such calls. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { missingRights } from '../support/fixtures.ts';
import { Recording, type Stack, total } from '../support/recording.ts';
import './builds.ts';
import { findPerls, type Perl } from './perls.ts';

/** The second in builds for debugging. */
const RUNOPS = /^Perl_runops_(?:standard|debug)$/;
/** The Perl frames of each of its native frames, the innermost first; `closure` stands for functions without a name. */
const RUNS: Readonly<Record<string, string>> = {
  methods: 'burn draw closure inside run closure (main)',
  sort: 'burn compare | closure (main)',
  sort_inside: 'burn compare | closure (main)',
  sort_named: 'burn compare | closure (main)',
  // the outer sort's block is not a function
  sort_sort: 'burn compare |  | closure (main)',
  // an eval in what C has called is run by another one
  sort_caught: 'burn compare |  | closure (main)',
  eval_caught: 'burn compare closure FETCH |  | fetched closure (main)',
  tied_twice: 'burn compare FETCH | fetched closure FETCH | fetched closure (main)',
  first: 'burn compare closure | closure (main)',
  first_sort: 'burn compare | closure | closure (main)',
  // statements of an expression lead to no first one: a closure has no line there
  expression: 'burn compare | __ANON__ (main)',
  expression_inside: 'burn compare | __ANON__ (main)',
  eval_begin: 'burn compare BEGIN | (eval) closure (main)',
  warning_tied: 'burn closure | closure FETCH | fetched closure (main)',
};
const PERL_FRAME = /^(?:\((?:main|eval|required)\)$|(?:main|Shape|Tied)::)/;
const SAMPLES = 20;
const MANY = 600;

function start(perl: Perl, script: string, ...args: string[]): ChildProcess {
  const path = perl.place(join(import.meta.dirname, 'perl', script));
  return spawn('nice', ['-n', '19', ...perl.command, path, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

/** As in RUNS. */
function runsOf({ frames }: Stack): string {
  const runs: string[][] = [[]];
  for (const frame of frames) {
    if (RUNOPS.test(frame)) runs.push([]);
    else if (PERL_FRAME.test(frame))
      runs.at(-1)!.push(frame.replace(/^\w+::/, '').replace(/^__ANON__:\d+$/, 'closure'));
  }
  return runs
    .slice(0, -1)
    .map((names) => names.join(' '))
    .join(' | ');
}

const perls = missingRights ? [] : findPerls();

describe.skipIf(missingRights).each(perls)('$title', (perl) => {
  const children = new Map<string, ChildProcess>();
  let turns: ChildProcess;
  let recording: Recording;
  const stacksOf = (child: ChildProcess): Stack[] =>
    // a sample in the kernel, or before a table was there, may be cut
    recording.stacks(child.pid!).filter(({ frames }) => frames.includes('perl_run'));

  beforeAll(async () => {
    for (const name of Object.keys(RUNS)) children.set(name, start(perl, 'scenarios.pl', name));
    await Promise.all(
      [...children.values()].map(
        (child) => new Promise((resolve) => createInterface(child.stdout!).once('line', resolve)),
      ),
    );
    turns = start(perl, 'turns.pl');
    const all = [...children.values(), turns];
    recording = await Recording.start({ targets: all.map(({ pid }) => toPid(pid!)) });
    await recording.until(() =>
      all.every((child) => stacksOf(child).some(({ frames }) => frames.includes('(main)'))),
    );
    recording.clear();
    await recording.until(() => all.every((child) => total(stacksOf(child)) >= SAMPLES));
    for (const child of children.values()) child.kill('SIGSTOP');
    await recording.until(() => total(stacksOf(turns)) >= MANY);
  }, 180_000);

  afterAll(async () => {
    for (const child of [...children.values(), turns]) child?.kill('SIGKILL');
    await recording?.stop();
  });

  it.each(Object.entries(RUNS))('%s: %s', (name, expected) => {
    const counts = new Map<string, number>();
    for (const stack of stacksOf(children.get(name)!)) {
      const runs = runsOf(stack);
      counts.set(runs, (counts.get(runs) ?? 0) + stack.count);
    }
    const [most] = [...counts].sort((a, b) => b[1] - a[1])[0]!;
    expect(most).toBe(expected);
  });

  it('keeps the callers at each moment between two calls', ({ task }) => {
    task.meta.build = perl.build;
    const stacks = stacksOf(turns);
    const lost = stacks.filter(({ frames }) => {
      const at = frames.indexOf('(main)');
      return at < 1 || frames[at - 1] !== 'main::turns' || !RUNOPS.test(frames[at + 1] ?? '');
    });
    expect(total(lost) / total(stacks), JSON.stringify(lost.slice(0, 3))).toBeLessThanOrEqual(0.01);
    for (const name of ['sorts', 'compare', 'firsts', 'is_last', 'expressions'])
      expect(
        stacks.some(({ frames }) => frames.includes(`main::${name}`)),
        name,
      ).toBe(true);
  });
});
