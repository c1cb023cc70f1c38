/** Programs that say they are Ruby and lie: their stacks stay bounded, and nothing else suffers. */
import { describe, expect, it } from 'vitest';
import { hasTool, missingRights } from '../support/fixtures.ts';
import { Hostile } from './hostile.ts';

const MODES = ['plain', 'cycle', 'garbage', 'names', 'deep', 'changing'];
const LOOP = 'rb_vm_exec';
const NAME = 'fake_name';
/** A class and a method. */
const MAX_NAME_CHARS = 2 * 513 + 2;

describe.skipIf(missingRights || !hasTool('gcc'))('a program that says it is Ruby', () => {
  const hostile = new Hostile({ name: 'ruby', modes: MODES, loop: LOOP, func: NAME, minFailedNames: 1 });
  const framesOf = (mode: string): string[] => hostile.framesOf(mode);

  it('and tells the truth is shown as Ruby', () => {
    expect(framesOf('plain').slice(0, 3)).toEqual([NAME, LOOP, 'main']);
  });

  it('with environments in a circle keeps its native frames', () => {
    expect(framesOf('cycle').slice(0, 2)).toEqual([LOOP, 'main']);
    expect(hostile.counter('bpf.ruby_bad_frame')).toBeGreaterThan(0);
  });

  it('with frames that lead nowhere keeps its native frames', () => {
    expect(framesOf('garbage')).toContain('main');
    expect(hostile.counter('bpf.ruby_read_failed')).toBeGreaterThan(0);
  });

  it('with thousands of frames ends at the depth limit, and says so', () => {
    hostile.expectCutByDepth('deep');
  });

  it('with names of a terabyte costs its names', () => {
    const [name, loop] = framesOf('names');
    expect(name).toMatch(/^fake_name|^\[ruby: its name is not stored/);
    expect(name!.length).toBeLessThan(1100);
    expect(loop).toBe(LOOP);
  });

  it('whose memory changes while it is read has bounded stacks and names', () => {
    hostile.expectBounded('changing', MAX_NAME_CHARS);
    expect(hostile.counter('bpf.ruby_bad_frame')).toBeGreaterThan(0);
    expect(hostile.failedNames).toBeGreaterThan(0);
  });

  hostile.itCostsOthersNothing();
});
