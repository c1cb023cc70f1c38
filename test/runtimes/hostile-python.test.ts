/** Programs that say they are CPython and lie: their stacks stay bounded, and nothing else suffers. */
import { describe, expect, it } from 'vitest';
import { hasTool, missingRights } from '../support/fixtures.ts';
import { Hostile } from './hostile.ts';

const MODES = ['plain', 'cycle', 'garbage', 'names', 'changing'];
const LOOP = '_PyEval_EvalFrameDefault';
/** Function names are cut at 1,024 characters, and `…` follows. */
const MAX_NAME_CHARS = 1025;

describe.skipIf(missingRights || !hasTool('gcc'))('a program that says it is Python', () => {
  const hostile = new Hostile({ name: 'python', modes: MODES, loop: LOOP, func: 'fake_name' });
  const framesOf = (mode: string): string[] => hostile.framesOf(mode);

  it('and tells the truth is shown as Python', () => {
    expect(framesOf('plain').slice(0, 3)).toEqual(['fake_name', LOOP, 'main']);
  });

  it('with frames in a circle ends at the depth limit, and says so', () => {
    hostile.expectCutByDepth('cycle');
  });

  it('with frames that lead nowhere keeps its native frames', () => {
    expect(framesOf('garbage').slice(0, 2)).toEqual([LOOP, 'main']);
    expect(hostile.counter('bpf.python_read_failed')).toBeGreaterThan(0);
  });

  it('with names of a terabyte costs its names', () => {
    const [name, loop] = framesOf('names');
    expect(name).toMatch(/^fake_name|^\[cpython: its name is not stored/);
    expect(name!.length).toBeLessThan(1100);
    expect(loop).toBe(LOOP);
  });

  it('whose memory changes while it is read has bounded stacks and names', () => {
    hostile.expectBounded('changing', MAX_NAME_CHARS);
    expect(hostile.counter('bpf.python_not_code')).toBeGreaterThan(0);
    expect(hostile.failedNames).toBeGreaterThan(0);
  });

  hostile.itCostsOthersNothing();
});
