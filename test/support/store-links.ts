/** What every store must do with the traces and spans that samples are linked to. */
import { expect, it } from 'vitest';
import { readProfile } from '../../collector/query/export.ts';
import { topFunctions } from '../../collector/query/functions.ts';
import { readLargestGroups, readTimeline } from '../../collector/query/timeline.ts';
import { readLinkLabels, readValues } from '../../collector/query/values.ts';
import { readWindow } from '../../collector/query/window.ts';
import type { Store } from '../../collector/store/store.ts';
import { parseFilter } from '../../common/profile/filters/filter.ts';
import type { Link, Profile } from '../../common/profile/model/profile.ts';
import { NO_LINK } from '../../common/profile/model/profile.ts';
import { profileFromText } from '../browser/synthetic-profile.ts';
import type { Place } from './store-attributes.ts';

const HOUR = 3_600_000;
const MINUTE = 60_000;
const idOf = (digit: number, length: number): string => `${digit}`.repeat(length);
/** Two spans of a trace, and one of another. */
const [A, B, C] = [
  [1, 3],
  [1, 4],
  [2, 5],
].map(([trace, span]) => ({ traceId: idOf(trace!, 32), spanId: idOf(span!, 16) })) as [Link, Link, Link];

export function linkedProfile(text: string, endMs: number, link?: Link): Profile {
  const profile = profileFromText(text, { endMs, spanMs: 1 });
  if (link === undefined) return profile;
  for (const sample of profile.samples) sample.link = 1;
  return { ...profile, links: [NO_LINK, link] };
}

async function check(store: Store, nowMs: number): Promise<void> {
  const filter = (text: string) => ({
    ...{ fromMs: nowMs - 3 * HOUR, toMs: nowMs + HOUR },
    where: parseFilter(text),
  });
  const count = async (text: string): Promise<number> => (await readWindow(store, filter(text), 1)).samples;
  const valuesOf = async (label: string, text = ''): Promise<[string, number][]> =>
    (await readValues(store, filter(text), label)).map(({ value, samples }) => [value, samples]);
  expect(await readLinkLabels(store, filter(''))).toEqual(['trace_id', 'span_id']);
  expect(await readLinkLabels(store, filter('trace_id=""'))).toEqual([]);
  expect(await valuesOf('trace_id')).toEqual([
    [A.traceId, 14],
    ['', 10],
    [C.traceId, 1],
  ]);
  expect(await valuesOf('span_id', 'frame=hot')).toEqual([
    [B.spanId, 6],
    [A.spanId, 5],
  ]);
  expect(await count(`trace_id=${A.traceId}`)).toBe(14);
  expect(await count(`trace_id=${A.traceId} span_id!=${B.spanId}`)).toBe(8);
  expect(await count(`span_id=${B.spanId},${C.spanId}`)).toBe(7);
  expect(await count('trace_id!~^2')).toBe(24);
  expect(await count(`trace_id!=${A.traceId},${C.traceId} process=p`)).toBe(10);
  expect(await count(`trace_id=${idOf(9, 32)}`)).toBe(0);
  const { parts } = await readWindow(store, filter(`span_id=${B.spanId}`), 1);
  expect(topFunctions(parts).functions.map(({ name, self }) => [name, self])).toEqual([['hot', 6]]);
  const bySpan = [...(await readTimeline(store, filter('process=p'), 2, 'span_id'))];
  expect(new Map(bySpan.map(([value, steps]) => [value, [...steps]]))).toEqual(
    new Map([
      ['', [0, 10]],
      [A.spanId, [0, 8]],
      [B.spanId, [0, 6]],
      [C.spanId, [1, 0]],
    ]),
  );
  const { groups, groupCount } = await readLargestGroups(store, filter(''), 1, 'trace_id', 1);
  expect([groups, groupCount]).toEqual([[{ value: A.traceId, samples: 14, counts: [14] }], 3]);
  const exported = await readProfile(store, filter('frame=hot'));
  const spans = exported.samples.map(({ link = 0, value }) => [exported.links[link]!.spanId, value]);
  expect(new Map(spans as [string, number][])).toEqual(
    new Map([
      [A.spanId, 5],
      [B.spanId, 6],
    ]),
  );
}

export function testLinks(now: () => number, makePlace: () => Place): void {
  it('keeps traces and spans of samples, to be filtered and grouped by, also after it was closed and opened again', async () => {
    const place = makePlace();
    const first = await place.open();
    // a part begins without links
    first.append(linkedProfile('p:1;cold@n 10', now() - 2));
    await first.commit();
    first.append(linkedProfile('p:1;hot@n 5', now() - 2, A));
    first.append(linkedProfile('p:2;cold@n 3', now() - 2, A));
    await first.commit();
    first.append(linkedProfile('p:1;hot@n 6', now() - 2, B));
    first.append(linkedProfile('p:1;cold@n 1', now() - 2 * HOUR, C));
    await check(first, now());
    await first.commit();
    await check(first, now());
    await first.close();
    const second = await place.open();
    await check(second, now());
    await second.close();
  });

  it('answers without links where no sample has any', async () => {
    const store = await makePlace().open();
    store.append(linkedProfile('p:1;cold@n 10', now() - MINUTE));
    await store.commit();
    const range = { fromMs: now() - HOUR, toMs: now() + HOUR };
    const counts = ['trace_id=""', 'trace_id!=1', 'trace_id=1', 'span_id~1'].map(
      async (text) => (await readWindow(store, { ...range, where: parseFilter(text) }, 1)).samples,
    );
    expect(await Promise.all(counts)).toEqual([10, 10, 0, 0]);
    const filter = { ...range, where: [] };
    expect(await readLinkLabels(store, filter)).toEqual([]);
    expect(await readValues(store, filter, 'span_id')).toEqual([{ value: '', samples: 10 }]);
    const byTrace = await readTimeline(store, filter, 1, 'trace_id');
    expect([...byTrace]).toEqual([['', Float64Array.of(10)]]);
    const { links, samples } = await readProfile(store, filter);
    expect([links, samples.map((sample) => 'link' in sample)]).toEqual([[NO_LINK], [false]]);
    await store.close();
  });
}
