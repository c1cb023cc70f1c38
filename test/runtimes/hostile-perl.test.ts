/** Programs that say they are Perl and lie: their stacks stay bounded, and nothing else suffers. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compile, hasTool, missingRights } from '../support/fixtures.ts';
import { LyingPrograms } from './lying-programs.ts';
import { startWitness, type Witness } from './witness.ts';

const MODES = ['plain', 'cycle', 'garbage', 'names', 'deep', 'blocks', 'tree', 'changing'];
const LOOP = 'Perl_runops_standard';
const NAME = 'Fake::fake_name';
/** A package and a function. */
const MAX_NAME_CHARS = 2 * 513 + 2;
/** User frames, and the kernel's. */
const MAX_FRAMES = 1023 + 128;

describe.skipIf(missingRights || !hasTool('gcc'))('a program that says it is Perl', () => {
  let programs: LyingPrograms;
  let witness: Witness;
  const counter = (name: string): number => programs.recording.controller.counters()[name]!;
  const failedNames = (): number =>
    ['replaced', 'malformed', 'unreadable'].reduce((sum, why) => sum + counter(`runtimeFrames.${why}`), 0);
  const framesOf = (mode: string): string[] => programs.framesOf(mode);

  beforeAll(async () => {
    const path = compile('fake-perl', 'gcc', ['-O2', '-rdynamic', '-pthread'], 'fake-perl.c');
    programs = await LyingPrograms.start(path, MODES);
    const { recording } = programs;
    witness = await startWitness(recording);
    // `plain` shows that they are taken for Perl at all
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

  it('and tells the truth is shown as Perl', () => {
    expect(framesOf('plain').slice(0, 4)).toEqual([NAME, '(main)', LOOP, 'main']);
  });

  it('with stacks in a circle keeps its native frames', () => {
    expect(framesOf('cycle').slice(0, 2)).toEqual([LOOP, 'main']);
  });

  it('with a function that leads nowhere loses that frame', () => {
    expect(framesOf('garbage').slice(0, 3)).toEqual(['(main)', LOOP, 'main']);
    expect(counter('bpf.perl_not_function')).toBeGreaterThan(0);
    expect(counter('bpf.perl_read_failed')).toBeGreaterThan(0);
  });

  it('with thousands of functions ends at the depth limit, and says so', () => {
    const frames = framesOf('deep');
    expect(frames.filter((name) => name === NAME)).toHaveLength(1023);
    expect(frames.at(-1)).toBe('[cut: deeper than the limit]');
  });

  it('with thousands of blocks has native frames only, and says so', () => {
    expect(framesOf('blocks').slice(0, 2)).toEqual([LOOP, 'main']);
    expect(counter('bpf.perl_contexts_left')).toBeGreaterThan(0);
  });

  it('with names of a gigabyte costs its names', () => {
    const [name] = framesOf('names');
    expect(name).toMatch(/^\[perl: its name is not stored/);
    expect(framesOf('names')).toContain(LOOP);
  });

  it('with operations that are their own siblings is shown as Perl', () => {
    expect(framesOf('tree').slice(0, 2)).toEqual([NAME, '(main)']);
  });

  it('whose memory changes while it is read has bounded stacks and names', () => {
    const stacks = programs.stacksOf('changing');
    const names = stacks.flatMap(({ frames }) => frames);
    expect(Math.max(...names.map((name) => name.length))).toBeLessThanOrEqual(MAX_NAME_CHARS);
    expect(Math.max(...stacks.map(({ frames }) => frames.length))).toBeLessThanOrEqual(MAX_FRAMES);
    expect(counter('bpf.perl_bad_context')).toBeGreaterThan(0);
    expect(failedNames()).toBeGreaterThan(0);
  });

  it('costs other processes nothing', () => {
    witness.expectComplete();
  });
});
