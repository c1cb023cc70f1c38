/** Programs that say they are BEAM and lie: their stacks stay bounded, and nothing else suffers. */
import { describe, expect, it } from 'vitest';
import { hasTool, missingRights } from '../support/fixtures.ts';
import { Hostile } from './hostile.ts';

const MODES = [
  'plain',
  'deep',
  'wide',
  'tables',
  'stack',
  'names',
  'atoms',
  'functions',
  'lines',
  'changing',
];
const CALLED = 'fake_bif';
const NAME = 'fake:middle/0';
/** Three atoms of 255 characters, as quoted. */
const MAX_NAME_CHARS = 2 * (2 * 255 + 2) + 5;

describe.skipIf(missingRights || !hasTool('gcc'))('a program that says it is BEAM', () => {
  const hostile = new Hostile({ name: 'beam', modes: MODES, loop: CALLED, func: NAME, minFailedNames: 1 });
  const framesOf = (mode: string): string[] => hostile.framesOf(mode);

  it('and tells the truth is shown as Erlang', () => {
    expect(framesOf('plain')).toEqual([CALLED, 'fake:leaf/0', NAME, 'fake:root/0']);
  });

  it('with a stack that is nothing but frames ends at the depth limit, and says so', () => {
    const frames = framesOf('deep');
    expect(frames.filter((name) => name === NAME).length).toBeGreaterThan(1000);
    expect(frames).toHaveLength(1023 + 1);
    expect(frames.at(-1)).toBe('[cut: deeper than the limit]');
  });

  it('with a stack of a million variables has the frames that need none', () => {
    expect(framesOf('wide').slice(0, 2)).toEqual([CALLED, 'fake:leaf/0']);
    expect(framesOf('wide')[2]).toMatch(/^\[cut: /);
  });

  it('with tables and stacks that lead nowhere has native frames, and says so', () => {
    expect(framesOf('tables')[0]).toBe(CALLED);
    expect(framesOf('stack').slice(0, 2)).toEqual([CALLED, 'fake:leaf/0']);
    expect(framesOf('stack')[2]).toMatch(/^\[cut: /);
    expect(hostile.counter('bpf.beam_read_failed')).toBeGreaterThan(0);
  });

  it.each(['names', 'atoms', 'functions', 'lines'])('with endless %s costs a name', (mode) => {
    expect(framesOf(mode)[0]).toBe(CALLED);
    expect(framesOf(mode).some((name) => name.startsWith('[beam: '))).toBe(true);
  });

  it('whose memory changes while it is read has bounded stacks and names', () => {
    hostile.expectBounded('changing', MAX_NAME_CHARS);
  });

  hostile.itCostsOthersNothing();
});
