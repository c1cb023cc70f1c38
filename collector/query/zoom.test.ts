import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FlameModel } from '../../common/flame/flame-model.ts';
import { buildModel, findZoom, kindOf, nameOf, zoomKeyOf } from '../../common/flame/flame-model.ts';
import { parseZoom, type ZoomKey } from '../../common/flame/path-key.ts';
import { profileFromText } from '../../test/browser/synthetic-profile.ts';
import { flameColumns } from '../api/responses.ts';
import { MemoryStore } from '../store/memory/memory-store.ts';
import { drawTree } from './draw-tree.ts';

const END_MS = Date.UTC(2026, 0, 1);
const FILTER = { fromMs: END_MS - 60_000, toMs: END_MS + 1, where: [] };

function storeOf(text: string): MemoryStore {
  const store = new MemoryStore({ maxBytes: 2 ** 26, maxAgeMs: 3_600_000, now: () => END_MS });
  store.append(profileFromText(text, { endMs: END_MS, spanMs: 10_000 }));
  return store;
}

/** As the page has it. */
async function look(store: MemoryStore, zoomText: string, maxNodes: number, isInverted = false) {
  const zoom: ZoomKey | undefined = zoomText === '' ? undefined : parseZoom(zoomText);
  const limits = { minFraction: 0, maxNodes, zoom };
  const { tree, window, leaves } = await drawTree(store, FILTER, {
    transforms: [],
    limits,
    steps: 1,
    isInverted,
  });
  const { timeline: _, parts: __, isWhole: ___, ...basis } = window;
  const model = buildModel({ fromMs: 0, toMs: 1, timeline: [], ...basis, ...flameColumns(tree), leaves });
  const root = findZoom(model, zoomText);
  return { model, root, leaves };
}

const named = (model: FlameModel, name: string): number =>
  Array.from({ length: model.count }, (_, node) => node).find((node) => nameOf(model, node) === name)!;

/** All stacks that can be reached by zooming into whatever is not loaded, with their samples. */
async function reach(
  store: MemoryStore,
  maxNodes: number,
  isInverted: boolean,
): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  const wanted = [''];
  const asked = new Set<string>();
  for (const zoom of wanted) {
    if (asked.has(zoom)) continue;
    asked.add(zoom);
    expect(asked.size).toBeLessThan(2000);
    const { model, root } = await look(store, zoom, maxNodes, isInverted);
    expect(root, `box of ${zoom}`).toBeDefined();
    const paths: string[] = [''];
    for (let node = 1; node < model.count; node++) {
      const isOther = kindOf(model, node) === 'other';
      paths[node] = paths[model.parent[node]!]! + (isOther ? '' : `;${nameOf(model, node)}`);
      if (!isOther && model.self[node]! > 0) found.set(paths[node]!, model.self[node]!);
      if (isOther && model.self[node]! > 0)
        wanted.push(zoomKeyOf(model, model.parent[node]!), zoomKeyOf(model, node));
    }
  }
  return found;
}

const NAME = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h');
const LINE = fc
  .tuple(
    fc.constantFrom('p', 'q'),
    fc.array(NAME, { minLength: 1, maxLength: 5 }),
    fc.integer({ min: 1, max: 9 }),
  )
  .map(
    ([process, frames, count]) =>
      [`${process};${frames.map((name) => `${name}@n`).join(';')}`, count] as const,
  );
const LINES = fc.uniqueArray(LINE, { minLength: 1, maxLength: 40, selector: ([path]) => path });

describe('a zoomed tree', () => {
  it('has what a picture of all had no room for', async () => {
    const wide = Array.from({ length: 40 }, (_, i) => `sh;main@n;rare${i}@n;deep${i}@n ${i < 2 ? 5 : 1}`);
    const store = storeOf([...wide, 'sh;main@n;hot@n;loop@n 500'].join('\n'));
    const { model } = await look(store, '', 6);
    expect(named(model, 'deep7')).toBeUndefined();
    const other = named(model, 'not loaded');
    expect(model.self[other]).toBeGreaterThan(30);
    const { model: zoomed, root } = await look(store, zoomKeyOf(model, other), 200);
    expect(nameOf(zoomed, root!)).toBe('smaller boxes');
    expect(zoomed.total[root!]).toBe(model.self[other]);
    expect(zoomed.total[0]).toBe(model.total[0]);
    expect(named(zoomed, 'deep7')).toBeDefined();
    // and the box of a function below what was not loaded is the box of that function
    const deep = named(zoomed, 'deep7');
    const { model: deepest, root: at } = await look(store, zoomKeyOf(zoomed, deep), 10);
    expect(nameOf(deepest, at!)).toBe('deep7');
    expect(deepest.total[at!]).toBe(1);
  });

  it('reaches every stack, by as many boxes as there is room for', async () => {
    await fc.assert(
      fc.asyncProperty(
        LINES,
        fc.integer({ min: 4, max: 12 }),
        fc.boolean(),
        async (lines, maxNodes, isInverted) => {
          const store = storeOf(lines.map(([path, count]) => `${path} ${count}`).join('\n'));
          const expected = new Map(
            lines.map(([path, count]) => {
              const parts = path.replaceAll('@n', '').split(';');
              return [`;${(isInverted ? parts.reverse() : parts).join(';')}`, count];
            }),
          );
          const found = await reach(store, maxNodes, isInverted);
          expect([...found].sort()).toEqual([...expected].sort());
        },
      ),
      { numRuns: 40 },
    );
  });

  it('says what all samples of the box ended in, in no box or in one', async () => {
    const store = storeOf(
      [
        'sh;main@n;write@n;vfs_write@k 30',
        'sh;main@n;parse@p 10',
        'sh;main@n;[cut]@m;lost@n 5',
        'node;run@j;write@n 5',
      ].join('\n'),
    );
    const { model, leaves } = await look(store, '', 3);
    expect(leaves).toMatchObject({
      samples: 50,
      kinds: [
        { kind: 'kernel', samples: 30 },
        { kind: 'cpython', samples: 10 },
        { kind: 'native', samples: 10 },
      ],
      incomplete: 5,
    });
    const { leaves: ofMain } = await look(store, zoomKeyOf(model, named(model, 'main')), 3);
    expect(ofMain).toMatchObject({ samples: 45, incomplete: 5 });
    expect(ofMain.kinds.map(({ samples }) => samples)).toEqual([30, 10, 5]);
  });
});
