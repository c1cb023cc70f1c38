import { describe, expect, it } from 'vitest';
import type { Frame, StackCounts } from '../store/store.ts';
import { compareFunctions, topFunctions } from './functions.ts';

const native = (name: string, mapping: string, file: string): Frame => ({
  name,
  mapping,
  file,
  kind: 'native',
});
/** Equal counts, in the order in which they have to be listed. */
const FRAMES = [
  native('a', 'libz.so', 'z.c'),
  native('b', 'liba.so', 'y.c'),
  native('b', 'liba.so', 'z.c'),
  native('b', 'libb.so', 'a.c'),
  native('c', 'liba.so', 'a.c'),
];

/** Each below the root, with one event. */
const partOf = (frames: readonly Frame[]): StackCounts => ({
  frames: [{ name: 'all', file: '', mapping: '', kind: 'root' }, ...frames],
  parents: new Uint32Array(frames.length + 1),
  nodeFrames: Uint32Array.from({ length: frames.length + 1 }, (_, i) => i),
  selfCounts: Float64Array.from({ length: frames.length + 1 }, (_, i) => (i === 0 ? 0 : 1)),
});

const listed = (functions: readonly Frame[]): string[] =>
  functions.map(({ name, mapping, file }) => `${name} ${mapping} ${file}`);
const ORDERS = [FRAMES, FRAMES.toReversed(), [3, 1, 4, 0, 2].map((i) => FRAMES[i]!)];

describe('functions of equal counts', () => {
  it.each(ORDERS.map((frames, i) => [i, partOf(frames)] as const))(
    'are listed by name, mapping and file, whichever came first: %i',
    (_, part) => {
      expect(listed(topFunctions([part]).functions)).toEqual(listed(FRAMES));
      expect(listed(topFunctions([part], 3, 'total').functions)).toEqual(listed(FRAMES.slice(0, 3)));
      const none = { parts: [], samples: 0 };
      const now = { parts: [part], samples: FRAMES.length };
      expect(listed(compareFunctions(none, now, 3).functions)).toEqual(listed(FRAMES.slice(0, 3)));
    },
  );
});
