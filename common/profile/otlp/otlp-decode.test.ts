import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { opentelemetry } from '#otlp';
import { ProtoWriter } from '../../protobuf/proto-writer.ts';
import { readAttributes } from '../model/attributes.ts';
import { NO_LINK, type Profile } from '../model/profile.ts';
import { cpuType, typeKey } from '../model/profile-type.ts';
import { decodeOtlp, OtlpError } from './otlp-decode.ts';
import { decodeOtlpJson } from './otlp-json.ts';

const ExportRequest = opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceRequest;

const STRINGS = [
  '',
  'process.pid',
  'thread.name',
  'worker',
  'profile.frame.type',
  'native',
  'main',
  'f.c',
  'app',
];
STRINGS.push(
  'process.executable.build_id.htlhash',
  'ab'.repeat(16),
  'thread.id',
  'cpu.logical_number',
  'kernel',
);
STRINGS.push('process.executable.build_id.gnu', 'c0ffee', 'samples', 'count', 'cpu', 'nanoseconds', 'svc');
STRINGS.push('off_cpu', 'service.name', 'process.executable.build_id.go', 'go-id', 'thread.name2');
const at = (text: string): number => STRINGS.indexOf(text);
const attribute = (key: string, value: object) => ({ keyStrindex: at(key), value });

const [TRACE, SPAN] = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'];
const bytesOfHex = (hex: string): Uint8Array => Buffer.from(hex, 'hex');
const LINKS = [
  {},
  { traceId: bytesOfHex(TRACE), spanId: bytesOfHex(SPAN) },
  { traceId: bytesOfHex(`${TRACE}00`), spanId: new Uint8Array(8) },
  { traceId: bytesOfHex(TRACE), spanId: new Uint8Array(4_000) },
];

/** One native function with a caller in line, one kernel address; attributes 1 to 5 are a sample's. */
const dictionary = () => ({
  stringTable: STRINGS,
  attributeTable: [
    {},
    attribute('process.pid', { intValue: 42 }),
    attribute('thread.name', { stringValue: 'worker' }),
    attribute('thread.name', { stringValueStrindex: at('worker') }),
    attribute('thread.id', { intValue: 43 }),
    attribute('cpu.logical_number', { intValue: 0 }),
    attribute('profile.frame.type', { stringValue: 'native' }),
    attribute('profile.frame.type', { stringValueStrindex: at('kernel') }),
    attribute('process.executable.build_id.htlhash', { stringValue: 'ab'.repeat(16) }),
    attribute('process.executable.build_id.gnu', { stringValueStrindex: at('c0ffee') }),
    attribute('process.executable.build_id.go', { stringValueStrindex: at('go-id') }),
  ],
  mappingTable: [
    {},
    {
      memoryStart: 4096,
      memoryLimit: 8192,
      fileOffset: 512,
      filenameStrindex: at('app'),
      attributeIndices: [8, 9, 10],
    },
  ],
  linkTable: LINKS,
  functionTable: [{}, { nameStrindex: at('main'), filenameStrindex: at('f.c'), startLine: 7 }],
  locationTable: [
    {},
    {
      mappingIndex: 1,
      address: '18446744073709551615',
      attributeIndices: [6],
      lines: [
        { functionIndex: 1, line: 8, column: 3 },
        { functionIndex: 1, line: 9 },
      ],
    },
    { address: 5, attributeIndices: [7] },
    { mappingIndex: 99 },
    { lines: [{ functionIndex: 99 }] },
    { attributeIndices: [99] },
  ],
  stackTable: [
    {},
    { locationIndices: [2, 1] },
    { locationIndices: [3] },
    { locationIndices: [4] },
    { locationIndices: [77] },
    { locationIndices: Array(65_537).fill(1) },
    { locationIndices: [-1] },
    { locationIndices: [5] },
  ],
});

const GOOD = {
  stackIndex: 1,
  attributeIndices: [1, 2, 4, 5],
  timestampsUnixNano: ['1700000000000000001', 2],
};
const requestOf = (samples: object[], resource: object[] = []) => ({
  resourceProfiles: [
    {
      resource: { attributes: resource },
      scopeProfiles: [
        {
          profiles: [
            {
              sampleType: { typeStrindex: at('samples'), unitStrindex: at('count') },
              periodType: { typeStrindex: at('cpu'), unitStrindex: at('nanoseconds') },
              period: 50_000_000,
              timeUnixNano: '1700000000000000000',
              durationNano: 5_000_000_000,
              samples,
            },
          ],
        },
      ],
    },
  ],
  dictionary: dictionary(),
});
const encode = (request: object): Uint8Array =>
  ExportRequest.encode(ExportRequest.fromObject(request)).finish();
