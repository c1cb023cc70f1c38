/** What the page says of a time is the same wherever it says it: the legend, a file, a query, and the sums that were put in. */

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { buildModel } from '../../common/flame/flame-model.ts';
import type { FrameKind } from '../../common/flame/frame-kind.ts';
import type { FlameGraphResponse } from '../../common/flame/tree-answer.ts';
import { readProfile } from '../../common/profile/formats/formats.ts';
import { linkKey } from '../../common/profile/model/link.ts';
import { mergeProfiles } from '../../common/profile/model/merge.ts';
import type { Profile } from '../../common/profile/model/profile.ts';
import { decodeOtlp } from '../../common/profile/otlp/otlp-decode.ts';
import { encodeOtlp } from '../../common/profile/otlp/otlp-encode.ts';
import { profileFromText } from '../../test/browser/synthetic-profile.ts';
import { linkedProfile } from '../../test/support/store-links.ts';
import { typedProfile } from '../../test/support/typed-profile.ts';
import { ReceiverStats } from '../ingest/receiver-stats.ts';
import { SourceFiles } from '../source/source-files.ts';
import { MemoryStore } from '../store/memory/memory-store.ts';
import { shareLeaves } from '../web/flame/leaf-shares.ts';
import type { TopAnswer, ValuesAnswer } from './types.ts';
import { type ApiContext, type FileAnswer, ROUTES } from './v1.ts';

const END_MS = Date.UTC(2026, 0, 1);
const KINDS: Record<string, FrameKind> = {
  k: 'kernel',
  n: 'native',
  g: 'go',
  p: 'cpython',
  m: 'abort-marker',
};

const FRAME = fc.tuple(fc.constantFrom('a', 'b', 'c', 'd'), fc.constantFrom(...'kngpm'));
const LINE = fc.record({
  process: fc.constantFrom('sh', 'node', 'cc'),
  frames: fc.array(FRAME, { minLength: 1, maxLength: 8 }),
  count: fc.integer({ min: 1, max: 20 }),
});
type Line = typeof LINE extends fc.Arbitrary<infer T> ? T : never;

/** What is in the store of each type, as multiples of the CPU samples. */
const FACTORS: Record<string, number> = {
  cpu: 1,
  'off_cpu/nanoseconds': 1_000_003,
  'alloc_space/bytes': 4096,
  'inuse_space/bytes': 3,
};

const makeStore = (): MemoryStore =>
  new MemoryStore({ maxBytes: 2 ** 26, maxAgeMs: 3_600_000, now: () => END_MS });

function contextOf(store: MemoryStore): ApiContext {
  const status = { stats: new ReceiverStats(), store, listen: { grpc: '', http: '' }, startedMs: 0 };
  return { store, status, sources: SourceFiles.NONE, now: () => END_MS };
}

function contextWith(lines: readonly Line[]): ApiContext {
  const store = makeStore();
  const text = lines.map(
    ({ process, frames, count }) =>
      `${process};${frames.map(([name, letter]) => `${name}${letter}@${letter}`).join(';')} ${count}`,
  );
  store.append(profileFromText(text.join('\n'), { endMs: END_MS, spanMs: 90_000 }));
  for (const [name, factor] of Object.entries(FACTORS).slice(1)) {
    const [type = '', unit = ''] = name.split('/');
    const values = text.map((line) => line.replace(/\d+$/, (count) => String(Number(count) * factor)));
    store.append(typedProfile(values.join('\n'), { sampleType: { type, unit }, endMs: END_MS - 1 }));
  }
  return contextOf(store);
}

type Sums = Record<string, number>;

function sumOf(entries: Iterable<readonly [string, number]>): Sums {
  const sums: Sums = Object.create(null);
  for (const [key, count] of entries) sums[key] = (sums[key] ?? 0) + count;
  return sums;
}

/** By kind of the innermost frame. */
const exactSums = (lines: readonly Line[]): Sums =>
  sumOf(lines.map(({ frames, count }) => [KINDS[frames.at(-1)![1]]!, count] as const));

async function askAll(context: ApiContext, type: string, where: string, limit: number) {
  const run = async <T>(path: string, parameters: Record<string, string> = {}): Promise<T> =>
    (await ROUTES[`/api/v1/${path}`]!.run(
      new URLSearchParams({ where, type, range: '15m', ...parameters }),
      context,
    )) as T;
  const tree = await run<FlameGraphResponse>('tree', { limit: String(limit) });
  const { values } = await run<ValuesAnswer>('values', { label: 'kind' });
  const top = await run<TopAnswer>('top', { limit: '10000' });
  const file = await run<FileAnswer>('export', { format: 'otlp' });
  return { tree, values, top, file };
}

