import { expect, test } from 'vitest';
import { DictionaryCache, emptyPart } from '../database/database-part.ts';
import { EVERYTHING } from '../matcher.ts';
import { CPU_TYPE } from '../stored-type.ts';
import { ClickHousePart, type DictionarySource, loadDictionaries } from './clickhouse-part.ts';
import type { Columns } from './clickhouse-reader.ts';

const groupsOf = (keys: number[]): Columns => [
  keys,
  ...Array.from({ length: 9 }, (_, column) => keys.map((_, row) => (column === 0 ? `p${row}` : ''))),
  keys.map(() => 1),
];

/** Of two groups, which have one key with the first hash. */
const SOURCE: DictionarySource = {
  key: 'x',
  readGroups: async (key) => groupsOf(key.includes('(0,') ? [7, 7] : [7, 8]),
  read: async () => [
    [8, 7, 8, 9],
    ['1', '2', '3', '4'],
    ['1', '2', '3', '4'],
    ['0', '0', '0', '0'],
  ],
};

test('groups that share a hash are told apart by another one', async () => {
  const found = await loadDictionaries(SOURCE, new DictionaryCache(2 ** 20));
  expect(found.groups.map(({ process }) => process)).toEqual(['p0', 'p1']);
  expect(found.groupKeys.sql).toMatch(/\(1, process, thread, /);
  const series = await found.series();
  // the last one is of a group that came later
  expect([...series].map(({ process, pid }) => `${process} ${pid}`)).toEqual(['p1 1', 'p0 2', 'p1 3']);
});

test('rows of a group that came later are left out', async () => {
  const dictionaries = await loadDictionaries(SOURCE, new DictionaryCache(2 ** 20));
  const asked: string[] = [];
  const read = async (sql: string): Promise<Columns> => {
    asked.push(sql);
    return [
      [8, 9, 7],
      [0, 1, 2],
      [5, 6, 7],
    ];
  };
  const part = new ClickHousePart(emptyPart(3, 0, CPU_TYPE), dictionaries, read);
  const masks = { series: undefined, nodes: undefined, cpus: undefined, links: undefined };
  const range = { fromMs: 0, toMs: 1000, stepMs: 1, resolutionMs: 1 };
  const rows = await part.rows({ ...range, ...masks, groups: Uint8Array.of(0, 1), by: ['group', 'cpu'] });
  expect(rows).toMatchObject({ length: 2, groups: [1, 0], cpus: [0, 2], weights: [5, 7] });
  expect(asked[0]).toContain('series_group IN (8)');
});

test('links that came later are none yet', async () => {
  const source: DictionarySource = {
    ...SOURCE,
    read: async (columns, table, ids) =>
      table === 'links' ? [['ab'.repeat(16)], ['']] : SOURCE.read(columns, table, ids),
  };
  const dictionaries = await loadDictionaries(source, new DictionaryCache(2 ** 20));
  const info = { ...emptyPart(3, 0, CPU_TYPE), hasLinks: true };
  const part = new ClickHousePart(info, dictionaries, async () => [
    [0, 1, 2],
    [5, 6, 7],
  ]);
  const range = { fromMs: 0, toMs: 1000, stepMs: 1, resolutionMs: 1 };
  const { links } = await part.rows({ ...range, ...EVERYTHING, by: ['link'] });
  expect(links).toEqual([0, 1, 0]);
  expect((await part.links()).at(1)).toEqual({ traceId: 'ab'.repeat(16), spanId: '' });
});