const decode = (request: object) => decodeOtlp(encode(request));
const bytesOf = (write: (writer: ProtoWriter) => void): Uint8Array => {
  const writer = new ProtoWriter();
  write(writer);
  return writer.finish();
};
/** A request of raw bytes of one profile. */
const rawRequest = (profile: Uint8Array, dictionaryBytes: Uint8Array): Uint8Array =>
  bytesOf((request) => {
    const scope = bytesOf((writer) => writer.bytes(2, profile));
    request.bytes(
      1,
      bytesOf((resource) => resource.bytes(2, scope)),
    );
    request.bytes(2, dictionaryBytes);
  });
const repeat = (bytes: number[], times: number): Uint8Array => {
  const all = new Uint8Array(bytes.length * times);
  for (let i = 0; i < times; i++) all.set(bytes, i * bytes.length);
  return all;
};

describe('decodeOtlp', () => {
  it('reads every field', () => {
    const { profiles, rejected, problems, totalSamples } = decode(
      requestOf([GOOD], [{ key: 'service.name', value: { stringValue: 'svc' } }]),
    );
    expect({ rejected, problems, totalSamples }).toEqual({
      rejected: 0,
      problems: new Map(),
      totalSamples: 1,
    });
    const [profile] = profiles;
    expect(profile).toMatchObject({
      timeUnixNano: 1_700_000_000_000_000_000n,
      durationNano: 5_000_000_000n,
      type: cpuType(50_000_000n),
    });
    expect(profile!.samples).toEqual([
      {
        stack: 1,
        process: 1,
        tid: 43,
        threadName: 'worker',
        cpu: 0,
        value: 2,
        timestamps: [1_700_000_000_000_000_001n, 2n],
      },
    ]);
    const [kernel, native] = [...profile!.stacks[1]!].map((location) => profile!.locations[location]!);
    expect(kernel).toMatchObject({ frameType: 'kernel', mapping: 0, address: 5n, lines: [] });
    expect(native).toMatchObject({ frameType: 'native', address: 0xffff_ffff_ffff_ffffn });
    expect(native!.lines).toEqual([
      { func: 1, line: 8, column: 3 },
      { func: 1, line: 9, column: 0 },
    ]);
    expect(profile!.functions[1]).toEqual({ name: 'main', systemName: '', filename: 'f.c', startLine: 7 });
    expect(profile!.mappings[native!.mapping]).toEqual({
      memoryStart: 4096n,
      memoryLimit: 8192n,
      fileOffset: 512n,
      filename: 'app',
      gnuBuildId: 'c0ffee',
      goBuildId: 'go-id',
      fileId: 'ab'.repeat(16),
    });
    expect(profile!.processes[1]).toMatchObject({ pid: 42, serviceName: 'svc' });
  });

  it('keeps attributes that have no place of their own, of samples and of resources', () => {
    const resource = [
      { key: 'deployment.environment', value: { stringValue: 'prod' } },
      { key: 'service.name', value: { stringValue: 'svc' } },
      { key: 'host.arch', value: { stringValue: 'arm64' } },
      { key: 'replicas', value: { intValue: 3 } },
    ];
    const request = requestOf([GOOD, { ...GOOD, attributeIndices: [1, 11] }], resource);
    request.dictionary.attributeTable.push({ keyStrindex: at('thread.name2'), value: { boolValue: true } });
    const { samples, processes, host } = decode(request).profiles[0]!;
    const [one, other] = samples.map(({ process }) => readAttributes(processes[process]!.attributes ?? ''));
    const ofResource = { 'deployment.environment': 'prod', replicas: '3' };
    expect(Object.fromEntries(one!)).toEqual(ofResource);
    expect(Object.fromEntries(other!)).toEqual({ ...ofResource, 'thread.name2': 'true' });
    expect(host).toEqual({ 'host.arch': 'arm64' });
  });

  it('bounds what attributes of a resource cost, each process of which has them', () => {
    const resource = Array.from({ length: 64 }, (_, i) => ({ key: `k.${i}`, value: { intValue: 1 } }));
    const samples = Array.from({ length: 125_000 }, (_, i) => ({
      stackIndex: 0,
      attributeIndices: [11 + i],
    }));
    const request = requestOf(samples, resource);
    for (const i of samples.keys())
      request.dictionary.attributeTable.push({ keyStrindex: at('thread.name2'), value: { intValue: i } });
    const { profiles, problems } = decode(request);
    const reason = "the request's stacks, frames and attributes add up to more than 8000000";
    expect([...problems.keys()]).toEqual([reason]);
    expect(profiles[0]!.samples.length).toBeGreaterThan(100_000);
    expect(profiles[0]!.samples.length + problems.get(reason)!).toBe(125_000);
  });

  it('reads both forms of attributes, in samples and in resources', () => {
    const inPlace = decode(requestOf([{ ...GOOD, attributeIndices: [2] }]));
    const byIndex = decode(requestOf([{ ...GOOD, attributeIndices: [3] }]));
    expect(inPlace.profiles[0]!.samples[0]!.threadName).toBe('worker');
    expect(byIndex.profiles).toEqual(inPlace.profiles);
    const resource = [
      { keyStrindex: at('service.name'), value: { stringValueStrindex: at('svc') } },
      { key: 'process.pid', value: { intValue: 7 } },
      { key: 'host.name', value: { stringValue: 'box' } },
      { key: 'container.id', value: { stringValue: 'c1' } },
      { key: 'process.executable.path', value: { stringValue: '/bin/app' } },
    ];
    const { profiles } = decode(requestOf([{ stackIndex: 1 }], resource));
    expect(profiles[0]!.host).toEqual({ 'host.name': 'box' });
    expect(profiles[0]!.processes[1]).toMatchObject({
      pid: 7,
      serviceName: 'svc',
      containerId: 'c1',
      executablePath: '/bin/app',
    });
  });

  it("reads OpenTelemetry's profiler: off-CPU time beside CPU samples, without a period", () => {
    const request = requestOf([GOOD]);
    const { profiles: sent } = request.resourceProfiles[0]!.scopeProfiles[0]!;
    const offCpu = {
      sampleType: { typeStrindex: at('off_cpu'), unitStrindex: at('nanoseconds') },
      samples: [
        { stackIndex: 1, timestampsUnixNano: [5, 9], values: [50_000_000, 7_000_000_000] },
        { stackIndex: 1, timestampsUnixNano: [6], values: ['9223372036854775807'] },
        { stackIndex: 1, timestampsUnixNano: [7], values: [0] },
        { stackIndex: 1, timestampsUnixNano: [7, 8, 9], values: [1] },
      ],
    };
    const { profiles, problems, rejectedProfiles } = decode({
      ...request,
      resourceProfiles: [{ scopeProfiles: [{ profiles: [...sent, offCpu] }] }],
    });
    expect(profiles.map(({ type }) => typeKey(type))).toEqual([
      'samples/count:cpu/nanoseconds',
      'off_cpu/nanoseconds',
    ]);
    expect(profiles[1]!.samples).toMatchObject([
      { value: 7_050_000_000, timestamps: [5n, 9n], values: [50_000_000, 7_000_000_000] },
      { value: 2 ** 63 },
      // one value for all of them
      { value: 3 },
    ]);
    expect([problems.size, rejectedProfiles]).toEqual([0, 0]);
  });

  it('does not call a profile rejected that has only values of 0', () => {
    const { profiles, rejectedProfiles, totalSamples } = decode(requestOf([{ stackIndex: 1, values: [0] }]));
    expect([profiles, rejectedProfiles, totalSamples]).toEqual([[], 0, 1]);
  });

  it.each([
    ['2026-01-02T03:04:05.678Z', 1_767_323_045_678_000_000n],
    ['2554-07-22T00:00:00Z', 0n],
    ['yesterday', 0n],
  ])('says when a process began where that fits into 64 bits: %s', (stringValue, startUnixNano) => {
    const resource = [{ key: 'process.creation.time', value: { stringValue } }];
    expect(decode(requestOf([GOOD], resource)).profiles[0]!.processes[1]).toMatchObject({ startUnixNano });
  });

  it('prefers the PID of the sample to the PID of the resource', () => {
    const { profiles } = decode(requestOf([GOOD], [{ key: 'process.pid', value: { intValue: 7 } }]));
    expect(profiles[0]!.processes[1]!.pid).toBe(42);
  });

  it.each([
    { sample: { timestampsUnixNano: [1, 2, 3] }, count: 3 },
    { sample: { timestampsUnixNano: [1, 2, 3], values: [900, 5, 6] }, count: 911 },
    { sample: { values: [4, 5] }, count: 9 },
    { sample: { values: ['3000000000000'] }, count: 3_000_000_000_000 },
    { sample: {}, count: 1 },
  ])('counts $count for $sample', ({ sample, count }) => {
    const { profiles } = decode(requestOf([{ stackIndex: 1, ...sample }]));
    expect(profiles[0]!.samples[0]!.value).toBe(count);
  });

  it.each([
    ['stack index out of range', { stackIndex: 99 }],
    ['stack index out of range', { stackIndex: -1 }],
    ['mapping index out of range', { stackIndex: 2 }],
    ['function index out of range', { stackIndex: 3 }],
    ['location index out of range', { stackIndex: 4 }],
    ['location index out of range', { stackIndex: 6 }],
    ['attribute index out of range', { stackIndex: 7 }],
    ['stack deeper than 65536 frames', { stackIndex: 5 }],
    ['attribute index out of range', { stackIndex: 1, attributeIndices: [1, 99] }],
    ['link index out of range', { stackIndex: 1, linkIndex: 4 }],
    ['link index out of range', { stackIndex: 1, linkIndex: -1 }],
    ['as many values as timestamps are needed', { timestampsUnixNano: [1, 2, 3], values: [1, 2] }],
    ['as many values as timestamps are needed', { timestampsUnixNano: [1, 2, 3], values: [7] }],
    ['a value below 0', { values: [-5] }],
    ['a value below 0', { timestampsUnixNano: [1, 2, 3], values: [5, '-9223372036854775808', 5] }],
  ])('leaves a sample out and says "%s"', (reason, bad) => {
    const { profiles, rejected, problems, totalSamples } = decode(requestOf([GOOD, bad, bad, GOOD]));
    expect(profiles[0]!.samples.length).toBe(2);
    expect({ rejected, totalSamples, problems: [...problems] }).toEqual({
      rejected: 2,
      totalSamples: 4,
      problems: [[reason, 'timestampsUnixNano' in bad ? 2 * 3 : 2]],
    });
  });

  it('keeps what is good of any damaged request, and only refuses with its own error', () => {
    const good = encode(requestOf([GOOD, GOOD, { stackIndex: 2 }]));
    const change = fc.tuple(fc.nat(good.length - 1), fc.nat(255));
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 6 }), fc.nat(good.length), (changes, cut) => {
        const bad = good.slice(0, changes.length % 2 ? good.length : cut);
        for (const [i, byte] of changes) if (i < bad.length) bad[i] = byte;
        try {
          const { profiles, rejected, totalSamples } = decodeOtlp(bad);
          const kept = profiles.reduce((sum, profile) => sum + profile.samples.length, 0);
          expect(kept + rejected).toBe(totalSamples);
        } catch (error) {
          expect(error).toBeInstanceOf(OtlpError);
        }
      }),
      { numRuns: 2000 },
    );
  });
});

