import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { profileFromText } from '../../test/browser/synthetic-profile.ts';
import { ReceiverStats } from '../ingest/receiver-stats.ts';
import { SourceFiles } from '../source/source-files.ts';
import { DuckDbStore } from '../store/duckdb/duckdb-store.ts';
import type { SamplePart, TimeRange } from '../store/store.ts';
import { warmUp } from './warm-up.ts';

const HOUR = 3_600_000;
const START_MS = Date.UTC(2026, 0, 1, 12);
const directory = mkdtempSync(join(tmpdir(), 'everyframe-warm-'));
let store: DuckDbStore;

beforeAll(async () => {
  let nowMs = START_MS;
  const limits = { maxBytes: 2 ** 30, maxAgeMs: 48 * HOUR };
  store = await DuckDbStore.open({ directory, ...limits, now: () => nowMs, logger: console });
  for (const hour of [4, 3, 2, 1])
    store.append(profileFromText('p:1;main@n 2000', { endMs: START_MS - hour * HOUR, spanMs: 1000 }));
  await store.flush();
  nowMs += HOUR;
  await store.flush();
  for (await store.flush(); store.partsToSum > 0; await store.flush()) await setImmediate();
  // Of the hour under way nothing was summed.
  store.append(profileFromText('p:1;main@n 2000', { endMs: START_MS, spanMs: 1000 }));
  await store.flush();
});
afterAll(async () => {
  await store.close();
  rmSync(directory, { recursive: true });
});

/** Hours that were read for the warm-up, which is wanted for so many looks. */
async function hoursRead(looks: number): Promise<number[]> {
  const read = new Set<number>();
  const watched = {
    stats: () => store.stats(),
    types: (range: TimeRange) => store.types(range),
    parts: async (range: TimeRange): Promise<SamplePart[]> => {
      const parts = await store.parts(range);
      for (const part of parts) {
        const rows = part.rows.bind(part);
        part.rows = (query) => {
          read.add((START_MS - part.startMs) / HOUR);
          return rows(query);
        };
      }
      return parts;
    },
  };
  const status = { stats: new ReceiverStats(), store, listen: { grpc: '', http: '' }, startedMs: START_MS };
  const context = { store: watched, status, sources: SourceFiles.NONE, now: () => START_MS };
  await warmUp(context, () => looks-- > 0);
  return [...read].sort();
}

it('asks for two of the newest hours that were summed, and for nothing once somebody else asks', async () => {
  expect(await hoursRead(1000)).toEqual([2, 3]);
  expect(await hoursRead(0)).toEqual([]);
  expect(await hoursRead(1)).toEqual([]);
});
