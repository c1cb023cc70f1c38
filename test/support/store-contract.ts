/** What every store that lasts must do, whatever it is made of: run by the tests of each. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { countExecutions } from '../../collector/query/executions.ts';
import { topFunctions } from '../../collector/query/functions.ts';
import { readSamples } from '../../collector/query/samples.ts';
import { readTimeline } from '../../collector/query/timeline.ts';
import { readValues } from '../../collector/query/values.ts';
import { readWindow } from '../../collector/query/window.ts';
import { MemoryStore } from '../../collector/store/memory/memory-store.ts';
import type { Store } from '../../collector/store/store.ts';
import { parseFilter } from '../../common/profile/filters/filter.ts';
import { profileFromText } from '../browser/synthetic-profile.ts';
import { type Place, testAttributes } from './store-attributes.ts';
import { testTypes } from './store-types.ts';

const HOUR = 3_600_000;
const MAX_AGE_MS = 48 * HOUR;
const WHERE = ['', 'process=p cpu=0', 'kind!=kernel host=h', 'frame~^a pid!=2'];

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Everything that queries can see of a store. */
async function observe(store: Store, nowMs: number): Promise<unknown> {
  const range = { fromMs: nowMs - 40 * HOUR, toMs: nowMs + HOUR };
  const answers: unknown[] = [store.stats().samples];
  for (const text of WHERE) {
    const filter = { ...range, where: parseFilter(text) };
    const { parts, timeline, ...window } = await readWindow(store, filter, 50);
    const tops = topFunctions(parts);
    const samples = await readSamples(store, filter, 7);
    const executions = await countExecutions(store, filter);
    answers.push({
      text,
      window,
      timeline: [...timeline],
      tops,
      times: samples.rows.map(({ timeMs }) => timeMs),
      total: samples.total,
      cpus: await readValues(store, filter, 'cpu'),
      kinds: await readValues(store, filter, 'kind'),
      byThread: [...(await readTimeline(store, filter, 9, 'thread'))].map(([k, v]) => [k, ...v]).sort(),
      executions: [...executions].sort(([a], [b]) => byText(a, b)),
    });
  }
  return answers;
}

async function binariesIn(store: Store, nowMs: number): Promise<(string | undefined)[][]> {
  const parts = await store.parts({ fromMs: nowMs - HOUR, toMs: nowMs + HOUR });
  const stacks = await Promise.all(parts.map((part) => part.stacks()));
  return stacks.flatMap(({ frames }) => frames.map(({ name, binary }) => [name, binary])).sort();
}

/**
 * @param now the clock of the stores that places open, milliseconds since the Unix epoch; it stands still
 * @param makePlace an empty one; its stores keep 48 hours
 */
export function testStoreThatLasts(now: () => number, makePlace: () => Place): void {
  it('answers like the store in memory, also after it was closed and opened again', async () => {
    const stack = fc.record({
      process: fc.constantFrom('p:1', 'p:2', 'q:3'),
      frames: fc.array(fc.constantFrom('a@n', 'b@n', 'c@k', 'd@j', 'e'), { minLength: 1, maxLength: 6 }),
      count: fc.integer({ min: 1, max: 50 }),
    });
    const batch = fc.record({
      stacks: fc.array(stack, { minLength: 1, maxLength: 8 }),
      agoMs: fc.nat(30 * HOUR),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(batch, { maxLength: 3 }), fc.boolean(), async (batches, reopen) => {
        const place = makePlace();
        const nowMs = now();
        const memory = new MemoryStore({ maxBytes: 2 ** 28, maxAgeMs: MAX_AGE_MS, now });
        let store = await place.open();
        for (const [index, { stacks, agoMs }] of batches.entries()) {
          const text = stacks.map(({ process, frames, count }) => `${process};${frames.join(';')} ${count}`);
          const options = { endMs: nowMs - agoMs, spanMs: 5000, host: index % 2 === 0 ? 'h' : 'i' };
          const profile = profileFromText(text.join('\n'), options);
          expect(store.append(profile)).toEqual(memory.append(profile));
          if (!reopen) continue;
          await store.close();
          store = await place.open();
        }
        expect(await observe(store, nowMs)).toEqual(await observe(memory, nowMs));
        await store.close();
      }),
      { numRuns: 2, endOnFailure: true },
    );
  });

  testAttributes(now, makePlace);
  testTypes(now, makePlace);

  it('knows which binary a frame without a name is of, also after it was closed and opened again', async () => {
    const profile = profileFromText('p:1;named@n;0@n;1@n;2@k 5', { endMs: now(), spanMs: 1 });
    for (const location of profile.locations.slice(-3)) location.lines = [];
    profile.mappings.find(({ filename }) => filename.endsWith('libc.so.6'))!.gnuBuildId = 'ab12';
    const binary = `${'2'.padStart(32, '0')}/ab12`;
    const place = makePlace();
    const first = await place.open();
    first.append(profile);
    const expected = [
      ['libc.so.6+0x1020', binary],
      ['libc.so.6+0x1030', binary],
      ['named', undefined],
      ['p', undefined],
      ['vmlinux+0x1040', undefined],
    ];
    expect(await binariesIn(first, now())).toEqual(expected);
    await first.close();
    const second = await place.open();
    expect(await binariesIn(second, now())).toEqual(expected);
    await second.close();
  });

  it('knows after a restart which requests it has', async () => {
    const place = makePlace();
    const first = await place.open();
    first.append(profileFromText('sh:1;main@n 5', { endMs: now(), spanMs: 1000 }));
    for (const id of ['a', 'b']) first.noteRequest(id);
    await first.commit();
    await first.close();
    const second = await place.open();
    expect([...second.recentRequests()].sort()).toEqual(['a', 'b']);
    expect(second.stats().samples).toBe(5);
    await second.close();
  });
}
