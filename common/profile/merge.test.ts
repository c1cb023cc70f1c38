import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { arbitraryProfile, describeSample } from '../../test/support/arbitrary-profile.ts';
import { mergeProfiles } from './merge.ts';
import { emptyProcess, emptyProfile, type Profile, type Sample } from './profile.ts';

/** A line an event, so that it does not matter which events share an entry. */
const describeEvents = (profiles: readonly Profile[]): string[] => {
  const untimed = new Map<string, number>();
  const lines: string[] = [];
  for (const profile of profiles) {
    for (const sample of profile.samples) {
      const one = { ...sample, count: 1 };
      for (const time of sample.timestamps)
        lines.push(describeSample(profile, { ...one, timestamps: [time] }));
      const rest = sample.count - sample.timestamps.length;
      const line = describeSample(profile, { ...one, timestamps: [] });
      if (rest > 0) untimed.set(line, (untimed.get(line) ?? 0) + rest);
    }
  }
  return [...lines, ...[...untimed].map(([line, count]) => `${count} × ${line}`)].sort();
};

const sample = (fields: Partial<Sample>): Sample => ({
  stack: 0,
  process: 1,
  tid: 1,
  threadName: 't',
  cpu: 0,
  count: 1,
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
const profileWith = (fields: Partial<Profile>): Profile => ({
  ...emptyProfile(),
  period: 10n,
  processes: [emptyProcess(), app],
  samples: [sample({})],
  ...fields,
});

describe('mergeProfiles', () => {
  it('tells places of generated code apart that come from one place in the source', () => {
    const location = { mapping: 0, address: 0n, frameType: 'v8js', lines: [] } as const;
    const of = (generated: string): Profile =>
      profileWith({
        locations: [...emptyProfile().locations, { ...location, lines: [], generated }],
        stacks: [...emptyProfile().stacks, Uint32Array.of(1)],
        samples: [sample({ stack: 1 })],
      });
    const { locations } = mergeProfiles([of('/a.js:1:1'), of('/a.js:1:9'), of('/a.js:1:1')]);
    expect(locations.slice(1).map(({ generated }) => generated)).toEqual(['/a.js:1:1', '/a.js:1:9']);
  });

  // one period, so that they are of one kind; no starts, so that every field tells processes apart
  const profiles = fc.array(
    arbitraryProfile.map((profile) => ({
      ...profile,
      period: 10n,
      processes: profile.processes.map((process) => ({ ...process, startUnixNano: 0n })),
    })),
    { minLength: 1, maxLength: 3 },
  );

  it('keeps every event with all that was known of it', () => {
    fc.assert(
      fc.property(profiles, (all) => {
        expect(describeEvents([mergeProfiles(all)])).toEqual(describeEvents(all));
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
          unique(merged[table]);
        unique(merged.stacks.map((stack) => [...stack]));
        unique(
          merged.samples.map(({ count: _count, timestamps, ...identity }) => [
            identity,
            timestamps.length > 0,
          ]),
        );
        expect(describeEvents(all)).toEqual(before);
      }),
    );
  });

  it('keeps a time for each event of an entry, or none: counts of both kinds do not become one', () => {
    const timed = profileWith({ samples: [sample({ count: 2, timestamps: [1n, 2n] })] });
    const merged = mergeProfiles([timed, profileWith({ samples: [sample({ count: 3 })] })]);
    expect(merged.samples.map(({ count, timestamps }) => [count, timestamps.length])).toEqual([
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
    const merged = mergeProfiles([profileWith({}), later]);
    expect(merged.processes.slice(1)).toEqual([
      { ...app, serviceName: 'svc', containerId: 'c1' },
      { ...app, startUnixNano: 6n },
    ]);
    expect(merged.samples.map(({ process, count }) => [process, count])).toEqual([
      [1, 2],
      [2, 1],
    ]);
  });

  it('spans the windows of all, but for those without one', () => {
    const idle = { ...emptyProfile(), period: 10n };
    const windows = [
      idle,
      profileWith({ timeUnixNano: 100n, durationNano: 10n }),
      idle,
      profileWith({ timeUnixNano: 50n, durationNano: 5n }),
    ];
    expect(mergeProfiles(windows)).toMatchObject({ timeUnixNano: 50n, durationNano: 60n, period: 10n });
    expect(mergeProfiles([])).toEqual(emptyProfile());
    expect(mergeProfiles([emptyProfile(), profileWith({})]).period).toBe(10n);
  });

  it('names a host only where all are of it', () => {
    const on = (name: string): Profile => profileWith({ host: { 'host.name': name, 'host.arch': 'amd64' } });
    expect(mergeProfiles([on('a'), on('a')]).host).toEqual({ 'host.name': 'a', 'host.arch': 'amd64' });
    expect(mergeProfiles([on('a'), on('b')]).host).toEqual({ 'host.arch': 'amd64' });
  });

  it('does not add counts of different kinds', () => {
    const offCpu = profileWith({ sampleType: { type: 'off_cpu', unit: 'nanoseconds' } });
    expect(() => mergeProfiles([profileWith({}), offCpu])).toThrow(
      /off_cpu\/nanoseconds .* can't become one/,
    );
    expect(() => mergeProfiles([profileWith({}), profileWith({ period: 20n })])).toThrow(/can't become one/);
  });
});