describe('decodeOtlp of hostile requests', () => {
  const EMPTY_DICTIONARY = bytesOf((writer) => {
    for (const table of [1, 2, 3, 4, 5, 6, 7]) writer.bytes(table, new Uint8Array(0));
  });

  it.each([
    ['samples', repeat([2 * 8 + 2, 0], 4_000_000)],
    [
      'values',
      bytesOf((w) =>
        w.bytes(
          2,
          bytesOf((s) => s.bytes(4, new Uint8Array(4_000_000))),
        ),
      ),
    ],
    [
      'attribute indices',
      bytesOf((w) =>
        w.bytes(
          2,
          bytesOf((s) => s.bytes(2, new Uint8Array(25_000_000))),
        ),
      ),
    ],
  ])('refuses more %s than it can hold before it makes any', (_what, profile) => {
    expect(() => decodeOtlp(rawRequest(profile, EMPTY_DICTIONARY))).toThrow(/send smaller requests/);
  });

  it('does the work for a bad stack once, not once a sample', () => {
    const stack = bytesOf((w) => w.packedUint(1, [...Array<number>(2047).fill(0), 9]));
    const dictionaryBytes = bytesOf((writer) => {
      writer.raw(EMPTY_DICTIONARY);
      writer.bytes(7, stack);
    });
    // 2047 locations for each of 300,000 samples would be 600 million steps, more than the test's time
    const { rejected, problems } = decodeOtlp(
      rawRequest(repeat([2 * 8 + 2, 2, 8, 1], 300_000), dictionaryBytes),
    );
    expect(rejected).toBe(300_000);
    expect([...problems.keys()]).toEqual(['location index out of range']);
  });

  it('bounds what many profiles make of one dictionary', () => {
    const stack = bytesOf((w) => w.packedUint(1, Array<number>(2048).fill(0)));
    const dictionaryBytes = bytesOf((writer) => {
      writer.raw(EMPTY_DICTIONARY);
      writer.bytes(7, stack);
    });
    const one = bytesOf((scope) => scope.bytes(2, Uint8Array.of(2 * 8 + 2, 2, 8, 1)));
    const resource = bytesOf((w) => w.bytes(2, repeat([...one], 70_000)));
    const bytes = bytesOf((w) => {
      w.bytes(1, resource);
      w.bytes(2, dictionaryBytes);
    });
    const { profiles, rejected, problems, totalSamples } = decodeOtlp(bytes);
    expect(totalSamples).toBe(70_000);
    expect(profiles.length).toBe(Math.floor(8_000_000 / 2048));
    expect(rejected).toBe(70_000 - profiles.length);
    expect([...problems.keys()].sort()).toEqual([
      'more than 16384 profiles',
      "the request's stacks, frames and attributes add up to more than 8000000",
    ]);
  });

  it('makes nothing for resources, scopes and profiles without samples', () => {
    const resources = (one: number[], count: number): Uint8Array => repeat([10, one.length, ...one], count);
    const start = performance.now();
    for (const bytes of [
      resources([], 2_800_000),
      resources([18, 0], 1_200_000),
      resources([18, 2, 18, 0], 700_000),
    ]) {
      const request = Buffer.concat([bytes, bytesOf((w) => w.bytes(2, EMPTY_DICTIONARY))]);
      expect(decodeOtlp(request)).toMatchObject({ profiles: [], totalSamples: 0 });
    }
    // 20 s where each has lists of its own
    expect(performance.now() - start).toBeLessThan(6000);
  });

  it('bounds processes, whatever is said of them, and lines of the frames of all stacks', () => {
    const labels = Array.from({ length: 40_000 }, (_, i) => i);
    const dictionaryBytes = bytesOf((writer) => {
      writer.raw(EMPTY_DICTIONARY);
      writer.string(5, 'label');
      for (const i of labels)
        writer.bytes(
          6,
          bytesOf((w) => {
            w.uint(1, 1);
            w.bytes(
              2,
              bytesOf((v) => v.string(1, `v${i}`)),
            );
          }),
        );
    });
    const profile = bytesOf((writer) => {
      for (const i of labels)
        writer.bytes(
          2,
          bytesOf((w) => w.packedUint(2, [i + 1])),
        );
    });
    const { profiles, rejected, problems } = decodeOtlp(rawRequest(profile, dictionaryBytes));
    expect(profiles[0]!.processes.length).toBeLessThanOrEqual(32_769);
    expect(rejected).toBe(40_000 - 32_768);
    expect([...problems.keys()]).toEqual(['more than 32768 processes, or of what is said of them']);

    const wide = bytesOf((writer) => {
      writer.raw(EMPTY_DICTIONARY);
      writer.bytes(2, repeat([26, 0], 256));
      for (let i = 0; i < 100; i++)
        writer.bytes(
          7,
          bytesOf((w) => w.packedUint(1, Array<number>(1000).fill(1))),
        );
    });
    const samples = bytesOf((writer) => {
      for (let i = 1; i <= 100; i++)
        writer.bytes(
          2,
          bytesOf((w) => w.uint(1, i)),
        );
    });
    // 256,000 functions a stack
    expect(decodeOtlp(rawRequest(samples, wide)).rejected).toBe(100 - Math.floor(8_000_000 / 256_000));
  });

  it('refuses values nested without end', () => {
    let value = bytesOf((w) => w.string(1, 'x'));
    for (let i = 0; i < 3000; i++) {
      const inner = value;
      value = bytesOf((w) =>
        w.bytes(
          5,
          bytesOf((list) => list.bytes(1, inner)),
        ),
      );
    }
    const dictionaryBytes = bytesOf((w) =>
      w.bytes(
        6,
        bytesOf((entry) => entry.bytes(2, value)),
      ),
    );
    expect(() => decodeOtlp(rawRequest(new Uint8Array(0), dictionaryBytes))).toThrow(/nested deeper/);
  });
});

