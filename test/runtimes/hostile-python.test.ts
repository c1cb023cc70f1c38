/** Programs that say they are CPython and lie: their stacks stay bounded, and nothing else suffers. */
import { type ChildProcess, spawn } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { compile, hasTool, missingRights } from '../support/fixtures.ts';
import { Recording, type Stack, total } from '../support/recording.ts';

const MODES = ['plain', 'cycle', 'garbage', 'names'];
const LOOP = '_PyEval_EvalFrameDefault';

describe.skipIf(missingRights || !hasTool('gcc'))('a program that says it is Python', () => {
  const running = new Map<string, ChildProcess>();
  let recording: Recording;

  const stacksOf = (mode: string): Stack[] => recording.stacks(running.get(mode)!.pid);
  /** The user frames of its most frequent stack: a sample may also have hit the kernel, or lack a table. */
  const framesOf = (mode: string): string[] => {
    const counts = new Map<string, number>();
    for (const { frames, kernelFrames, count } of stacksOf(mode)) {
      const text = frames.slice(kernelFrames).join('\n');
      counts.set(text, (counts.get(text) ?? 0) + count);
    }
    return [...counts].sort((a, b) => b[1] - a[1])[0]![0].split('\n');
  };

  beforeAll(async () => {
    const path = compile('fake-python', 'gcc', ['-O2', '-rdynamic'], 'fake-python.c');
    for (const mode of MODES) running.set(mode, spawn('nice', ['-n', '19', path, mode], { stdio: 'ignore' }));
    const targets = [...running.values()].map(({ pid }) => toPid(pid!));
    recording = await Recording.start({ targets });
    // `plain` shows that they are taken for Python at all
    await recording.until((stacks) =>
      MODES.every((mode) => {
        const own = stacks.filter((s) => s.pid === running.get(mode)!.pid);
        return own.some(
          (s) => s.frames.includes(LOOP) && (mode !== 'plain' || s.frames.includes('fake_name')),
        );
      }),
    );
    recording.clear();
    await recording.until(() => MODES.every((mode) => total(stacksOf(mode)) >= 30));
  });

  afterAll(async () => {
    for (const child of running.values()) child.kill('SIGKILL');
    await recording?.stop();
  });

  it('and tells the truth is shown as Python', () => {
    expect(framesOf('plain').slice(0, 3)).toEqual(['fake_name', LOOP, 'main']);
  });

  it('with frames in a circle ends at the depth limit, and says so', () => {
    const frames = framesOf('cycle');
    expect(frames.filter((name) => name === 'fake_name')).toHaveLength(1023);
    expect(frames.at(-1)).toBe('[cut: deeper than the limit]');
  });

  it('with frames that lead nowhere keeps its native frames', () => {
    expect(framesOf('garbage').slice(0, 2)).toEqual([LOOP, 'main']);
    expect(recording.controller.counters()['bpf.python_read_failed']).toBeGreaterThan(0);
  });

  it('with names of a terabyte costs its names', () => {
    const [name, loop] = framesOf('names');
    expect(name).toMatch(/^fake_name|^\[cpython: its names contradict themselves\]$/);
    expect(name!.length).toBeLessThan(1100);
    expect(loop).toBe(LOOP);
  });
});
