import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { walk } from '../../collector/web/flame/keyboard.ts';
import { nextMatch, parseSearch, search } from '../../collector/web/state/search.ts';
import { listRows } from '../../collector/web/tables/tree-rows.ts';
import { responseFromText } from '../../test/browser/flame-response.ts';
import {
  ancestors,
  buildModel,
  deepestRow,
  type FlameModel,
  lastStartingBefore,
  nameOf,
  nodeAt,
  nodeAtPath,
  pathKeyOf,
  subtreeOf,
} from './flame-model.ts';

const TEXT = `
a:1;main@n;read@n;vfs_read@k 6
a:1;main@n;work@n 3
a:1;main@n 1
b:2;main@n;work@n;work@n 10
`;

const modelOf = async (text: string): Promise<FlameModel> => buildModel(await responseFromText(text));

function find(model: FlameModel, path: string): number {
  const node = Array.from({ length: model.count }, (_, each) => each).find(
    (each) =>
      ancestors(model, each)
        .slice(1)
        .map((above) => nameOf(model, above))
        .join(';') === path,
  );
  if (node === undefined) throw new Error(`no ${path}`);
  return node;
}

describe('buildModel', () => {
  it('lays children out side by side under their parent', async () => {
    const model = await modelOf(TEXT);
    const box = (path: string) => {
      const node = find(model, path);
      return [model.x[node], model.total[node], model.self[node], model.depth[node]];
    };
    expect(box('')).toEqual([0, 20, 0, 0]);
    expect(box('a')).toEqual([0, 10, 0, 1]);
    expect(box('b')).toEqual([10, 10, 0, 1]);
    expect(box('a;main')).toEqual([0, 10, 1, 2]);
    expect(box('a;main;work')).toEqual([6, 3, 3, 3]);
    expect(box('b;main;work;work')).toEqual([10, 10, 10, 4]);
    expect(model.rowStart).toEqual([0, 1, 3, 5, 8, 10]);
  });

  it('knows a path again in another answer, and tells equal names apart by their path', async () => {
    const model = await modelOf(TEXT);
    const later = await modelOf(`${TEXT}c:3;main@n 5\na:1;aaa@n 2`);
    for (const path of ['a', 'a;main;work', 'b;main;work', 'b;main;work;work']) {
      expect(nodeAtPath(later, pathKeyOf(model, find(model, path)))).toBe(find(later, path));
    }
    expect(new Set(Array.from({ length: later.count }, (_, node) => pathKeyOf(later, node))).size).toBe(
      later.count,
    );
  });

  it('takes a kind that it does not know as unknown', async () => {
    const response = await responseFromText('a:1;main@n 1');
    response.kinds[response.kinds.indexOf('native')] = 'cobol' as never;
    const model = buildModel(response);
    expect(model.kinds).toEqual(['root', 'other', 'process', 'unknown']);
  });

  it('finds the box under a point, and gaps', async () => {
    const model = await modelOf(TEXT);
    expect(nodeAt(model, 3, 6.5)).toBe(find(model, 'a;main;work'));
    expect(nodeAt(model, 3, 9.5)).toBeUndefined();
    expect(nodeAt(model, 4, 10)).toBe(find(model, 'b;main;work;work'));
    expect(nodeAt(model, 9, 1)).toBeUndefined();
    expect(lastStartingBefore(model, 4, 9)).toBe(find(model, 'a;main;read;vfs_read'));
    expect(deepestRow(model, find(model, 'a;main;work'))).toBe(3);
    expect(deepestRow(model, 0)).toBe(4);
    expect(subtreeOf(model, find(model, 'b')).reduce((a, b) => a + b)).toBe(4);
  });
});

