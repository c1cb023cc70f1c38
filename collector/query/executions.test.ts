import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parseFilter } from '../../common/profile/filters/filter.ts';
import { profileFromText } from '../../test/browser/synthetic-profile.ts';
import { DuckDbStore } from '../store/duckdb/duckdb-store.ts';
import type { SamplePart } from '../store/store.ts';
import { countExecutions } from './executions.ts';

const NOW = Date.UTC(2026, 0, 1, 12);
const HOUR = 3_600_000;

it('counts an execution once, in whichever hours it ran, and reads samples only of parts that are cut', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'everyframe-executions-'));
  const limits = { maxBytes: 2 ** 30, maxAgeMs: 48 * HOUR };
  const store = await DuckDbStore.open({ directory, ...limits, now: () => NOW, logger: console });
  for (const hour of [2, 1]) {
    const text = `sh:1;a@n 5\nsh:${10 + hour};a@n 3\nsh:1;b@n 2\nnode:1;a@n 1`;
    store.append(profileFromText(text, { endMs: NOW - hour * HOUR, spanMs: 1000 }));
  }
  store.append(profileFromText('sh:7;a@n 5', { endMs: NOW, spanMs: 1000, host: 'another' }));
  store.append(profileFromText('sh:1;a@n 5', { endMs: NOW, spanMs: 1000, host: 'another' }));
  let reads = 0;
  const counting = {
    parts: async (range: { fromMs: number; toMs: number }): Promise<SamplePart[]> => {
      const parts = await store.parts(range);
      for (const part of parts) {
        const rows = part.rows.bind(part);
        part.rows = (query) => {
          reads++;
          return rows(query);
        };
      }
      return parts;
    },
  };
  const count = async (where: string, fromMs = 0) => {
    reads = 0;
    const counts = await countExecutions(counting, { fromMs, toMs: NOW + 1, where: parseFilter(where) });
    return [Object.fromEntries(counts), reads];
  };
  expect(await count('')).toEqual([{ sh: 5, node: 1 }, 0]);
  expect(await count('pid=1')).toEqual([{ sh: 2, node: 1 }, 0]);
  expect(await count('process=sh host=another')).toEqual([{ sh: 2 }, 0]);
  expect(await count('frame=b')).toEqual([{ sh: 1 }, 3]);
  expect(await count('', NOW - HOUR - 1)).toEqual([{ sh: 4, node: 1 }, 1]);
  await store.close();
  rmSync(directory, { recursive: true });
});
