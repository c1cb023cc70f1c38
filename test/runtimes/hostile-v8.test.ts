/** Programs that say they are Node and lie: their stacks stay bounded, and nothing else suffers. */
import { type ChildProcess, spawn } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { compile, hasTool, missingRights } from '../support/fixtures.ts';
import { Recording, type Stack, total } from '../support/recording.ts';
import { startWitness, type Witness } from './witness.ts';

const MODES = ['plain', 'cycle', 'garbage', 'names', 'changing'];
/** Function names are cut at 1,024 characters, and `…` follows. */
const MAX_NAME_CHARS = 1025;

describe.skipIf(missingRights || !hasTool('gcc'))('a program that says it is Node', () => {
  const running = new Map<string, ChildProcess>();
  let recording: Recording;
  let witness: Witness;

  const stacksOf = (mode: string): Stack[] => recording.stacks(running.get(mode)!.pid);
  /** The user frames of its most frequent stack. */
  const framesOf = (mode: string): string[] => {
    const counts = new Map<string, number>();
    for (const { frames, kernelFrames, count } of stacksOf(mode)) {
      const text = frames.slice(kernelFrames).join('\n');
      counts.set(text, (counts.get(text) ?? 0) + count);
    }
    return [...counts].sort((a, b) => b[1] - a[1])[0]![0].split('\n');
  };

  beforeAll(async () => {
    const path = compile('fake-node', 'gcc', ['-O2', '-rdynamic', '-pthread'], 'fake-node.c');
    for (const mode of MODES) running.set(mode, spawn('nice', ['-n', '19', path, mode], { stdio: 'ignore' }));
    const targets = [...running.values()].map(({ pid }) => toPid(pid!));
    recording = await Recording.start({ targets });
    witness = await startWitness(recording);
    // `plain` shows that they are taken for Node at all
    await recording.until((stacks) => stacks.some(({ frames }) => frames.includes('fake_name')));
    recording.clear();
    witness.begin();
    await recording.until(() => witness.hasEnough() && MODES.every((mode) => total(stacksOf(mode)) >= 30));
    await witness.end();
  }, 200_000);

  afterAll(async () => {
    for (const child of running.values()) child.kill('SIGKILL');
    witness?.stop();
    await recording?.stop();
  });

  it('and tells the truth is shown as Node', () => {
    expect(framesOf('plain').slice(0, 2)).toEqual(['fake_name', 'main']);
  });

  it('with a frame that is its own caller goes on by return addresses', () => {
    const frames = framesOf('cycle');
    expect(frames.slice(0, 2)).toEqual(['fake_name', 'main']);
    expect(frames.at(-1)).toBe('_start');
  });

  it('with a function that leads nowhere keeps its native frames', () => {
    expect(framesOf('garbage').at(-1)).toBe('_start');
    expect(recording.controller.counters()['bpf.v8_read_failed']).toBeGreaterThan(0);
  });

  it('with a name of 512 million characters costs that name', () => {
    const frames = framesOf('names');
    expect(frames[0]).toBe('<anonymous>');
    expect(frames[1]).toBe('main');
  });

  it('whose memory changes while it is read has bounded names, and its native frames', () => {
    const stacks = stacksOf('changing');
    const names = stacks.flatMap(({ frames }) => frames);
    expect(Math.max(...names.map((name) => name.length))).toBeLessThanOrEqual(MAX_NAME_CHARS);
    expect(Math.max(...stacks.map(({ frames }) => frames.length))).toBeLessThan(64);
    const { 'runtimeFrames.replaced': replaced, 'bpf.v8_not_object': notObject } =
      recording.controller.counters();
    expect(replaced! + notObject!).toBeGreaterThan(0);
  });

  it('costs other processes nothing', () => {
    witness.expectComplete();
  });
});
