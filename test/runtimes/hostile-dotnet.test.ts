/** Programs that say they are .NET and lie: their stacks stay bounded, and nothing else suffers. */
import { describe, expect, it } from 'vitest';
import { hasTool, missingRights } from '../support/fixtures.ts';
import { Hostile } from './hostile.ts';

const MODES = ['plain', 'circle', 'nibbles', 'frame', 'names', 'metadata', 'places', 'changing'];
const LOOP = 'main';
const NAME = 'fake_method';
/** Of a dynamic method, in bytes. */
const MAX_NAME = 256;

describe.skipIf(missingRights || !hasTool('gcc'))('a program that says it is .NET', () => {
  const hostile = new Hostile({ name: 'dotnet', modes: MODES, loop: LOOP, func: NAME, minFailedNames: 1 });
  const framesOf = (mode: string): string[] => hostile.framesOf(mode);

  it('and tells the truth is shown as .NET', () => {
    expect(framesOf('plain').slice(0, 2)).toEqual([NAME, LOOP]);
    expect(framesOf('plain').at(-1)).toBe('_start');
  });

  it.each(['circle', 'nibbles'])(
    'with a map that leads nowhere (%s) keeps its code as what it is',
    (mode) => {
      expect(framesOf(mode)).not.toContain(NAME);
      expect(framesOf(mode)).toContain(LOOP);
      expect(hostile.counter('bpf.dotnet_no_method')).toBeGreaterThan(0);
    },
  );

  it('with a frame of gigabytes has no caller', () => {
    expect(framesOf('frame')).not.toContain(NAME);
    expect(hostile.counter('bpf.dotnet_no_caller')).toBeGreaterThan(0);
  });

  it('with a name of a megabyte costs that name', () => {
    const [leaf, caller] = framesOf('names');
    expect(leaf).toMatch(/^x+$/);
    expect(leaf).toHaveLength(MAX_NAME);
    expect(caller).toBe(LOOP);
  });

  it('with millions of beginnings of metadata has no name', () => {
    expect(framesOf('metadata').slice(0, 2)).toEqual([
      '[dotnet: its name is not stored as this version of the runtime stores names]',
      LOOP,
    ]);
  });

  it('with a map to IL that makes no sense has its name', () => {
    expect(framesOf('places').slice(0, 2)).toEqual([NAME, LOOP]);
  });

  it('whose memory changes while it is read has bounded stacks and names', () => {
    hostile.expectBounded('changing', 1024);
    expect(hostile.failedNames).toBeGreaterThan(0);
  });

  it('costs the agent no failure', () => {
    expect(hostile.counter('processRuntimes.failed')).toBe(0);
    expect(hostile.counter('runtimeFrames.failed')).toBe(0);
  });

  hostile.itCostsOthersNothing();
});
