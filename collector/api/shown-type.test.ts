import { describe, expect, it } from 'vitest';
import { profileFromText } from '../../test/browser/synthetic-profile.ts';
import { typedProfile } from '../../test/support/typed-profile.ts';
import { ReceiverStats } from '../ingest/receiver-stats.ts';
import { SourceFiles } from '../source/source-files.ts';
import { MemoryStore } from '../store/memory/memory-store.ts';
import { type ApiContext, ROUTES } from './v1.ts';

const END_MS = Date.UTC(2026, 0, 1, 0, 10);
const OFF_CPU = { type: 'off_cpu', unit: 'nanoseconds' };
const IN_USE = { type: 'inuse_space', unit: 'bytes' };
const SPACE = { type: 'space', unit: 'bytes' };

function makeContext(): ApiContext {
  const store = new MemoryStore({ maxBytes: 2 ** 26, maxAgeMs: 3_600_000, now: () => END_MS });
  store.append(profileFromText('sh:1;main@n;work@n 5\nsh:1;main@n 3', { endMs: END_MS, spanMs: 1000 }));
  store.append(
    typedProfile('sh:1;main@n;wait@k 50000000\nsh:1;main@n;wait@k 7000000000\njava:2;park@v 1000000000', {
      sampleType: OFF_CPU,
      endMs: END_MS - 1000,
    }),
  );
  const heap = (text: string, agoMs: number) =>
    typedProfile(text, { sampleType: IN_USE, periodType: SPACE, endMs: END_MS - agoMs });
  store.append(heap('go:7;main@g;load@g 4096\ngo:7;main@g 100', 210_000));
  store.append(heap('go:7;main@g;load@g 2048', 150_000));
  store.append(heap('go:8;main@g;load@g 1000', 90_000));
  const status = { stats: new ReceiverStats(), store, listen: { grpc: '', http: '' }, startedMs: 0 };
  return { store, status, sources: SourceFiles.NONE, now: () => END_MS };
}

const context = makeContext();
// biome-ignore lint/suspicious/noExplicitAny: checked by what is expected
const ask = async (path: string, parameters: Record<string, string> = {}): Promise<any> =>
  ROUTES[`/api/v1/${path}`]!.run(
    new URLSearchParams({ ...(parameters['from'] === undefined && { range: '5m' }), ...parameters }),
    context,
  );

describe('/api/v1 of types', () => {
  it('lists them, CPU samples first, with how many samples there are and what they come to', async () => {
    expect((await ask('types')).types).toEqual([
      expect.objectContaining({ name: 'cpu', kind: 'rate', shown: 'sum', samples: 8, total: 8 }),
      expect.objectContaining({
        ...{ name: 'inuse_space/bytes', type: 'inuse_space', unit: 'bytes', periodType: 'space' },
        ...{ kind: 'level', shown: 'last', samples: 4, total: 3048 },
      }),
      expect.objectContaining({ name: 'off_cpu/nanoseconds', samples: 3, total: 8_050_000_000 }),
    ]);
    expect((await ask('types', { range: '500ms' })).types.map(({ name }: { name: string }) => name)).toEqual([
      'cpu',
    ]);
  });

  it('lists those of what the filter wants, with how much of it there is', async () => {
    const list = async (where: string) =>
      (await ask('types', { where })).types.map(
        ({ name, samples, total }: { name: string; samples: number; total: number }) => [
          name,
          samples,
          total,
        ],
      );
    expect(await list('process=sh')).toEqual([
      ['cpu', 8, 8],
      ['off_cpu/nanoseconds', 2, 7_050_000_000],
    ]);
    expect(await list('frame=work')).toEqual([['cpu', 5, 5]]);
    expect(await list('pid=7')).toEqual([['inuse_space/bytes', 3, 2048]]);
    expect(await list('process=nosuch')).toEqual([]);
  });

  it('shows one at a time: CPU samples unless another is asked for', async () => {
    expect(await ask('top')).toMatchObject({
      type: { name: 'cpu' },
      samples: 8,
      allSamples: 8,
      cpuNanos: 4e8,
    });
    const top = await ask('top', { type: 'off_cpu/nanoseconds' });
    expect(top).toMatchObject({ samples: 8_050_000_000, allSamples: 8_050_000_000, cpuNanos: 0 });
    expect(top.type).toMatchObject({ name: 'off_cpu/nanoseconds', type: 'off_cpu', unit: 'nanoseconds' });
    expect(top.functions.map(({ name, self }: { name: string; self: number }) => [name, self])).toEqual([
      ['wait', 7_050_000_000],
      ['park', 1_000_000_000],
      ['main', 0],
    ]);
    const filtered = await ask('tree', { type: 'off_cpu', where: 'process=java' });
    expect([filtered.samples, filtered.allSamples]).toEqual([1e9, 8_050_000_000]);
    expect((await ask('values', { type: 'off_cpu', label: 'process' })).values).toEqual([
      { value: 'sh', samples: 7_050_000_000, processes: 1 },
      { value: 'java', samples: 1_000_000_000, processes: 1 },
    ]);
    expect((await ask('threads', { type: 'off_cpu' })).threads[0]).toMatchObject({ samples: 7_050_000_000 });
    expect((await ask('timeline', { type: 'off_cpu', steps: '1' })).groups[0].counts).toEqual([
      8_050_000_000,
    ]);
    const samples = await ask('samples', { type: 'off_cpu' });
    expect([samples.samples, samples.counts]).toEqual([
      8_050_000_000,
      [50_000_000, 7_000_000_000, 1_000_000_000],
    ]);
  });

  it('says which types there are where one is asked for that is not', async () => {
    await expect(ask('tree', { type: 'alloc_space' })).rejects.toThrow(
      /type is "alloc_space": .*samples\/count, .*off_cpu\/nanoseconds/,
    );
  });

  it('shows of a level what each process told last, and in time what held', async () => {
    const type = 'inuse_space';
    const tree = await ask('tree', { type, steps: '5' });
    expect(tree).toMatchObject({ type: { kind: 'level', shown: 'last' }, samples: 3048, allSamples: 3048 });
    expect(tree.nodes.self.reduce((a: number, b: number) => a + b, 0)).toBe(3048);
    // from minute 1.5 on the first, from minute 2.5 the next, for a minute as before; the other process came once
    expect(tree.timeline).toEqual([0, 4196, 2048, 3048, 0]);
    const timeline = await ask('timeline', { type, by: 'process', steps: '5' });
    expect(timeline.samples).toBe(3048);
    expect(timeline.groups).toEqual([{ value: 'go', samples: 3048, counts: [0, 4196, 2048, 3048, 0] }]);
    const byPid = await ask('values', { type, label: 'pid' });
    expect(byPid.values).toEqual([
      { value: '7', samples: 2048 },
      { value: '8', samples: 1000 },
    ]);
    const before = await ask('top', { type, from: String(END_MS - 300_000), to: String(END_MS - 200_000) });
    expect(before.samples).toBe(4196);
    const diff = await ask('diff', { type, from: '-200s', base_from: '-300s', base_to: '-200s' });
    expect([diff.base.samples, diff.now.samples]).toEqual([4196, 3048]);
    const samples = await ask('samples', { type });
    expect(samples.counts.sort()).toEqual([1000, 2048]);
  });
});