function leafKinds({ bytes }: FileAnswer): Sums {
  const counts: [string, number][] = [];
  for (const { samples, stacks, locations } of decodeOtlp(bytes).profiles)
    for (const { stack, value } of samples) {
      const leaf = stacks[stack]![0]!;
      counts.push([locations[leaf]!.frameType, value]);
    }
  return sumOf(counts);
}

it('is the same in the legend, in an exported file, in queries and in what was put in', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(LINE, { minLength: 1, maxLength: 60 }),
      fc.constantFrom('', 'process=sh', 'process!=cc', 'kind=kernel'),
      fc.integer({ min: 1, max: 30 }),
      fc.constantFrom(...Object.keys(FACTORS)),
      async (all, where, limit, type) => {
        const ofType = all.map((line) => ({ ...line, count: line.count * FACTORS[type]! }));
        const lines = ofType.filter(
          ({ process, frames }) =>
            where === '' ||
            (where === 'process=sh' && process === 'sh') ||
            (where === 'process!=cc' && process !== 'cc') ||
            (where === 'kind=kernel' && frames.some(([, letter]) => letter === 'k')),
        );
        const expected = exactSums(lines);
        const total = lines.reduce((sum, { count }) => sum + count, 0);
        const { tree, values, top, file } = await askAll(contextWith(all), type, where, limit);
        expect(tree.type?.name).toBe(type);
        expect(tree.samples).toBe(total);
        expect(tree.nodes.self.reduce((a, b) => a + b, 0)).toBe(total);
        expect(sumOf(tree.leaves.kinds.map(({ kind, samples }) => [kind, samples]))).toEqual(expected);
        expect(sumOf(values.map(({ value, samples }) => [value, samples]))).toEqual(expected);
        expect(
          sumOf(top.functions.filter(({ self }) => self > 0).map(({ kind, self }) => [kind, self])),
        ).toEqual(expected);
        expect(leafKinds(file)).toEqual(expected);
        expect(tree.leaves.incomplete).toBe(
          lines
            .filter(({ frames }) => frames.some(([, letter]) => letter === 'm'))
            .reduce((sum, { count }) => sum + count, 0),
        );
        if (total === 0) return;
        for (const byLibrary of [false, true]) {
          const { shares } = shareLeaves([buildModel(tree).leaves!], byLibrary);
          expect(shares.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1, 9);
        }
      },
    ),
    { numRuns: 60 },
  );
});

const LINKED = fc.record({
  name: fc.constantFrom('a', 'b', 'c'),
  link: fc.record({
    traceId: fc.constantFrom('', '0af7651916cd43dd8448eb211c80319c', '4bf92f3577b34da6a3ce929d0e0e4736'),
    spanId: fc.constantFrom('', 'b7ad6b7169203331', '00f067aa0ba902b7'),
  }),
  count: fc.integer({ min: 1, max: 20 }),
});

/** By link and leaf. */
const linkedSums = (profiles: readonly Profile[]): Sums =>
  sumOf(
    profiles.flatMap(({ samples, links, stacks, locations, functions }) =>
      samples.map(({ link = 0, stack, value }) => {
        const func = locations[stacks[stack]![0]!]!.lines[0]!.func;
        return [`${linkKey(links[link]!)} ${functions[func]!.name}`, value] as const;
      }),
    ),
  );

it('has in its files the traces and spans that came with samples', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(LINKED, { minLength: 1, maxLength: 20 }), async (all) => {
      const sent = all.map(({ name, link, count }) =>
        linkedProfile(`p:1;${name}@n ${count}`, END_MS - 1, link),
      );
      const request = encodeOtlp([mergeProfiles(sent)[0]!], { scopeName: '', scopeVersion: '' });
      const store = makeStore();
      for (const profile of decodeOtlp(request).profiles) store.append(profile);
      const file = async (format: string): Promise<Uint8Array> => {
        const parameters = new URLSearchParams({ range: '15m', format });
        return ((await ROUTES['/api/v1/export']!.run(parameters, contextOf(store))) as FileAnswer).bytes;
      };
      expect(linkedSums(decodeOtlp(await file('otlp')).profiles)).toEqual(linkedSums(sent));
      expect(linkedSums([readProfile('a.pb.gz', await file('pprof'))])).toEqual(linkedSums(sent));
    }),
    { numRuns: 60 },
  );
});
