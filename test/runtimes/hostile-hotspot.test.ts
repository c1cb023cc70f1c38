/** Programs that say they are HotSpot and lie: their stacks stay bounded, and nothing else suffers. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compile, hasTool, missingRights } from '../support/fixtures.ts';
import { LyingPrograms } from './lying-programs.ts';
import { startWitness, type Witness } from './witness.ts';

const MODES = ['plain', 'endless', 'segments', 'frame', 'names', 'scopes', 'changing'];
/** Class, dot, 1,024 characters and `…`. */
const MAX_NAME_CHARS = 1100;
const NAME = 'fake.Jvm.burn';

describe.skipIf(missingRights || !hasTool('gcc'))('a program that says it is HotSpot', () => {
  let programs: LyingPrograms;
  let witness: Witness;
  const framesOf = (mode: string): string[] => programs.framesOf(mode);
  const counters = () => programs.recording.controller.counters();

  beforeAll(async () => {
    const path = compile('fake-jvm', 'gcc', ['-O1', '-rdynamic', '-pthread'], 'fake-jvm.c');
    programs = await LyingPrograms.start(path, MODES);
    const { recording } = programs;
    witness = await startWitness(recording);
    // `plain` shows that they are taken for HotSpot at all
    await recording.until((stacks) => stacks.some(({ frames }) => frames.includes(NAME)));
    recording.clear();
    witness.begin();
    await recording.until(() => witness.hasEnough() && programs.haveEnough());
    await witness.end();
  }, 200_000);

  afterAll(async () => {
    witness?.stop();
    await programs?.stop();
  });

  it('and tells the truth is shown as Java', () => {
    expect(framesOf('plain').slice(0, 2)).toEqual([NAME, 'main']);
    expect(framesOf('plain').at(-1)).toBe('_start');
  });

  it('with a table that does not end is refused, and a person is told', () => {
    expect(framesOf('endless')).not.toContain(NAME);
    expect(counters()['processRuntimes.refused']).toBe(1);
    expect(programs.recording.warnings.join()).toContain('more than 8192 entries');
  });

  it('with segments that lead nowhere keeps its code as what it is', () => {
    expect(framesOf('segments')).not.toContain(NAME);
    expect(counters()['bpf.hotspot_no_blob']).toBeGreaterThan(0);
  });

  it('with a frame of a megabyte has no caller', () => {
    expect(framesOf('frame')).not.toContain(NAME);
    expect(counters()['bpf.hotspot_no_caller']).toBeGreaterThan(0);
  });

  it('with a name of 65,535 bytes costs that name', () => {
    const [leaf, caller] = framesOf('names');
    expect(leaf!.length).toBeLessThan(MAX_NAME_CHARS);
    expect(caller).toBe('main');
  });

  it('with a method that is inlined into itself has no name for it', () => {
    expect(framesOf('scopes').slice(0, 2)).toEqual([
      '[hotspot: its name is not stored as this version of the runtime stores names]',
      'main',
    ]);
  });

  it('whose memory changes while it is read has bounded stacks', () => {
    const stacks = programs.stacksOf('changing');
    expect(Math.max(...stacks.map(({ frames }) => frames.length))).toBeLessThan(64);
  });

  it('costs other processes nothing', () => {
    witness.expectComplete();
    expect(counters()['processRuntimes.failed']).toBe(0);
    expect(counters()['runtimeFrames.failed']).toBe(0);
  });
});
