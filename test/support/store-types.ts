/** What every store must do with samples of several types. */
import { expect, it } from 'vitest';
import { topFunctions } from '../../collector/query/functions.ts';
import { readTimeline } from '../../collector/query/timeline.ts';
import { sumType } from '../../collector/query/values.ts';
import { readWindow } from '../../collector/query/window.ts';
import type { SampleFilter, Store } from '../../collector/store/store.ts';
import { CPU_TYPE, MAX_TYPES } from '../../collector/store/stored-type.ts';
import { parseFilter } from '../../common/profile/filters/filter.ts';
import { typeKey } from '../../common/profile/model/profile-type.ts';
import { profileFromText } from '../browser/synthetic-profile.ts';
import type { Place } from './store-attributes.ts';
import { typedProfile } from './typed-profile.ts';

const HOUR = 3_600_000;
const OFF_CPU = { type: 'off_cpu', unit: 'nanoseconds' };
const SPACE = { type: 'alloc_space', unit: 'bytes' };

/** @param lasts whether a store opened again has what was in it */
export function testTypes(now: () => number, makePlace: () => Place, lasts = true): void {
  const everything = () => ({ fromMs: now() - HOUR, toMs: now() + HOUR, where: [] });

  it('keeps samples of each type apart, with values of 64 bits', async () => {
    const place = makePlace();
    const first = await place.open();
    const big = 2 ** 52 + 1;
    const endMs = now() - 1;
    first.append(profileFromText('p:1;a@n 5', { endMs: now(), spanMs: 1 }));
    const waited = typedProfile(`p:1;a@n 50000000\np:3;a@n 7000000000\nq:2;b@k ${big}`, {
      sampleType: OFF_CPU,
      endMs,
    });
    expect(first.append(waited)).toEqual({ stored: 3, rejected: new Map() });
    first.append(
      typedProfile('p:1;c@n 4096', {
        sampleType: SPACE,
        periodType: { type: 'space', unit: 'bytes' },
        endMs,
      }),
    );
    const check = async (store: Store): Promise<void> => {
      expect(store.stats().samples).toBe(9);
      expect((await store.types(everything())).map(typeKey).sort()).toEqual([
        'alloc_space/bytes:space/bytes',
        'off_cpu/nanoseconds',
        'samples/count:cpu/nanoseconds',
      ]);
      const cpu = await readWindow(store, everything(), 1);
      expect([cpu.samples, cpu.allSamples, cpu.cpuNanos]).toEqual([5, 5, 5 * 50_000_000]);
      const filter = { ...everything(), type: 'off_cpu/nanoseconds' };
      const window = await readWindow(store, filter, 1);
      expect([window.samples, window.allSamples, window.cpuNanos]).toEqual([
        7_050_000_000 + big,
        7_050_000_000 + big,
        0,
      ]);
      expect(topFunctions(window.parts).functions.map(({ name, self }) => [name, self])).toEqual([
        ['b', big],
        ['a', 7_050_000_000],
      ]);
      expect([...(await readTimeline(store, filter, 1, 'process'))].sort()).toEqual([
        ['p', Float64Array.of(7_050_000_000)],
        ['q', Float64Array.of(big)],
      ]);
      const waits = [...(await readTimeline(store, filter, 7200, 'process')).get('p')!].slice(3591, 3600);
      expect(waits).toEqual([0, 1e6, ...Array(6).fill(1e9), 1_049_000_000]);
      const counts = (await store.parts(filter)).map((part) => part.countSamples(filter));
      expect(await Promise.all(counts)).toEqual([3]);
      await checkMatching(store, everything());
      expect(await store.parts({ ...everything(), type: 'no/type' })).toEqual([]);
    };
    await first.commit();
    await check(first);
    await first.close();
    if (!lasts) return;
    const second = await place.open();
    await check(second);
    await second.close();
  });

  it('takes samples that say no period for CPU samples', async () => {
    const store = await makePlace().open();
    store.append(typedProfile('p:1;a@n 5', { sampleType: CPU_TYPE.sampleType, endMs: now() - 1 }));
    expect(await store.types(everything())).toEqual([CPU_TYPE]);
    expect((await readWindow(store, everything(), 1)).samples).toBe(5);
    await store.close();
  });

  it('takes so many types and no more, but CPU samples always, and says so', async () => {
    const store = await makePlace().open();
    const add = (type: string, value = '1') =>
      store.append(
        typedProfile(`p:1;a@n ${value}`, { sampleType: { type, unit: 'count' }, endMs: now() - 1 }),
      );
    for (let i = 0; i < MAX_TYPES; i++) expect(add(`t${i}`).stored).toBe(1);
    expect([...add('late').rejected]).toEqual([
      [expect.stringContaining(`samples of ${MAX_TYPES} types`), 1],
    ]);
    expect(add('t3').stored).toBe(1);
    expect(store.append(profileFromText('p:1;a@n 5', { endMs: now(), spanMs: 1 })).stored).toBe(5);
    expect([...add('x'.repeat(200)).rejected]).toEqual([[expect.stringContaining('longer than 128'), 1]]);
    expect([...add('').rejected]).toEqual([[expect.stringContaining('has no name'), 1]]);
    expect([...add('t3', '-5').rejected]).toEqual([[expect.stringContaining('below 0'), 1]]);
    expect([...add('t3', '1e19').rejected]).toEqual([[expect.stringContaining('2^63'), 1]]);
    expect(add('t3', '0')).toEqual({ stored: 0, rejected: new Map() });
    await store.close();
  });
}

/** Counts of what a filter wants. */
async function checkMatching(store: Store, everything: SampleFilter): Promise<void> {
  const matching = async (filter: string, type = 'off_cpu/nanoseconds') => {
    const { samples, total } = await sumType(store, { ...everything, where: parseFilter(filter), type });
    return [samples, total];
  };
  expect(await matching('process=p')).toEqual([2, 7_050_000_000]);
  expect(await matching('pid=3 frame=a')).toEqual([1, 7_000_000_000]);
  expect(await matching('process=none')).toEqual([0, 0]);
  expect(await matching('process=p', typeKey(CPU_TYPE))).toEqual([5, 5]);
}
