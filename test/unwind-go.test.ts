/** Go without .debug_frame, whose rules come from its own table of functions. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { compile, hasTool, missingRights, scratchFolder } from './support/fixtures.ts';

const MAIN = join(import.meta.dirname, '../dist/cli/main.js');
const skipped = missingRights || (hasTool('go') ? '' : 'go is not installed');
if (skipped) console.log(`skipped: ${skipped}`);

interface Stack {
  /** Root first. */
  frames: string[];
  count: number;
}

function record(...command: string[]): Stack[] {
  const out = join(scratchFolder, 'go.folded');
  const args = [MAIN, 'record', '--force', '-d', '6s', '-o', out, '--', 'timeout', '10', ...command];
  const { stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 90_000 });
  const stacks = readFileSync(out, 'utf8')
    .trim()
    .split('\n')
    .map((line) => ({ frames: line.replace(/ \d+$/, '').split(';'), count: Number(line.split(' ').at(-1)) }))
    .filter(({ frames }) => frames.some((name) => /^(main|runtime)\./.test(name)));
  expect(stacks.length, stderr).toBeGreaterThan(0);
  return stacks;
}

/** The stack with the most samples, root first. */
const heaviestStack = (...command: string[]): string[] =>
  record(...command)
    .filter(({ frames }) => frames.includes('main.main'))
    .reduce((a, b) => (b.count > a.count ? b : a)).frames;

describe.skipIf(skipped)('Go without .debug_frame', () => {
  // -w leaves the symbols, which the names come from
  const build = (): string => compile('deep-go', 'go', ['build', '-ldflags=-w'], 'deep.go');

  it('comes out whole, 40 deep', () => {
    const frames = heaviestStack(build());
    expect(frames[1]).toMatch(/^runtime\.goexit/);
    expect(frames.filter((name) => name === 'main.recurse')).toHaveLength(40);
    expect(frames.at(-1)).toBe('main.leaf');
  });

  it('comes out whole through the clock, which runs on the stack of the thread', () => {
    const frames = heaviestStack(build(), 'clock');
    const chain = [
      'runtime.goexit',
      'runtime.main',
      'main.main',
      'main.clock',
      'time.Now',
      'time.runtimeNow',
    ];
    const names = frames.map((name) => name.replace(/\.abi0$/, '')).slice(1, 1 + chain.length);
    expect(names).toEqual(chain.slice(0, names.length));
    expect(names.length).toBeGreaterThan(3);
  });

  it('comes out whole from the system call that ends a signal', () => {
    const stacks = record(compile('signals-go', 'go', ['build', '-ldflags=-w'], 'signals.go'));
    const total = (some: Stack[]): number => some.reduce((sum, { count }) => sum + count, 0);
    const ending = stacks.filter(({ frames }) => frames.some((name) => /rt_sigreturn.*_\[k\]$/.test(name)));
    expect(total(ending)).toBeGreaterThan(0);
    // what a signal interrupts is any of the program's threads
    const isWhole = ({ frames }: Stack): boolean => /^(runtime\.(goexit|mstart|mcall)|gogo)/.test(frames[1]!);
    const cut = ending.filter((stack) => !isWhole(stack));
    // but for those that are sampled while the kernel puts the registers back, one by one
    expect(total(cut) / total(ending), JSON.stringify(cut)).toBeLessThan(0.2);
  });
});
