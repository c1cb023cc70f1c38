import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { arbitraryTyped, describeSample } from '../../../test/support/arbitrary-profile.ts';
import { mergeProfiles } from './merge.ts';
import {
  emptyProcess,
  emptyProfile,
  type Link,
  NO_LINK,
  type Profile,
  type Sample,
  valueAt,
} from './profile.ts';
import { cpuType, NO_PERIOD, typeKey, typeName } from './profile-type.ts';

/** A line an event, so that it does not matter which events share an entry. */
const describeEvents = (profiles: readonly Profile[]): string[] => {
  const untimed = new Map<string, number>();
  const lines: string[] = [];
  for (const profile of profiles) {
    for (const sample of profile.samples) {
      const { values: _values, ...identity } = sample;
      const describe = (value: number, timestamps: bigint[]): string =>
        `${typeKey(profile.type)} ${describeSample(profile, { ...identity, value, timestamps })}`;
      for (const [event, time] of sample.timestamps.entries())
        lines.push(describe(valueAt(sample, event), [time]));
      const line = describe(1, []);
      if (sample.timestamps.length === 0) untimed.set(line, (untimed.get(line) ?? 0) + sample.value);
    }
  }
  return [...lines, ...[...untimed].map(([line, value]) => `${value} × ${line}`)].sort();
};

const sample = (fields: Partial<Sample>): Sample => ({
  stack: 0,
  process: 1,
  tid: 1,
  threadName: 't',
  cpu: 0,
  value: 1,
  timestamps: [],
  ...fields,
});
const app = {
  ...emptyProcess(),
  pid: 9,
  startUnixNano: 5n,
  executablePath: '/bin/app',
  executableName: 'app',
};
const OFF_CPU = { ...NO_PERIOD, sampleType: { type: 'off_cpu', unit: 'nanoseconds' } };
const mergeOne = (profiles: Profile[]): Profile => mergeProfiles(profiles)[0]!;
const profileWith = (fields: Partial<Profile>): Profile => ({
  ...emptyProfile(),
  type: cpuType(10n),
  processes: [emptyProcess(), app],
  samples: [sample({})],
  ...fields,
});

