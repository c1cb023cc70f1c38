/** Programs that say they are PHP and lie: their stacks stay bounded, and nothing else suffers. */
import { describe, expect, it } from 'vitest';
import { hasTool, missingRights } from '../support/fixtures.ts';
import { Hostile, MAX_FRAMES } from './hostile.ts';

const MODES = ['plain', 'cycle', 'garbage', 'names', 'delegates', 'changing'];
const LOOP = 'execute_ex';
const NAME = 'fake_name';
/** A class and a method. */
const MAX_NAME_CHARS = 2 * 513 + 2;

describe.skipIf(missingRights || !hasTool('gcc'))('a program that says it is PHP', () => {
  const hostile = new Hostile({ name: 'php', modes: MODES, loop: LOOP, func: NAME });
  const framesOf = (mode: string): string[] => hostile.framesOf(mode);

  it('and tells the truth is shown as PHP', () => {
    expect(framesOf('plain').slice(0, 3)).toEqual([NAME, LOOP, 'main']);
  });

  it('with frames in a circle ends at the depth limit, and says so', () => {
    hostile.expectCutByDepth('cycle');
  });

  it('with frames that lead nowhere keeps its native frames', () => {
    expect(framesOf('garbage').slice(0, 2)).toEqual([LOOP, 'main']);
    expect(hostile.counter('bpf.php_read_failed')).toBeGreaterThan(0);
  });

  it('with names of a terabyte costs its names', () => {
    const [name, loop] = framesOf('names');
    expect(name).toMatch(/^fake_name|^\[php: its name is not stored/);
    expect(name!.length).toBeLessThan(1100);
    expect(loop).toBe(LOOP);
  });

  it('with generators that delegate to themselves has bounded stacks', () => {
    const frames = framesOf('delegates');
    expect(frames.filter((name) => name === NAME).length).toBeGreaterThanOrEqual(8);
    expect(frames.length).toBeLessThanOrEqual(MAX_FRAMES);
  });

  it('whose memory changes while it is read has bounded stacks and names', async () => {
    // in a lucky moment of the program
    await expect.poll(() => hostile.counter('bpf.php_not_function')).toBeGreaterThan(0);
    hostile.expectBounded('changing', MAX_NAME_CHARS);
    expect(hostile.failedNames).toBeGreaterThan(0);
  });

  hostile.itCostsOthersNothing();
});

const LYING_THREADS = ['key', 'offset', 'thread', 'memory'];

describe.skipIf(missingRights || !hasTool('gcc'))('a program that says it is PHP with threads', () => {
  const hostile = new Hostile({
    name: 'php-zts',
    modes: ['plain', ...LYING_THREADS],
    loop: LOOP,
    func: NAME,
  });

  it('and tells the truth is shown as PHP', () => {
    expect(hostile.framesOf('plain').slice(0, 3)).toEqual([NAME, LOOP, 'main']);
  });

  it.each(LYING_THREADS)('and lies about its %s keeps its native frames, which is counted', (mode) => {
    expect(hostile.framesOf(mode).slice(0, 2)).toEqual([LOOP, 'main']);
    expect(hostile.counter('bpf.php_no_globals')).toBeGreaterThan(0);
  });

  hostile.itCostsOthersNothing();
});
