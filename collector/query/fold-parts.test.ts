import fc from 'fast-check';
import { expect, it } from 'vitest';
import { profileFromText } from '../../test/browser/synthetic-profile.ts';
import { MemoryStore } from '../store/memory/memory-store.ts';
import type { StackCounts } from '../store/store.ts';
import { sumSubtrees } from '../store/trees/sum-subtrees.ts';
import { buildFlameTree } from './flame/flame-tree.ts';
import { FoldingParts } from './fold-parts.ts';
import { topFunctions } from './functions.ts';
import { readWindow } from './window.ts';

const NOW_MS = Date.UTC(2026, 0, 1, 12);
const RANGE = { fromMs: NOW_MS - 3_600_000, toMs: NOW_MS + 1, where: [] };

/** One part a minute; `deep` is in 60,000 of 60,005 samples. */
async function readParts(): Promise<StackCounts[]> {
  const store = new MemoryStore({ maxBytes: 2 ** 28, maxAgeMs: 3_600_000, now: () => NOW_MS });
  for (let part = 0; part < 5; part++) {
    const endMs = NOW_MS - part * 60_000 - 1;
    store.append(
      profileFromText(`p:1;main@n;deep@n 12000\np:1;main@n;rare${part}@n;leaf@n 1`, { endMs, spanMs: 1 }),
    );
  }
  return (await readWindow(store, RANGE, 1)).parts;
}

const eventsOf = (parts: readonly StackCounts[]): number =>
  parts.flatMap(({ selfCounts }) => [...selfCounts]).reduce((sum, count) => sum + count, 0);

it('leaves windows as they are that have room', async () => {
  const parts = await readParts();
  const folding = new FoldingParts(60_005, 5, 1000);
  for (const part of parts) folding.add(part);
  expect(folding.parts).toEqual(parts);
});

it('keeps every event, and says "(other)" for what is too rare to be seen', async () => {
  const parts = await readParts();
  const folding = new FoldingParts(10 ** 6, 5, 1);
  for (const part of parts) folding.add(part);
  expect(eventsOf(folding.parts)).toBe(60_005);
  const names = topFunctions(folding.parts).functions.map(({ name, self, total }) => [name, self, total]);
  expect(names).toEqual([
    ['deep', 60_000, 60_000],
    ['(other)', 5, 5],
    ['main', 0, 60_005],
  ]);
  const tree = buildFlameTree(folding.parts);
  const shown = tree.frames.map(({ kind, name }) => [kind, name]);
  expect(shown.filter(([kind]) => kind === 'other')).toEqual([['other', '(other)']]);
  expect(tree.foldedSamples).toBe(5);
});

it('loses no event and raises no count, whatever the tree', () => {
  const trees = fc.array(fc.record({ parent: fc.nat(), self: fc.nat(9) }), { minLength: 1, maxLength: 60 });
  fc.assert(
    fc.property(trees, fc.integer({ min: 2, max: 40 }), (nodes, minimum) => {
      const parents = Uint32Array.from(nodes, ({ parent }, node) => (node === 0 ? 0 : parent % node));
      const nodeFrames = Uint32Array.from(nodes.keys());
      const selfCounts = Float64Array.from(nodes, ({ self }) => self);
      const frames = nodes.map((_, i) => ({ name: `f${i}`, file: '', mapping: '', kind: 'native' as const }));
      const folding = new FoldingParts(minimum * 80_000, 1, 0);
      folding.add({ frames, parents, nodeFrames, selfCounts });
      const [part] = folding.parts;
      const before = sumSubtrees(parents, selfCounts);
      const after = sumSubtrees(part!.parents, part!.selfCounts);
      expect(after[0]).toBe(before[0]);
      const kept = [...before.keys()].filter((node) => node > 0 && before[node]! >= minimum);
      const shown = [...after.keys()].filter((node) => node > 0 && part!.nodeFrames[node]! < frames.length);
      expect(shown.map((node) => [part!.nodeFrames[node], after[node]])).toEqual(
        kept.map((node) => [node, before[node]]),
      );
    }),
  );
});
