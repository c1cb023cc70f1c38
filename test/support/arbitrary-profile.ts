/** Profiles for property tests: tables with repeats, entries that nothing refers to, every kind of number. */
import fc from 'fast-check';
import type {
  FrameType,
  Link,
  Location,
  Process,
  Profile,
  Sample,
} from '../../common/profile/model/profile.ts';
import { emptyMapping, emptyProcess, emptyProfile, NO_LINK } from '../../common/profile/model/profile.ts';
import { cpuType, NO_PERIOD, parseValueType } from '../../common/profile/model/profile-type.ts';

const FRAME_TYPES: FrameType[] = ['native', 'kernel', 'go', 'cpython', 'jvm', 'luajit', 'abort-marker', ''];

const u64 = fc.oneof(fc.constant(0n), fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), fc.bigInt(1n, 5000n));
const name = fc.oneof(
  fc.constantFrom('', 'main', 'foo', 'libc.so.6', '/usr/bin/app'),
  fc.string({ unit: 'grapheme' }),
);
const hex = fc.constantFrom('', 'ab'.repeat(16), 'c0ffee');
const count = fc.oneof(fc.nat(3), fc.nat(), fc.constant(2 ** 40));

const mapping = fc.record({
  memoryStart: u64,
  memoryLimit: u64,
  fileOffset: u64,
  filename: name,
  gnuBuildId: hex,
  goBuildId: hex,
  fileId: hex,
});
const func = fc.record({ name, systemName: name, filename: name, startLine: count });
const processEntry: fc.Arbitrary<Process> = fc.record(
  {
    pid: fc.nat(5),
    parentPid: fc.nat(5),
    executableName: name,
    executablePath: name,
    commandName: name,
    containerId: hex,
    cgroupPath: name,
    serviceName: name,
    // files hold it in milliseconds
    startUnixNano: fc.constantFrom(0n, 1_700_000_000_123_000_000n),
    attributes: fc.constantFrom('["a.b","c"]', '["a.b","d","zone","e"]'),
  },
  {
    requiredKeys: [
      'pid',
      'parentPid',
      'executableName',
      'executablePath',
      'commandName',
      'containerId',
      'cgroupPath',
      'serviceName',
      'startUnixNano',
    ],
  },
);

