/** Programs that say they are LuaJIT and lie: their stacks stay bounded, and nothing else suffers. */
import { describe, expect, it } from 'vitest';
import { hasTool, missingRights } from '../support/fixtures.ts';
import { Hostile } from './hostile.ts';

const MODES = ['plain', 'deep', 'garbage', 'names', 'protos', 'snapshots', 'circle', 'changing'];
const CALLER = 'enter';
const NAME = 'fake_name';
const MAX_NAME_CHARS = 257;

describe.skipIf(missingRights || !hasTool('gcc') || process.arch !== 'x64')(
  'a program that says it is LuaJIT',
  () => {
    const hostile = new Hostile({ name: 'luajit', modes: MODES, loop: CALLER, func: NAME });
    const framesOf = (mode: string): string[] => hostile.framesOf(mode);

    it('and tells the truth is shown as LuaJIT', () => {
      expect(framesOf('plain').slice(0, 4)).toEqual([NAME, '(main)', CALLER, 'main']);
    });

    it('with thousands of functions ends at the depth limit, and says so', () => {
      hostile.expectCutByDepth('deep');
    });

    it('with a function that leads nowhere keeps its native frames', () => {
      expect(framesOf('garbage').slice(0, 3)).toEqual(['fake_vm', CALLER, 'main']);
      expect(hostile.counter('bpf.luajit_read_failed')).toBeGreaterThan(0);
    });

    it('with names of four gigabytes costs its names', () => {
      expect(framesOf('names').slice(0, 2)).toEqual(
        Array(2).fill(expect.stringMatching(/^\[luajit: its name is not/)),
      );
      expect(framesOf('names').slice(2, 4)).toEqual([CALLER, 'main']);
    });

    it('with a prototype of billions of instructions costs its name', () => {
      expect(framesOf('protos')[0]).toMatch(/^\[luajit: it was freed or moved/);
      expect(framesOf('protos').slice(1, 4)).toEqual(['(main)', CALLER, 'main']);
    });

    it('with a trace that has inlined as much as there can be has all of it', () => {
      expect(framesOf('snapshots').filter((name) => name === NAME)).toHaveLength(128);
      expect(framesOf('snapshots').slice(128, 131)).toEqual(['(main)', CALLER, 'main']);
    });

    it('whose native frame is its own predecessor is shown as LuaJIT', () => {
      expect(framesOf('circle').slice(0, 4)).toEqual([NAME, '(main)', CALLER, 'main']);
    });

    it('whose memory changes while it is read has bounded stacks and names', () => {
      hostile.expectBounded('changing', MAX_NAME_CHARS);
      expect(hostile.counter('bpf.luajit_bad_frame')).toBeGreaterThan(0);
      expect(hostile.failedNames).toBeGreaterThan(0);
    });

    hostile.itCostsOthersNothing();
  },
);