describe('decodeOtlp of older layouts', () => {
  const dictionaryBytes = (): Uint8Array => {
    const all = ExportRequest.fromObject({ dictionary: dictionary() }).dictionary;
    return opentelemetry.proto.profiles.v1development.ProfilesDictionary.encode(all!).finish();
  };

  it.each([
    // 1.9: stack_index 1, values 2, attribute_indices 3, link_index 4, timestamps 5
    ['1.9 with attributes', { 1: 1, 2: [1], 3: [1, 2] }],
    ['1.9 without attributes', { 1: 1, 2: [1000] }],
    ['1.9 whose value is an index', { 1: 1, 2: [6] }],
    // 1.6: locations_start_index 1, locations_length 2, value 3
    ['1.6', { 1: 1, 2: 2, 3: [1] }],
  ])('refuses %s and says what is needed', (_what, fields) => {
    const sample = bytesOf((writer) => {
      for (const [field, value] of Object.entries(fields)) {
        if (typeof value === 'number') writer.uint(Number(field), value);
        else writer.packedUint(Number(field), value);
      }
    });
    const profile = bytesOf((writer) => {
      writer.bytes(2, sample);
      writer.bytes(2, sample);
    });
    expect(() => decodeOtlp(rawRequest(profile, dictionaryBytes()))).toThrow(
      /layout of opentelemetry-proto 1\.9 or older; version 1\.10 or later is needed: update the sender/,
    );
  });

  it('refuses a request that keeps its tables elsewhere', () => {
    const profile = bytesOf((w) => w.packedUint(3, [1, 2, 3]));
    expect(() => decodeOtlp(rawRequest(profile, new Uint8Array(0)))).toThrow(/1\.9 or older/);
    const { dictionary: _left, ...rest } = requestOf([GOOD]);
    expect(() => decode(rest)).toThrow(/has no dictionary/);
  });

  it('does not take samples without attributes, or with a link, for old ones', () => {
    const { profiles } = decode(
      requestOf([
        { stackIndex: 1, values: [3] },
        { stackIndex: 1, linkIndex: 1 },
      ]),
    );
    expect(profiles[0]!.samples.map(({ value }) => value)).toEqual([3, 1]);
  });
});

