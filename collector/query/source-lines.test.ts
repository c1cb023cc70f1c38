import { describe, expect, it } from 'vitest';
import { parseTransforms } from '../../common/profile/filters/transform-list.ts';
import { profileFromText } from '../../test/browser/synthetic-profile.ts';
import { MemoryStore } from '../store/memory/memory-store.ts';
import { readProfile } from './export.ts';
import { buildFlameTree } from './flame/flame-tree.ts';
import { topFunctions } from './functions.ts';
import { countLines } from './source-lines.ts';
import { readWindow } from './window.ts';

const now = (): number => Date.UTC(2026, 0, 1, 12, 0, 30);
const TEXT = `
app:1;main@p:/srv/app.py:3;fib@p:/srv/app.py:9;fib@p:/srv/app.py:9;add@p:/srv/lib.py:2 4
app:1;main@p:/srv/app.py:3;fib@p:/srv/app.py:9;fib@p:/srv/app.py:7 2
app:1;main@p:/srv/app.py:4;wait@n 3
app:1;other@p:/srv/other.py:1 8
`;

const window = async (text = TEXT) => {
  const store = new MemoryStore({ maxBytes: 2 ** 26, maxAgeMs: 3_600_000, now });
  // two minutes: two parts
  for (const endMs of [now(), now() - 60_000]) store.append(profileFromText(text, { endMs, spanMs: 1000 }));
  return readWindow(store, { fromMs: 0, toMs: now() + 1, where: [] }, 1);
};

describe('lines of a file', () => {
  it('have the samples in them and below, a recursion once', async () => {
    const { parts } = await window();
    expect(parts).toHaveLength(2);
    expect(countLines(parts, '/srv/app.py')).toEqual({
      samples: 18,
      lines: [
        { line: 3, function: 'main', self: 0, total: 12 },
        { line: 4, function: 'main', self: 0, total: 6 },
        { line: 7, function: 'fib', self: 4, total: 4 },
        { line: 9, function: 'fib', self: 0, total: 12 },
      ],
    });
    expect(countLines(parts, '/srv/lib.py').lines).toEqual([{ line: 2, function: 'add', self: 8, total: 8 }]);
    expect(countLines(parts, '/etc/shadow')).toEqual({ samples: 0, lines: [] });
  });

  it('are in exported profiles, also below transforms that leave frames as they are', async () => {
    const store = new MemoryStore({ maxBytes: 2 ** 26, maxAgeMs: 3_600_000, now });
    store.append(profileFromText(TEXT, { endMs: now(), spanMs: 1000 }));
    const filter = { fromMs: 0, toMs: now() + 1, where: [] };
    const linesOf = async (transform: string): Promise<string[]> => {
      const { locations, functions } = await readProfile(store, filter, parseTransforms(transform));
      return locations
        .flatMap(({ lines }) => lines.map(({ func, line }) => `${functions[func]!.name}:${line}`))
        .sort();
    };
    expect(await linesOf('')).toEqual(['add:2', 'fib:7', 'fib:9', 'main:3', 'main:4', 'other:1', 'wait:0']);
    expect(await linesOf('focus=fib hide=add')).toEqual(['fib:7', 'fib:9']);
    expect(await linesOf('focus=fib recursion=all')).toEqual(['add:0', 'fib:0']);
  });

  it('are not boxes of their own', async () => {
    const { parts } = await window();
    const tree = buildFlameTree(parts);
    const names = Array.from(tree.nodeFrames, (frame) => tree.frames[frame]!.name);
    expect(names.filter((name) => name === 'main')).toHaveLength(1);
    const main = topFunctions(parts).functions.find(({ name }) => name === 'main');
    expect(main).toEqual({
      name: 'main',
      file: '/srv/app.py',
      mapping: '',
      kind: 'cpython',
      self: 0,
      total: 18,
    });
  });
});