describe('search', () => {
  const samples = async (text: string, path = ''): Promise<number> => {
    const model = await modelOf(TEXT);
    const matcher = parseSearch(text);
    if (matcher === undefined || 'error' in matcher) throw new Error(`"${text}" is not a search`);
    return search(model, matcher, find(model, path)).samples;
  };

  it('counts nested matches once and stays within the zoomed box', async () => {
    expect(await samples('work')).toBe(13);
    expect(await samples('WORK', 'a')).toBe(3);
    expect(await samples('/^(vfs_)?read$/')).toBe(6);
    expect(await samples('/READ/')).toBe(0);
    expect(await samples('/READ/i')).toBe(6);
    expect(await samples('work', 'b;main;work;work')).toBe(10);
  });

  it('leads from match to match, the largest first, and around', async () => {
    const model = await modelOf(TEXT);
    const matcher = parseSearch('work') as (name: string) => boolean;
    const found = search(model, matcher, 0);
    const [first, second, third] = ['b;main;work', 'b;main;work;work', 'a;main;work'].map((path) =>
      find(model, path),
    );
    expect(nextMatch(model, found, 0, undefined, 1)).toBe(first);
    expect(nextMatch(model, found, 0, first, 1)).toBe(second);
    expect(nextMatch(model, found, 0, third, 1)).toBe(first);
    expect(nextMatch(model, found, 0, first, -1)).toBe(third);
    expect(nextMatch(model, found, find(model, 'a'), undefined, 1)).toBe(third);
    expect(
      nextMatch(
        model,
        search(model, () => false, 0),
        0,
        0,
        1,
      ),
    ).toBeUndefined();
  });

  it('says what is wrong with an expression', () => {
    expect(parseSearch('/(/')).toMatchObject({ error: expect.stringContaining('(') });
    expect(parseSearch('  ')).toBeUndefined();
    expect(parseSearch('/')).toBeTypeOf('function');
  });
});

describe('walk', () => {
  it('leads to callers, largest callees, neighbours and the ends of a row', async () => {
    const model = await modelOf(TEXT);
    const go = (path: string, key: string, root = ''): number =>
      walk(model, find(model, path), find(model, root), key)!;
    expect(go('a;main', 'ArrowDown')).toBe(find(model, 'a;main;read'));
    expect(go('a;main;work', 'ArrowUp')).toBe(find(model, 'a;main'));
    expect(go('a;main;work', 'ArrowRight')).toBe(find(model, 'b;main;work'));
    expect(go('a;main;work', 'ArrowRight', 'a')).toBe(find(model, 'a;main;work'));
    expect(go('a;main;read', 'ArrowLeft')).toBe(find(model, 'a;main;read'));
    expect(go('a;main;work', 'Home')).toBe(find(model, 'a;main;read'));
    expect(go('b;main;work', 'Home', 'b')).toBe(find(model, 'b;main;work'));
    expect(go('a;main;read', 'End')).toBe(find(model, 'b;main;work'));
    expect(go('', 'PageDown')).toBe(find(model, 'a;main;read;vfs_read'));
    expect(go('a;main;read;vfs_read', 'PageUp')).toBe(0);
    expect(walk(model, 0, 0, 'x')).toBeUndefined();
  });

  it('never leaves the model, wherever keys lead', async () => {
    const model = await modelOf(TEXT);
    const key = fc.constantFrom('ArrowDown', 'ArrowUp', 'ArrowLeft', 'ArrowRight', 'Home', 'End', 'PageDown');
    fc.assert(
      fc.property(fc.array(key, { maxLength: 40 }), fc.nat(model.count - 1), (keys, root) => {
        let node = root;
        for (const each of keys) node = walk(model, node, root, each)!;
        expect(model.total[node]).toBeGreaterThan(0);
      }),
    );
  });
});

describe('listRows', () => {
  it('opens what holds half of the view, the largest first', async () => {
    const model = await modelOf(TEXT);
    const show = (toggled: string[]): string[] =>
      listRows(model, 0, new Set(toggled.map((path) => pathKeyOf(model, find(model, path))))).map(
        ({ node, level, isOpen, hasChildren }) =>
          `${'  '.repeat(level)}${hasChildren ? (isOpen ? '-' : '+') : ' '} ${nameOf(model, node)}`,
      );
    expect(show(['b'])).toEqual(['- all', '  - a', '    - main', '      + read', '        work', '  + b']);
    expect(show(['a', 'b'])).toEqual(['- all', '  + a', '  + b']);
  });
});
