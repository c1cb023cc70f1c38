/** What a store that lasts must do with attributes that have no place of their own. */
import { expect, it } from 'vitest';
import { readTimeline } from '../../collector/query/timeline.ts';
import { readAttributeNames, readValues } from '../../collector/query/values.ts';
import { readWindow } from '../../collector/query/window.ts';
import { MAX_ATTRIBUTE_SETS } from '../../collector/store/series-table.ts';
import type { Store } from '../../collector/store/store.ts';
import { labelOf, parseFilter } from '../../common/profile/filters/filter.ts';
import { attributesText } from '../../common/profile/model/attributes.ts';
import { profileFromText } from '../browser/synthetic-profile.ts';

const HOUR = 3_600_000;

/** A place for samples: opened again, it has what was in it. */
export interface Place {
  open(): Promise<Store>;
}

export function testAttributes(now: () => number, makePlace: () => Place): void {
  it('keeps what else senders say, to be filtered and grouped by, also after it was closed and opened again', async () => {
    const place = makePlace();
    const first = await place.open();
    for (const [environment, events] of [
      ['prod', 5],
      ['test', 3],
      ['', 2],
    ] as const) {
      const profile = profileFromText(`p:1;a@n ${events}`, { endMs: now(), spanMs: 1 });
      const attributes = attributesText([['deployment.environment', environment]]);
      for (const process of profile.processes) if (attributes !== '') process.attributes = attributes;
      profile.host['host.arch'] = 'amd64';
      first.append(profile);
    }
    const range = { fromMs: now() - HOUR, toMs: now() + HOUR };
    const filter = (text: string) => ({ ...range, where: parseFilter(text) });
    const check = async (store: Store): Promise<void> => {
      expect(await readAttributeNames(store, filter(''))).toEqual(['deployment.environment', 'host.arch']);
      const values = await readValues(store, filter(''), labelOf('deployment.environment'));
      expect(values.map(({ value, samples }) => [value, samples])).toEqual([
        ['prod', 5],
        ['test', 3],
        ['', 2],
      ]);
      const ofProd = filter('deployment.environment=prod,stage @host.arch~^amd');
      expect((await readWindow(store, ofProd, 1)).samples).toBe(5);
      const steps = await readTimeline(store, filter('deployment.environment!=test'), 1, '@host.arch');
      expect([...steps]).toEqual([['amd64', Float64Array.of(7)]]);
    };
    await first.commit();
    await check(first);
    await first.close();
    const second = await place.open();
    await check(second);
    await second.close();
  });

  it('bounds what attributes of single samples make it keep', async () => {
    const place = makePlace();
    const store = await place.open();
    const stacks = Array.from({ length: MAX_ATTRIBUTE_SETS + 50 }, (_, i) => `p:${i + 1};a@n 1`);
    const profile = profileFromText(stacks.join('\n'), { endMs: now(), spanMs: 1 });
    for (const [i, process] of profile.processes.entries())
      process.attributes = attributesText([['request.id', `${i}`]]);
    expect(store.append(profile).stored).toBe(MAX_ATTRIBUTE_SETS + 50);
    await store.commit();
    const filter = { fromMs: now() - HOUR, toMs: now() + HOUR, where: [] };
    const left = await readValues(store, filter, '@everyframe.attributes');
    expect(left.map(({ samples }) => samples).sort()).toEqual([MAX_ATTRIBUTE_SETS, 50].sort());
    await store.close();
  });
}
