/** Values that are not CPU samples, from one format into another: nothing is lost, and no time or size is made up. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { arbitraryTyped, describeSamples } from '../../../test/support/arbitrary-profile.ts';
import { readProfile, readProfiles, writeProfile, writeProfiles } from '../formats/formats.ts';
import { mergeProfiles, mergeSets } from '../model/merge.ts';
import { mainOf, type Profile, type ProfileSet, type Sample, setOf } from '../model/profile.ts';
import { ProfileBuilder } from '../model/profile-builder.ts';
import { cpuType, NO_PERIOD, type ProfileType, parseValueType, typeName } from '../model/profile-type.ts';
import { diffProfiles, formatDiff } from '../text/diff-data.ts';
import { formatReport, totalOf } from '../text/inclusive-shares.ts';

const SECOND = 1_000_000_000n;
const START = 1_700_000_000n * SECOND;
const OFF_CPU: ProfileType = { ...NO_PERIOD, sampleType: { type: 'off_cpu', unit: 'nanoseconds' } };
const HEAP_PERIOD = { periodType: { type: 'space', unit: 'bytes' }, period: 524_288n };
const heapType = (name: string): ProfileType => ({ ...HEAP_PERIOD, sampleType: parseValueType(name) });

/** `app` in `main` → `leaf`, once or several times. */
function profileOf(
  type: ProfileType,
  samples: [leaf: string, value: number, fields?: Partial<Sample>][],
): Profile {
  const builder = new ProfileBuilder();
  for (const [leaf, value, { timestamps = [], values } = {}] of samples) {
    const stack = builder.stack([builder.location({ name: leaf }), builder.location({ name: 'main' })]);
    builder.add(stack, { process: 'app', pid: 7, tid: 8, thread: 'worker' }, value, timestamps, values);
  }
  return { ...builder.profile, type, timeUnixNano: START, durationNano: 10n * SECOND };
}

/** As OpenTelemetry's profiler sends it: the waits of 50 ms and of 7 s. */
const waits = (): Profile =>
  profileOf(OFF_CPU, [
    [
      'futex',
      7_050_000_000,
      { timestamps: [START + 1n, START + 8n * SECOND], values: [50_000_000, 7_000_000_000] },
    ],
  ]);

/** Allocated and in use, as Go's heap profiles. */
const heap = (): ProfileSet => {
  const profiles = mergeProfiles([
    profileOf(heapType('alloc_objects/count'), [
      ['make', 9],
      ['grow', 1],
    ]),
    profileOf(heapType('alloc_space/bytes'), [
      ['make', 327_000_000],
      ['grow', 4096],
    ]),
    profileOf(heapType('inuse_objects/count'), [['grow', 1]]),
    profileOf(heapType('inuse_space/bytes'), [['grow', 4096]]),
  ]);
  return { profiles, main: 3 };
};

const totals = ({ profiles }: ProfileSet): Record<string, number> =>
  Object.fromEntries(profiles.map((profile) => [typeName(profile.type), totalOf(profile)]));
const back = (name: string, set: ProfileSet) => readProfiles(name, writeProfiles(name, set));
const ALL_TYPES = ['a.pb.gz', 'a.otlp', 'a.otlp.json'];

describe('off-CPU time', () => {
  it.each(['a.otlp', 'a.otlp.json'])('of two waits is 7.05 s in %s, each at its time', (name) => {
    const { profiles, problems } = back(name, setOf([waits()]));
    expect(problems.size).toBe(0);
    expect(profiles.map(({ type }) => type)).toEqual([OFF_CPU]);
    expect(profiles[0]!.samples).toMatchObject([
      {
        value: 7_050_000_000,
        timestamps: [START + 1n, START + 8n * SECOND],
        values: [50_000_000, 7_000_000_000],
      },
    ]);
  });

  it.each(['a.pb.gz', 'a.speedscope.json', 'a.firefox.json', 'a.trace.json'])(
    'keeps its total and unit in %s',
    (name) => {
      const read = readProfile(name, writeProfile(name, waits()));
      expect([typeName(read.type), totalOf(read)]).toEqual(['off_cpu/nanoseconds', 7_050_000_000]);
    },
  );

  it('is a time in reports, and in the text of a report that is refused as a profile', () => {
    expect([...formatReport(waits(), { by: 'function' })][0]).toBe('7.05 s of waiting, 2 functions\n');
    const text = writeProfile('a.txt', waits());
    expect(Buffer.from(text).toString()).toMatch(/^7\.05 s of waiting, 1 stack\n/);
    expect(() => readProfile('a.txt', text)).toThrow('it is a report');
  });

  it('is compared as shares of all of it', () => {
    const after = profileOf(OFF_CPU, [
      ['futex', 1_000_000_000],
      ['read', 1_000_000_000],
    ]);
    const diff = diffProfiles(waits(), after, { by: 'function', threshold: 0.01, failOn: undefined, top: 9 });
    expect(diff).toMatchObject({ unit: 'off_cpu/nanoseconds', values: { before: 7.05e9, after: 2e9 } });
    expect(formatDiff(diff)).toMatch(/^7\.05 s of waiting before, 2 s after; .* all off_cpu\/nanoseconds\)/);
  });

  it('ends at its timestamp in a Chrome trace, and none lies over another', () => {
    const { traceEvents } = JSON.parse(Buffer.from(writeProfile('a.trace.json', waits())).toString());
    const events = traceEvents.filter(
      ({ ph, name }: { ph: string; name: string }) => ph === 'X' && name === 'futex',
    );
    const spans = events.map(({ ts, dur }: { ts: number; dur: number }) => [ts, dur]);
    expect(spans).toEqual([
      [0, 50_000],
      [1_000_000, 7_000_000],
    ]);
  });

  it('is weighed in milliseconds for the Firefox Profiler, without CPU time', () => {
    const [thread] = JSON.parse(Buffer.from(writeProfile('a.firefox.json', waits())).toString()).threads;
    expect(thread.samples).toMatchObject({ weight: [50, 7000], weightType: 'tracing-ms' });
    expect(thread.samples).not.toHaveProperty('threadCPUDelta');
  });
});