describe('links', () => {
  it('are read as hex digits, and are none where their IDs are', () => {
    const linked = [0, 1, 2, 3, 1].map((linkIndex) => ({ ...GOOD, linkIndex }));
    const { profiles, rejected } = decode(requestOf(linked));
    expect(rejected).toBe(0);
    const [{ links, samples }] = profiles as [Profile];
    expect(samples.map(({ link }) => link)).toEqual([undefined, 1, undefined, 2, 1]);
    expect(links).toEqual([NO_LINK, { traceId: TRACE, spanId: SPAN }, { traceId: TRACE, spanId: '' }]);
  });

  it('have IDs of hex digits in JSON, or of base64 as other bytes', () => {
    const request = requestOf([{ ...GOOD, linkIndex: 1 }]);
    const base64 = (hex: string): string => Buffer.from(hex, 'hex').toString('base64');
    for (const link of [
      { traceId: TRACE, spanId: SPAN.toUpperCase() },
      { traceId: base64(TRACE), spanId: base64(SPAN) },
    ]) {
      const withLink = { ...request, dictionary: { ...request.dictionary, linkTable: [{}, link] } };
      const [profile] = decodeOtlpJson(JSON.stringify(withLink)).profiles;
      expect(profile!.links).toEqual([NO_LINK, { traceId: TRACE, spanId: SPAN }]);
    }
  });
});

describe('decodeOtlpJson', () => {
  it('reads what the binary form holds, 64-bit numbers as text or as numbers', () => {
    const request = requestOf([GOOD, { stackIndex: 1, values: ['5'] }, { stackIndex: 99 }]);
    expect(decodeOtlpJson(JSON.stringify(request))).toEqual(decode(request));
    const asJson = ExportRequest.toObject(ExportRequest.decode(encode(request)), { longs: String });
    expect(decodeOtlpJson(JSON.stringify(asJson))).toEqual(decode(request));
  });

  it.each(['', 'null', '[]', '3', '{"resourceProfiles":3}', '{"resourceProfiles":[null]}', '['.repeat(1e5)])(
    'refuses %.20s',
    (json) => {
      expect(() => decodeOtlpJson(json)).toThrow(OtlpError);
    },
  );

  it('refuses more objects than it can hold', () => {
    const json = `{"dictionary":{"stackTable":[${'{},'.repeat(3_000_000)}{}]}}`;
    expect(() => decodeOtlpJson(json)).toThrow(/send smaller requests/);
  });
});
