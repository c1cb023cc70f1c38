/** Programs that say they are CPython and lie: their stacks stay bounded, and nothing else suffers. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compile, hasTool, missingRights } from '../support/fixtures.ts';
import { LyingPrograms } from './lying-programs.ts';
import { startWitness, type Witness } from './witness.ts';

const MODES = ['plain', 'cycle', 'garbage', 'names', 'changing'];
const LOOP = '_PyEval_EvalFrameDefault';
/** Function names are cut at 1,024 characters, and `…` follows. */
const MAX_NAME_CHARS = 1025;
/** User frames, and the kernel's. */
const MAX_FRAMES = 1023 + 128;

describe.skipIf(missingRights || !hasTool('gcc'))('a program that says it is Python', () => {
  let programs: LyingPrograms;
  let witness: Witness;
  const framesOf = (mode: string): string[] => programs.framesOf(mode);

  beforeAll(async () => {
    const path = compile('fake-python', 'gcc', ['-O2', '-rdynamic', '-pthread'], 'fake-python.c');
    programs = await LyingPrograms.start(path, MODES);
    const { recording } = programs;
    witness = await startWitness(recording);
    // `plain` shows that they are taken for Python at all
    await recording.until(() =>
      MODES.every((mode) =>
        programs
          .stacksOf(mode)
          .some(({ frames }) => frames.includes(LOOP) && (mode !== 'plain' || frames.includes('fake_name'))),
      ),
    );
    recording.clear();
    witness.begin();
    await recording.until(() => witness.hasEnough() && programs.haveEnough());
    await witness.end();
  }, 200_000);

  afterAll(async () => {
    witness?.stop();
    await programs?.stop();
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
    expect(programs.recording.controller.counters()['bpf.python_read_failed']).toBeGreaterThan(0);
  });

  it('with names of a terabyte costs its names', () => {
    const [name, loop] = framesOf('names');
    expect(name).toMatch(/^fake_name|^\[cpython: its name is not stored/);
    expect(name!.length).toBeLessThan(1100);
    expect(loop).toBe(LOOP);
  });

  it('whose memory changes while it is read has bounded stacks and names', () => {
    const stacks = programs.stacksOf('changing');
    const names = stacks.flatMap(({ frames }) => frames);
    expect(Math.max(...names.map((name) => name.length))).toBeLessThanOrEqual(MAX_NAME_CHARS);
    expect(Math.max(...stacks.map(({ frames }) => frames.length))).toBeLessThanOrEqual(MAX_FRAMES);
    const counters = programs.recording.controller.counters();
    expect(counters['bpf.python_not_code']).toBeGreaterThan(0);
    expect(counters['runtimeFrames.replaced']! + counters['runtimeFrames.malformed']!).toBeGreaterThan(0);
  });

  it('costs other processes nothing', () => {
    witness.expectComplete();
  });
});
