/** Programs that say they are Perl and lie: their stacks stay bounded, and nothing else suffers. */
import { describe, expect, it } from 'vitest';
import { hasTool, missingRights } from '../support/fixtures.ts';
import { Hostile } from './hostile.ts';

const MODES = ['plain', 'cycle', 'garbage', 'names', 'deep', 'blocks', 'tree', 'changing'];
const LOOP = 'Perl_runops_standard';
const NAME = 'Fake::fake_name';
/** A package and a function. */
const MAX_NAME_CHARS = 2 * 513 + 2;

describe.skipIf(missingRights || !hasTool('gcc'))('a program that says it is Perl', () => {
  const hostile = new Hostile({ name: 'perl', modes: MODES, loop: LOOP, func: NAME, minFailedNames: 1 });
  const framesOf = (mode: string): string[] => hostile.framesOf(mode);

  it('and tells the truth is shown as Perl', () => {
    expect(framesOf('plain').slice(0, 4)).toEqual([NAME, '(main)', LOOP, 'main']);
  });

  it('with stacks in a circle keeps its native frames', () => {
    expect(framesOf('cycle').slice(0, 2)).toEqual([LOOP, 'main']);
  });

  it('with a function that leads nowhere loses that frame', () => {
    expect(framesOf('garbage').slice(0, 3)).toEqual(['(main)', LOOP, 'main']);
    expect(hostile.counter('bpf.perl_not_function')).toBeGreaterThan(0);
    expect(hostile.counter('bpf.perl_read_failed')).toBeGreaterThan(0);
  });

  it('with thousands of functions ends at the depth limit, and says so', () => {
    hostile.expectCutByDepth('deep');
  });

  it('with thousands of blocks has native frames only, and says so', () => {
    expect(framesOf('blocks').slice(0, 2)).toEqual([LOOP, 'main']);
    expect(hostile.counter('bpf.perl_contexts_left')).toBeGreaterThan(0);
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
    hostile.expectBounded('changing', MAX_NAME_CHARS);
    expect(hostile.counter('bpf.perl_bad_context')).toBeGreaterThan(0);
    expect(hostile.failedNames).toBeGreaterThan(0);
  });

  hostile.itCostsOthersNothing();
});