describe('a heap', () => {
  it.each(ALL_TYPES)('keeps its four types and what they add up to in %s', (name) => {
    const read = back(name, heap());
    expect(totals(read)).toEqual(totals(heap()));
    for (const { type } of read.profiles) expect(type).toMatchObject(HEAP_PERIOD);
  });

  it('has no column of CPU time, and bytes stay bytes', () => {
    const one = profileOf(heapType('inuse_space/bytes'), [['grow', 4096]]);
    expect(totals(back('a.pb.gz', setOf([one])))).toEqual({ 'inuse_space/bytes': 4096 });
    const speedscope = JSON.parse(Buffer.from(writeProfile('a.speedscope.json', one)).toString());
    expect(speedscope.profiles[0]).toMatchObject({ unit: 'bytes', weights: [4096] });
    const [thread] = JSON.parse(Buffer.from(writeProfile('a.firefox.json', one)).toString()).threads;
    expect(thread.samples).toMatchObject({ weightType: 'bytes', weight: [4096] });
    expect(() => writeProfile('a.trace.json', one)).toThrow('these values are inuse_space/bytes');
  });

  it('is shown by what is in use, as the file says or by its last column', () => {
    expect(typeName(mainOf(back('a.pb.gz', heap())).type)).toBe('inuse_space/bytes');
    expect(typeName(mainOf(back('a.pb.gz', { ...heap(), main: 1 })).type)).toBe('alloc_space/bytes');
  });
});

describe('a file of several sources', () => {
  const cpu = (): Profile =>
    profileOf(cpuType(10_000_000n), [
      ['futex', 3],
      ['spin', 2],
    ]);
  const both = (): ProfileSet => mergeSets([setOf([cpu()]), setOf([waits()])]);

  it.each(ALL_TYPES)('has CPU samples once, and all others, in %s', (name) => {
    const read = back(name, both());
    expect(totals(read)).toEqual({ 'samples/count': 5, 'off_cpu/nanoseconds': 7_050_000_000 });
    expect(read.profiles.map(({ type }) => type)).toEqual([cpuType(10_000_000n), OFF_CPU]);
    expect(typeName(mainOf(read).type)).toBe('samples/count');
  });

  it('keeps CPU time that does not follow from the number of samples', () => {
    const time = { ...cpuType(10_000_000n), sampleType: { type: 'cpu', unit: 'nanoseconds' } };
    const set = setOf(
      mergeProfiles([
        { ...cpu(), type: { ...cpuType(10_000_000n), sampleType: { type: 'sample', unit: 'count' } } },
        profileOf(time, [
          ['futex', 41],
          ['spin', 2],
        ]),
      ]),
    );
    expect(totals(back('a.pb.gz', set))).toEqual({ 'sample/count': 5, 'cpu/nanoseconds': 43 });
  });
});

describe('limits', () => {
  const LARGEST = 2 ** 63;

  it.each(['a.pb.gz', 'a.otlp', 'a.otlp.json', 'a.folded'])('of 64 bits hold in %s', (name) => {
    const one = profileOf(OFF_CPU, [
      ['exact', 2 ** 53 - 1],
      ['large', LARGEST],
    ]);
    const values = readProfile(name, writeProfile(name, one)).samples.map(({ value }) => value);
    expect(values[0]).toBe(2 ** 53 - 1);
    expect(values[1]! / LARGEST).toBeCloseTo(1, 12);
  });

  it('leaves out what is below 0, and says so', () => {
    const one = profileOf(OFF_CPU, [
      ['grown', 5],
      ['shrunk', -3],
    ]);
    const { profiles, problems } = back('a.pb.gz', setOf([one]));
    expect(totalOf(profiles[0]!)).toBe(5);
    expect([...problems]).toEqual([['its value is below 0, as in a difference of profiles', 1]]);
    const sent = back('a.otlp', setOf([one]));
    expect([totalOf(sent.profiles[0]!), ...sent.problems]).toEqual([5, ['a value below 0', 1]]);
  });

  it('refuses a file with more types than anybody has', () => {
    const types = Array.from({ length: 65 }, (_, i) => profileOf(heapType(`type${i}/count`), [['a', 1]]));
    expect(() => back('a.pb.gz', setOf(mergeProfiles(types)))).toThrow(
      'it has 65 types of samples: up to 64 are read',
    );
  });
});

describe('any type', () => {
  it('is read back from OTLP with each value', () => {
    fc.assert(
      fc.property(arbitraryTyped, (profile) => {
        const { profiles } = back('a.otlp', setOf([profile]));
        expect(describeSamples(profiles)).toEqual(describeSamples(mergeProfiles([profile])));
        expect(profiles[0]!.type).toEqual(profile.type);
      }),
      { numRuns: 150 },
    );
  });

  it.each(['a.pb.gz', 'a.speedscope.json', 'a.firefox.json'])('keeps its total in %s', (name) => {
    fc.assert(
      fc.property(arbitraryTyped, (profile) => {
        const small = profile.samples.filter(({ value }) => value <= 1000 || profile.type.period === 0n);
        const one = { ...profile, samples: small };
        const read = readProfile(name, writeProfile(name, one));
        expect([typeName(read.type), totalOf(read)]).toEqual([typeName(one.type), totalOf(one)]);
      }),
      { numRuns: 100 },
    );
  });
});
