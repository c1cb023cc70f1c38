import { describe, expect, it } from 'vitest';
import { labelOf } from '../../common/profile/filters/filter.ts';
import { typeKey } from '../../common/profile/model/profile-type.ts';
import { profileFromText } from '../../test/browser/synthetic-profile.ts';
import { typedProfile } from '../../test/support/typed-profile.ts';
import { MemoryStore } from '../store/memory/memory-store.ts';
import { topFunctions } from './functions.ts';
import { readThreads } from './threads.ts';
import { readTimeline } from './timeline.ts';
import { readValues, sumType } from './values.ts';
import { WALL_TYPE, withWallTime } from './wall-store.ts';
import { readWindow } from './window.ts';

const END_MS = Date.UTC(2026, 0, 1, 0, 10);
const RANGE = { fromMs: END_MS - 60_000, toMs: END_MS + 1 };
const WALL = { ...RANGE, where: [], type: typeKey(WALL_TYPE) };
const OFF_CPU = { type: 'off_cpu', unit: 'nanoseconds' };

function storeOf(...types: ('cpu' | 'waits' | 'wall')[]) {
  const store = new MemoryStore({ maxBytes: 2 ** 26, maxAgeMs: 3_600_000, now: () => END_MS });
  // 50 ms each
  if (types.includes('cpu'))
    store.append(profileFromText('sh:1;main@n;work@n 5\nsh:1;main@n 3', { endMs: END_MS, spanMs: 1000 }));
  const typed = (text: string, type: string) =>
    typedProfile(text, { sampleType: { ...OFF_CPU, type }, endMs: END_MS - 500 });
  if (types.includes('waits'))
    store.append(typed('sh:1;main@n;wait@k 600000000\njava:2;park@v 1000000000', 'off_cpu'));
  if (types.includes('wall')) store.append(typed('sh:1;main@n 7', 'wall_time'));
  return withWallTime(store);
}

describe('wall time', () => {
  it('is there where CPU samples and waits are', async () => {
    const hasWall = async (...types: Parameters<typeof storeOf>) =>
      (await storeOf(...types).types(RANGE)).some((type) => typeKey(type) === WALL.type);
    expect(await hasWall('cpu', 'waits')).toBe(true);
    expect(await hasWall('cpu')).toBe(false);
    expect(await hasWall('waits')).toBe(false);
  });

  it('adds up the time of CPU samples and of waits, in every view', async () => {
    const store = storeOf('cpu', 'waits');
    const window = await readWindow(store, WALL, 1);
    expect([window.samples, window.allSamples, window.cpuNanos]).toEqual([2e9, 2e9, 0]);
    expect(topFunctions(window.parts).functions.map(({ name, self }) => [name, self])).toEqual([
      ['park', 1e9],
      ['wait', 600e6],
      ['work', 250e6],
      ['main', 150e6],
    ]);
    expect((await readThreads(store, WALL)).map(({ pid, samples }) => [pid, samples])).toEqual([
      [2, 1e9],
      [1, 1e9],
    ]);
    expect([...(await readTimeline(store, WALL, 1, 'process'))].sort()).toEqual([
      ['java', Float64Array.of(1e9)],
      ['sh', Float64Array.of(1e9)],
    ]);
    // what it was before stays
    expect((await readWindow(store, { ...RANGE, where: [] }, 1)).samples).toBe(8);
  });

  it('says of CPU samples that their thread ran, also in a filter', async () => {
    const store = storeOf('cpu', 'waits');
    expect(await readValues(store, WALL, labelOf('thread.state'))).toEqual([
      { value: '', samples: 1.6e9 },
      { value: 'running', samples: 400e6 },
    ]);
    const where = [{ key: labelOf('thread.state'), operator: '=', values: ['running'] }] as const;
    expect((await readWindow(store, { ...WALL, where }, 1)).samples).toBe(400e6);
    expect(await sumType(store, { ...WALL, where })).toEqual({ samples: 8, total: 400e6 });
    expect((await sumType(store, WALL)).samples).toBe(10);
  });

  it('is what is stored where somebody sends that type', async () => {
    const store = storeOf('cpu', 'waits', 'wall');
    expect((await store.types(RANGE)).filter((type) => typeKey(type) === WALL.type).length).toBe(1);
    expect((await readWindow(store, WALL, 1)).samples).toBe(7);
  });
});