const LINKS: Link[] = [
  NO_LINK,
  { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' },
  { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: '00f067aa0ba902b7' },
  { traceId: '00000000000000000000000000000001', spanId: '' },
  { traceId: '', spanId: 'b7ad6b7169203331' },
];

/** Half of those without lines have one, of a file. */
const withoutNeedlessStart = ({ functionStart, ...location }: Location): Location =>
  location.lines.length > 0 || location.mapping === 0 || functionStart! % 2 === 0
    ? location
    : { ...location, functionStart: functionStart! };

const index = (length: number): fc.Arbitrary<number> => fc.nat(length - 1);

export const arbitraryProfile: fc.Arbitrary<Profile> = fc
  .record({
    mappings: fc.array(mapping, { maxLength: 4 }),
    functions: fc.array(func, { maxLength: 5 }),
    // one execution is one process, whatever else is said of it
    processes: fc.uniqueArray(processEntry, { maxLength: 4, selector: executionOf }),
  })
  .map((tables) => ({
    mappings: [emptyMapping(), ...tables.mappings],
    functions: [{ name: '', systemName: '', filename: '', startLine: 0 }, ...tables.functions],
    processes: [emptyProcess(), ...tables.processes],
  }))
  .chain((tables) => {
    const line = fc.record({ func: index(tables.functions.length), line: count, column: fc.nat(9) });
    const location: fc.Arbitrary<Location> = fc.record({
      mapping: index(tables.mappings.length),
      address: u64,
      frameType: fc.constantFrom(...FRAME_TYPES),
      lines: fc.array(line, { maxLength: 3 }),
      functionStart: fc.nat(2 ** 30).map((start) => start + 1),
    });
    return fc.array(location, { maxLength: 6 }).map((locations) => ({
      ...tables,
      locations: [...emptyProfile().locations, ...locations.map(withoutNeedlessStart)],
    }));
  })
  .chain((tables) => {
    const stack = fc.array(index(tables.locations.length), { maxLength: 8 });
    return fc.array(stack, { maxLength: 5 }).map((stacks) => ({
      ...tables,
      stacks: [new Uint32Array(0), ...stacks.map((locations) => Uint32Array.from(locations))],
    }));
  })
  .chain((tables) => {
    const time = fc.bigInt(1_700_000_000_000_000_000n, 1_700_000_100_000_000_000n);
    const sample: fc.Arbitrary<Sample> = fc
      .record(
        {
          stack: index(tables.stacks.length),
          process: index(tables.processes.length),
          tid: fc.nat(3),
          threadName: name,
          cpu: fc.integer({ min: -1, max: 2 }),
          value: fc.integer({ min: 1, max: 2 ** 40 }),
          timestamps: fc.array(time, { maxLength: 3 }),
          link: fc.integer({ min: 1, max: LINKS.length - 1 }),
        },
        {
          requiredKeys: ['stack', 'process', 'tid', 'threadName', 'cpu', 'value', 'timestamps'],
        },
      )
      .map((one) => ({ ...one, value: one.timestamps.length || one.value }));
    return fc
      .record({
        samples: fc.array(sample, { minLength: 1, maxLength: 8 }),
        timeUnixNano: time,
        durationNano: fc.bigInt(0n, 10_000_000_000n),
        type: fc.bigInt(1n, 10n ** 9n).map(cpuType),
      })
      .map((rest) => ({ ...emptyProfile(), host: { 'host.name': 'box' }, links: LINKS, ...tables, ...rest }));
  });

/** What tells executions of programs apart where they have a PID and a start. */
function executionOf({ pid, startUnixNano, executablePath, attributes }: Process): string {
  return [pid, startUnixNano, executablePath, attributes].join(' ');
}

/** With values beside the timestamps of some samples, where they are not counts. */
export const arbitraryTyped: fc.Arbitrary<Profile> = fc
  .record({
    profile: arbitraryProfile,
    sampleType: fc.constantFrom(null, 'off_cpu/nanoseconds', 'alloc_space/bytes', 'events/count'),
    values: fc.infiniteStream(fc.nat(2 ** 40)),
  })
  .map(({ profile, sampleType, values }) => {
    if (sampleType === null) return profile;
    const samples = profile.samples.map((sample): Sample => {
      const own = sample.timestamps.map(() => 2 + values.next().value!);
      return own.length === 0 ? sample : { ...sample, values: own, value: own.reduce((a, b) => a + b) };
    });
    return { ...profile, type: { ...NO_PERIOD, sampleType: parseValueType(sampleType) }, samples };
  });

/** What a profile says, without its tables: a line a sample entry, sorted. */
export function describeSamples(profiles: readonly Profile[], describe = describeSample): string[] {
  return profiles.flatMap((profile) => profile.samples.map((sample) => describe(profile, sample))).sort();
}

const toJson = (value: unknown): string =>
  JSON.stringify(value, (_key, inner: unknown) => (typeof inner === 'bigint' ? `${inner}n` : inner));

export function describeSample(profile: Profile, sample: Sample): string {
  const { stack, process, link, ...rest } = sample;
  const frames = [...profile.stacks[stack]!].map((at) => {
    const { mapping, lines, ...location } = profile.locations[at]!;
    const named = lines.map(({ func, ...line }) => ({ ...profile.functions[func]!, ...line }));
    return { ...profile.mappings[mapping]!, ...location, lines: named };
  });
  const linked = link ? { link: profile.links[link] } : {};
  return toJson({ ...profile.processes[process]!, ...rest, ...linked, frames });
}