describe('mergeProfiles', () => {
  it('joins samples of one link, and tells those of others apart', () => {
    const [a, b] = [1, 2].map((id) => ({ traceId: `${id}`.repeat(32), spanId: '' })) as [Link, Link];
    const one = profileWith({ links: [NO_LINK, a], samples: [sample({ link: 1 }), sample({})] });
    const other = profileWith({
      links: [NO_LINK, b, a],
      samples: [sample({ link: 2 }), sample({ link: 1 })],
    });
    const none = profileWith({ links: [NO_LINK, { ...NO_LINK }], samples: [sample({ link: 1 })] });
    const { links, samples } = mergeOne([one, other, none]);
    expect(samples.map(({ link, value }) => [links[link ?? 0]!.traceId, value])).toEqual([
      [a.traceId, 2],
      ['', 2],
      [b.traceId, 1],
    ]);
    expect(samples.map((one) => 'link' in one)).toEqual([true, false, true]);
  });

  it('tells places of generated code apart that come from one place in the source', () => {
    const location = { mapping: 0, address: 0n, frameType: 'v8js', lines: [] } as const;
    const of = (generated: string): Profile =>
      profileWith({
        locations: [...emptyProfile().locations, { ...location, lines: [], generated }],
        stacks: [...emptyProfile().stacks, Uint32Array.of(1)],
        samples: [sample({ stack: 1 })],
      });
    const { locations } = mergeOne([of('/a.js:1:1'), of('/a.js:1:9'), of('/a.js:1:1')]);
    expect(locations.slice(1).map(({ generated }) => generated)).toEqual(['/a.js:1:1', '/a.js:1:9']);
  });

  // one period, so that they are of one kind; no starts, so that every field tells processes apart
  const profiles = fc.array(
    arbitraryTyped.map((profile) => ({
      ...profile,
      type: { ...profile.type, period: 10n },
      processes: profile.processes.map((process) => ({ ...process, startUnixNano: 0n })),
    })),
    { minLength: 1, maxLength: 3 },
  );

  it('keeps every event with all that was known of it', () => {
    fc.assert(
      fc.property(profiles, (all) => {
        expect(describeEvents(mergeProfiles(all))).toEqual(describeEvents(all));
      }),
      { numRuns: 200 },
    );
  });

  it('makes tables without duplicates, joins equal samples, and leaves its input alone', () => {
    fc.assert(
      fc.property(profiles, (all) => {
        const before = describeEvents(all);
        const merged = mergeProfiles([...all, ...all]);
        const unique = (table: readonly unknown[]): void => {
          const texts = table.map((entry) =>
            JSON.stringify(entry, (_key, v) => (typeof v === 'bigint' ? `${v}` : v)),
          );
          expect(new Set(texts).size).toBe(table.length);
        };
        for (const table of ['mappings', 'functions', 'locations', 'processes'] as const)
          unique(merged[0]![table]);
        unique(merged[0]!.stacks.map((stack) => [...stack]));
        for (const { samples } of merged)
          unique(
            samples.map(({ value: _value, values: _values, timestamps, ...identity }) => [
              identity,
              timestamps.length > 0,
            ]),
          );
        expect(describeEvents(all)).toEqual(before);
      }),
    );
  });

  it('keeps a time for each event of an entry, or none: counts of both kinds do not become one', () => {
    const timed = profileWith({ samples: [sample({ value: 2, timestamps: [1n, 2n] })] });
    const merged = mergeOne([timed, profileWith({ samples: [sample({ value: 3 })] })]);
    expect(merged.samples.map(({ value, timestamps }) => [value, timestamps.length])).toEqual([
      [2, 2],
      [3, 0],
    ]);
  });

  it('knows a process by PID, start and executable, and adds what it learns', () => {
    const later = profileWith({
      processes: [
        emptyProcess(),
        { ...app, serviceName: 'svc', containerId: 'c1' },
        { ...app, startUnixNano: 6n },
      ],
      samples: [sample({}), sample({ process: 2 })],
    });
    const merged = mergeOne([profileWith({}), later]);
    expect(merged.processes.slice(1)).toEqual([
      { ...app, serviceName: 'svc', containerId: 'c1' },
      { ...app, startUnixNano: 6n },
    ]);
    expect(merged.samples.map(({ process, value }) => [process, value])).toEqual([
      [1, 2],
      [2, 1],
    ]);
  });

  it('spans the windows of all, but for those without one', () => {
    const idle = { ...emptyProfile(), type: cpuType(10n) };
    const windows = [
      idle,
      profileWith({ timeUnixNano: 100n, durationNano: 10n }),
      idle,
      profileWith({ timeUnixNano: 50n, durationNano: 5n }),
    ];
    expect(mergeOne(windows)).toMatchObject({ timeUnixNano: 50n, durationNano: 60n, type: cpuType(10n) });
    expect(mergeProfiles([])).toEqual([emptyProfile()]);
    expect(mergeOne([emptyProfile(), profileWith({})]).type.period).toBe(10n);
  });

  it('names a host only where all are of it', () => {
    const on = (name: string): Profile => profileWith({ host: { 'host.name': name, 'host.arch': 'amd64' } });
    expect(mergeOne([on('a'), on('a')]).host).toEqual({ 'host.name': 'a', 'host.arch': 'amd64' });
    expect(mergeOne([on('a'), on('b')]).host).toEqual({ 'host.arch': 'amd64' });
  });

  it('keeps a profile of each type, with the same tables', () => {
    const waited = sample({ value: 7050, timestamps: [1n, 2n], values: [50, 7000] });
    const offCpu = profileWith({ type: OFF_CPU, samples: [waited] });
    const merged = mergeProfiles([profileWith({}), offCpu, profileWith({}), offCpu]);
    expect(merged.map(({ type, samples }) => [typeName(type), samples.map(({ value }) => value)])).toEqual([
      ['samples/count', [2]],
      ['off_cpu/nanoseconds', [14_100]],
    ]);
    expect(merged[1]!.samples[0]!.values).toEqual([50, 7000, 50, 7000]);
    expect(merged[1]!.stacks).toBe(merged[0]!.stacks);
  });

  it('adds up what was allocated, but not what was in use at different times', () => {
    const other = { ...app, pid: 10 };
    const snapshot = (type: string, timeUnixNano: bigint, values: [process: number, value: number][]) =>
      profileWith({
        type: { ...NO_PERIOD, sampleType: { type, unit: 'bytes' } },
        ...{ timeUnixNano, processes: [emptyProcess(), app, other] },
        samples: values.map(([process, value]) => sample({ process, value })),
      });
    const both = ['alloc_space', 'inuse_space'].flatMap((type) => [
      snapshot(type, 20n, [[1, 5]]),
      snapshot(type, 10n, [
        [1, 100],
        [2, 7],
      ]),
      // another resource of the same request
      snapshot(type, 20n, [[1, 3]]),
    ]);
    const sums = mergeProfiles(both).map(({ samples }) =>
      samples.map(({ process, value }) => [process, value]),
    );
    expect(sums).toEqual([
      [
        [1, 108],
        [2, 7],
      ],
      [
        [1, 8],
        [2, 7],
      ],
    ]);
  });

  it('keeps the values of events that join others of 1 each', () => {
    const [ones, others] = [
      sample({ value: 2, timestamps: [1n, 2n] }),
      sample({ value: 9, timestamps: [3n], values: [9] }),
    ];
    const of = (one: Sample): Profile => profileWith({ type: OFF_CPU, samples: [one] });
    expect(mergeOne([of(ones), of(others)]).samples[0]).toMatchObject({ value: 11, values: [1, 1, 9] });
    expect(mergeOne([of(others), of(ones)]).samples[0]).toMatchObject({ value: 11, values: [9, 1, 1] });
    expect(ones).not.toHaveProperty('values');
    expect(others.values).toEqual([9]);
  });

  it('adds up samples of different periods as the time that they stand for', () => {
    const slow = profileWith({ type: cpuType(20n), samples: [sample({ value: 2, timestamps: [1n, 2n] })] });
    const [merged, ...others] = mergeProfiles([profileWith({ samples: [sample({ value: 3 })] }), slow]);
    expect(others).toEqual([]);
    expect(typeName(merged!.type)).toBe('cpu/nanoseconds');
    expect(merged!.samples.map(({ value, values }) => [value, values])).toEqual([
      [30, undefined],
      [40, [20, 20]],
    ]);
    const unknown = profileWith({ type: cpuType(0n) });
    expect(() => mergeProfiles([slow, unknown])).toThrow("can't be added up");
  });
});
