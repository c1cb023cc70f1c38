/** Programs that say they are Node and lie: their stacks stay bounded, and nothing else suffers. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compile, hasTool, missingRights } from '../support/fixtures.ts';
import { LyingPrograms } from './lying-programs.ts';
import { startWitness, type Witness } from './witness.ts';

const MODES = ['plain', 'cycle', 'garbage', 'names', 'changing'];
/** Function names are cut at 1,024 characters, and `…` follows. */
const MAX_NAME_CHARS = 1025;

describe.skipIf(missingRights || !hasTool('gcc'))('a program that says it is Node', () => {
  let programs: LyingPrograms;
  let witness: Witness;
  const framesOf = (mode: string): string[] => programs.framesOf(mode);

  beforeAll(async () => {
    const path = compile('fake-node', 'gcc', ['-O2', '-rdynamic', '-pthread'], 'fake-node.c');
    programs = await LyingPrograms.start(path, MODES);
    const { recording } = programs;
    witness = await startWitness(recording);
    // `plain` shows that they are taken for Node at all
    await recording.until((stacks) => stacks.some(({ frames }) => frames.includes('fake_name')));
    recording.clear();
    witness.begin();
    await recording.until(() => witness.hasEnough() && programs.haveEnough());
    await witness.end();
  }, 200_000);

  afterAll(async () => {
    witness?.stop();
    await programs?.stop();
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
    expect(programs.recording.controller.counters()['bpf.v8_read_failed']).toBeGreaterThan(0);
  });

  it('with a name of 512 million characters costs that name', () => {
    const frames = framesOf('names');
    expect(frames[0]).toBe('<anonymous>');
    expect(frames[1]).toBe('main');
  });

  it('whose memory changes while it is read has bounded names, and its native frames', () => {
    const stacks = programs.stacksOf('changing');
    const names = stacks.flatMap(({ frames }) => frames);
    expect(Math.max(...names.map((name) => name.length))).toBeLessThanOrEqual(MAX_NAME_CHARS);
    expect(Math.max(...stacks.map(({ frames }) => frames.length))).toBeLessThan(64);
    const { 'runtimeFrames.replaced': replaced, 'bpf.v8_not_object': notObject } =
      programs.recording.controller.counters();
    expect(replaced! + notObject!).toBeGreaterThan(0);
  });

  it('costs other processes nothing', () => {
    witness.expectComplete();
  });
});
