/** Programs that say they are Ruby and lie: their stacks stay bounded, and nothing else suffers. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compile, hasTool, missingRights } from '../support/fixtures.ts';
import { LyingPrograms } from './lying-programs.ts';
import { startWitness, type Witness } from './witness.ts';

const MODES = ['plain', 'cycle', 'garbage', 'names', 'deep', 'changing'];
const LOOP = 'rb_vm_exec';
const NAME = 'fake_name';
/** A class and a method. */
const MAX_NAME_CHARS = 2 * 513 + 2;
/** User frames, and the kernel's. */
const MAX_FRAMES = 1023 + 128;

describe.skipIf(missingRights || !hasTool('gcc'))('a program that says it is Ruby', () => {
  let programs: LyingPrograms;
  let witness: Witness;
  const failedNames = (): number => {
    const counters = programs.recording.controller.counters();
    return ['replaced', 'malformed', 'unreadable'].reduce(
      (sum, why) => sum + counters[`runtimeFrames.${why}`]!,
      0,
    );
  };
  const framesOf = (mode: string): string[] => programs.framesOf(mode);

  beforeAll(async () => {
    const path = compile('fake-ruby', 'gcc', ['-O2', '-rdynamic', '-pthread'], 'fake-ruby.c');
    programs = await LyingPrograms.start(path, MODES);
    const { recording } = programs;
    witness = await startWitness(recording);
    // `plain` shows that they are taken for Ruby at all
    await recording.until(() =>
      MODES.every((mode) =>
        programs
          .stacksOf(mode)
          .some(({ frames }) => frames.includes(LOOP) && (mode !== 'plain' || frames.includes(NAME))),
      ),
    );
    recording.clear();
    witness.begin();
    await recording.until(() => witness.hasEnough() && programs.haveEnough() && failedNames() > 0, 120_000);
    await witness.end();
  }, 200_000);

  afterAll(async () => {
    witness?.stop();
    await programs?.stop();
  });

  it('and tells the truth is shown as Ruby', () => {
    expect(framesOf('plain').slice(0, 3)).toEqual([NAME, LOOP, 'main']);
  });

  it('with environments in a circle keeps its native frames', () => {
    expect(framesOf('cycle').slice(0, 2)).toEqual([LOOP, 'main']);
    expect(programs.recording.controller.counters()['bpf.ruby_bad_frame']).toBeGreaterThan(0);
  });

  it('with frames that lead nowhere keeps its native frames', () => {
    expect(framesOf('garbage')).toContain('main');
    expect(programs.recording.controller.counters()['bpf.ruby_read_failed']).toBeGreaterThan(0);
  });

  it('with thousands of frames ends at the depth limit, and says so', () => {
    const frames = framesOf('deep');
    expect(frames.filter((name) => name === NAME)).toHaveLength(1023);
    expect(frames.at(-1)).toBe('[cut: deeper than the limit]');
  });

  it('with names of a terabyte costs its names', () => {
    const [name, loop] = framesOf('names');
    expect(name).toMatch(/^fake_name|^\[ruby: its name is not stored/);
    expect(name!.length).toBeLessThan(1100);
    expect(loop).toBe(LOOP);
  });

  it('whose memory changes while it is read has bounded stacks and names', () => {
    const stacks = programs.stacksOf('changing');
    const names = stacks.flatMap(({ frames }) => frames);
    expect(Math.max(...names.map((name) => name.length))).toBeLessThanOrEqual(MAX_NAME_CHARS);
    expect(Math.max(...stacks.map(({ frames }) => frames.length))).toBeLessThanOrEqual(MAX_FRAMES);
    const counters = programs.recording.controller.counters();
    expect(counters['bpf.ruby_bad_frame']).toBeGreaterThan(0);
    expect(failedNames()).toBeGreaterThan(0);
  });

  it('costs other processes nothing', () => {
    witness.expectComplete();
  });
});
