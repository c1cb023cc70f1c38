import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { opentelemetry } from '#otlp';
import { arbitraryProfile, describeSamples } from '../../../test/support/arbitrary-profile.ts';
import { emptyMapping, emptyProcess, emptyProfile, type Profile } from '../model/profile.ts';
import { decodeOtlp } from './otlp-decode.ts';
import { encodeOtlp, OtlpEncoder, splitProfile } from './otlp-encode.ts';

const ExportRequest = opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceRequest;
const SCOPE = { scopeName: 'everyframe', scopeVersion: '1.2.3' };

const encode = (profile: Profile): Uint8Array => encodeOtlp([profile], SCOPE);
/** The request as plain objects, 64-bit numbers as text, read by the generated code. */
const readBack = (profile: Profile) =>
  ExportRequest.toObject(ExportRequest.decode(encode(profile)), {
    longs: String,
    arrays: true,
    defaults: false,
  });
const profilesOf = (request: ReturnType<typeof readBack>) =>
  request['resourceProfiles'].flatMap((resource: { scopeProfiles: { profiles: object[] }[] }) =>
    resource.scopeProfiles.flatMap((scope) => scope.profiles),
  );

/** Indices that a message and all below it hold, by table. */
function collectIndices(value: unknown, found: Map<string, Set<number>>): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    const match = /^(.*?)(?:Strindex|Index|Indices)$/.exec(key);
    if (!match) collectIndices(inner, found);
    else {
      const table = key.endsWith('Strindex') ? 'string' : match[1]!;
      const known = found.get(table) ?? new Set();
      for (const index of Array.isArray(inner) ? inner : [inner]) known.add(index);
      found.set(table, known);
    }
  }
}

function finish(steps: Generator<void, Uint8Array>): Uint8Array {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** A sample of each function. */
function profileOfFunctions(count: number): Profile {
  const profile = emptyProfile();
  profile.processes.push({ ...emptyProcess(), pid: 1 });
  for (let i = 1; i <= count; i++) {
    profile.functions.push({ name: `f${i}`, systemName: '', filename: 'a.c', startLine: 0 });
    const lines = [{ func: i, line: i, column: 0 }];
    profile.locations.push({ mapping: 0, address: BigInt(i), frameType: 'native', lines });
    profile.stacks.push(Uint32Array.of(i));
    const [tid, threadName, cpu, timestamps] = [1, 't', 0, [BigInt(i)]];
    profile.samples.push({ stack: i, process: 1, tid, threadName, cpu, value: 1, timestamps });
  }
  return profile;
}

describe('encodeOtlp', () => {
  it('is read back as it was', () => {
    fc.assert(
      fc.property(arbitraryProfile, (profile) => {
        const { profiles, rejected } = decodeOtlp(encode(profile));
        expect(rejected).toBe(0);
        expect(describeSamples(profiles)).toEqual(describeSamples([profile]));
        for (const { type, host } of profiles)
          expect({ type, host }).toEqual({ type: profile.type, host: profile.host });
      }),
      { numRuns: 500 },
    );
  });

  it('writes the same whatever it wrote before', () => {
    fc.assert(
      fc.property(fc.array(arbitraryProfile, { minLength: 2, maxLength: 4 }), (profiles) => {
        const encoder = new OtlpEncoder(SCOPE);
        for (const profile of profiles) expect(finish(encoder.encode([profile]))).toEqual(encode(profile));
      }),
      { numRuns: 200 },
    );
  });

  it('writes the same after a request that was too large to keep its room', () => {
    const encoder = new OtlpEncoder(SCOPE);
    const large = profileOfFunctions(40_000);
    expect(finish(encoder.encode([large]))).toEqual(encode(large));
    const small = profileOfFunctions(3);
    expect(finish(encoder.encode([small]))).toEqual(encode(small));
    expect(readBack(large)['dictionary'].functionTable).toHaveLength(40_001);
  });

  it('writes the same after texts that were too long to keep their room', () => {
    const encoder = new OtlpEncoder(SCOPE);
    const large = profileOfFunctions(30);
    for (const func of large.functions) func.systemName = func.name.padEnd(100_000, '_');
    expect(finish(encoder.encode([large]))).toEqual(encode(large));
    expect(finish(encoder.encode([profileOfFunctions(3)]))).toEqual(encode(profileOfFunctions(3)));
  });

  it('writes the same where a profile has the tables of the one before, and more in them', () => {
    const encoder = new OtlpEncoder(SCOPE);
    const profile = profileOfFunctions(30);
    expect(finish(encoder.encode([profile]))).toEqual(encode(profile));
    const more = profileOfFunctions(300);
    for (const table of ['functions', 'locations', 'stacks', 'samples'] as const)
      profile[table].push(...(more[table].slice(profile[table].length) as never[]));
    expect(profile).toEqual(more);
    expect(finish(encoder.encode([profile]))).toEqual(encode(more));
    const other = { ...more, functions: more.functions.map((func) => ({ ...func, name: `_${func.name}` })) };
    expect(finish(encoder.encode([other]))).toEqual(encode(other));
  });

  it('refuses a profile while another one is not done', () => {
    const encoder = new OtlpEncoder(SCOPE);
    const first = encoder.encode([profileOfFunctions(40)]);
    first.next();
    expect(() => encoder.encode([profileOfFunctions(1)]).next()).toThrow('one request after the other');
    expect(finish(first)).toEqual(encode(profileOfFunctions(40)));
    expect(finish(encoder.encode([profileOfFunctions(1)]))).toEqual(encode(profileOfFunctions(1)));
  });

  it('refuses profiles whose tables differ: the stacks of one would stand for those of the other', () => {
    expect(() => encodeOtlp([profileOfFunctions(3), profileOfFunctions(4)], SCOPE)).toThrow(
      'share their tables',
    );
  });

  it('writes dictionaries with a zero entry, without duplicates, without what nothing refers to', () => {
    fc.assert(
      fc.property(arbitraryProfile, (profile) => {
        const request = readBack(profile);
        const { dictionary } = request;
        const found = new Map<string, Set<number>>();
        collectIndices(request, found);
        for (const [table, zero] of Object.entries({
          string: '',
          mapping: {},
          function: {},
          attribute: {},
        })) {
          expect(dictionary[`${table}Table`][0]).toMatchObject(zero as object);
        }
        for (const table of ['string', 'mapping', 'location', 'function', 'link', 'attribute', 'stack']) {
          const entries: unknown[] = dictionary[`${table}Table`];
          expect(new Set(entries.map((entry) => JSON.stringify(entry))).size).toBe(entries.length);
          for (let i = 1; i < entries.length; i++) expect(found.get(table)?.has(i)).toBe(true);
          for (const index of found.get(table) ?? []) expect(index).toBeLessThan(entries.length);
        }
        expect(dictionary.linkTable[0]).toEqual({});
      }),
      { numRuns: 300 },
    );
  });

  it('has every timestamp inside the window of its profile, which holds the window that was given', () => {
    fc.assert(
      fc.property(arbitraryProfile, (profile) => {
        for (const one of profilesOf(readBack(profile))) {
          const start = BigInt(one.timeUnixNano);
          const end = start + BigInt(one.durationNano ?? 0);
          expect(start <= profile.timeUnixNano).toBe(true);
          expect(end >= profile.timeUnixNano + profile.durationNano).toBe(true);
          for (const sample of one.samples)
            for (const time of sample.timestampsUnixNano) {
              expect(BigInt(time) >= start && BigInt(time) <= end).toBe(true);
            }
        }
      }),
    );
  });

  it('holds no more memory than it has bytes', () => {
    const request = encode(emptyProfile());
    expect(request.buffer.byteLength).toBe(request.byteLength);
  });

  it('starts at the first timestamp where no window is known', () => {
    const profile = { ...emptyProfile(), samples: [sampleAt([30n, 10n])] };
    expect(profilesOf(readBack(profile))[0]).toMatchObject({ timeUnixNano: '10', durationNano: '20' });
  });

  it('writes one timestamp an event and no values; values only where there are no timestamps', () => {
    const profile = { ...emptyProfile(), samples: [sampleAt([5n, 6n]), { ...sampleAt([]), value: 7 }] };
    const [first, second] = profilesOf(readBack(profile))[0].samples;
    expect([first.values, first.timestampsUnixNano]).toEqual([[], ['5', '6']]);
    expect([second.values, second.timestampsUnixNano]).toEqual([['7'], []]);
  });

  it('writes links as bytes, and no field where there is none', () => {
    const link = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };
    const unused = { ...link, spanId: '00f067aa0ba902b7' };
    const samples = [sampleAt([5n]), { ...sampleAt([6n]), link: 2 }, { ...sampleAt([7n]), link: 0 }];
    const request = ExportRequest.decode(
      encode({ ...emptyProfile(), links: [...emptyProfile().links, unused, link], samples }),
    );
    const [, written, ...others] = request.dictionary!.linkTable!;
    expect(others).toEqual([]);
    expect(Buffer.from(written!.traceId!).toString('hex')).toBe(link.traceId);
    expect(Buffer.from(written!.spanId!).toString('hex')).toBe(link.spanId);
    const { samples: all } = request.resourceProfiles[0]!.scopeProfiles![0]!.profiles![0]!;
    expect(all!.map((one) => Object.hasOwn(one, 'linkIndex'))).toEqual([false, true, false]);
    expect(all![1]!.linkIndex).toBe(1);
  });

  it('groups resources by service, container and executable, and tells processes apart in the samples', () => {
    const entry = {
      ...emptyProcess(),
      serviceName: 'svc',
      executableName: 'app',
      executablePath: '/bin/app',
    };
    const processes = [
      emptyProcess(),
      { ...entry, pid: 1 },
      { ...entry, pid: 2 },
      { ...entry, pid: 3, containerId: 'c1' },
    ];
    const samples = [1, 2, 3].map((process) => ({ ...sampleAt([1n]), process }));
    const request = readBack({ ...emptyProfile(), host: { 'host.name': 'box' }, processes, samples });
    const resources = request['resourceProfiles'].map(
      ({ resource }: { resource: { attributes: { key: string; value: object }[] } }) =>
        Object.fromEntries(resource.attributes.map(({ key, value }) => [key, Object.values(value)[0]])),
    );
    const shared = {
      'host.name': 'box',
      'service.name': 'svc',
      'process.executable.name': 'app',
      'process.executable.path': '/bin/app',
    };
    expect(resources).toEqual([shared, { ...shared, 'container.id': 'c1' }]);
    expect(request['resourceProfiles'][0].scopeProfiles[0].scope).toMatchObject({
      name: 'everyframe',
      version: '1.2.3',
    });
    const { profiles } = decodeOtlp(encode({ ...emptyProfile(), processes, samples }));
    expect(profiles.flatMap((one) => one.processes.slice(1).map(({ pid }) => pid))).toEqual([1, 2, 3]);
  });

  it('takes as long for each of many processes as for few', () => {
    const count = 30_000;
    const names = Array.from({ length: count }, (_, i) => ({
      ...emptyProcess(),
      executableName: `p${i}`,
      pid: i,
    }));
    const profile = {
      ...emptyProfile(),
      processes: names,
      samples: names.map((_, process) => ({
        stack: 0,
        process,
        tid: 0,
        threadName: '',
        cpu: -1,
        value: 1,
        timestamps: [],
      })),
    };
    const start = performance.now();
    encodeOtlp([profile], { scopeName: 'x', scopeVersion: '' });
    // it was a minute
    expect(performance.now() - start).toBeLessThan(10_000);
  });

  it('says what is of a thread with its samples, not with the resource', () => {
    const profile = profileOfFunctions(2);
    const [, process] = profile.processes;
    profile.processes[1] = { ...process!, attributes: '["k8s.pod.name","a","thread.state","running"]' };
    profile.processes.push({
      ...process!,
      attributes: '["k8s.pod.name","a","thread.state","blocked:lock","thread.waker","holder"]',
    });
    profile.samples[1]!.process = 2;
    const request = readBack(profile);
    expect(request['resourceProfiles'].length).toBe(1);
    const { attributeTable, stringTable } = request['dictionary'];
    const ofThread = profilesOf(request).flatMap(
      ({ samples }: { samples: { attributeIndices: number[] }[] }) =>
        samples.map(({ attributeIndices }) =>
          attributeIndices
            .map((index) => attributeTable[index])
            .filter(({ keyStrindex }) => /^thread\.(state|waker)$/.test(stringTable[keyStrindex]))
            .map(({ value }) => value.stringValue),
        ),
    );
    expect(ofThread).toEqual([['running'], ['blocked:lock', 'holder']]);
    const { profiles } = decodeOtlp(encode(profile));
    expect(profiles[0]!.processes.map(({ attributes }) => attributes)).toEqual([
      undefined,
      ...profile.processes.slice(1).map(({ attributes }) => attributes),
    ]);
  });

  it('keeps mapping attributes and frame types in the form that receivers ask for', () => {
    const profile = {
      ...emptyProfile(),
      mappings: [
        emptyMapping(),
        { ...emptyMapping(), filename: 'app', fileId: 'ab'.repeat(16), goBuildId: 'g' },
      ],
      locations: [
        ...emptyProfile().locations,
        { mapping: 1, address: 2n ** 64n - 1n, frameType: 'native' as const, lines: [] },
      ],
      stacks: [new Uint32Array(0), Uint32Array.of(1)],
      samples: [{ ...sampleAt([1n]), stack: 1 }],
    };
    const { dictionary } = readBack(profile);
    const attributesOf = (entry: { attributeIndices: number[] }) =>
      entry.attributeIndices.map((index) => {
        const { keyStrindex, value } = dictionary.attributeTable[index];
        return [dictionary.stringTable[keyStrindex], value.stringValue];
      });
    expect(dictionary.locationTable[1].address).toBe('18446744073709551615');
    expect(attributesOf(dictionary.locationTable[1])).toEqual([['profile.frame.type', 'native']]);
    expect(attributesOf(dictionary.mappingTable[1])).toEqual([
      ['process.executable.build_id.go', 'g'],
      ['process.executable.build_id.htlhash', 'ab'.repeat(16)],
    ]);
  });
});

describe('splitProfile', () => {
  it('keeps every sample, in parts that are small enough', () => {
    fc.assert(
      fc.property(arbitraryProfile, fc.integer({ min: 1, max: 10 }), (profile, max) => {
        const parts = splitProfile(profile, max);
        expect(parts.every(({ samples }) => samples.length > 0 && samples.length <= max)).toBe(true);
        expect(parts.flatMap(({ samples }) => samples)).toEqual(profile.samples);
      }),
    );
  });

  it.each([0, -1, Number.NaN])('refuses parts of %s samples', (max) => {
    expect(() => splitProfile(emptyProfile(), max)).toThrow(RangeError);
  });
});

function sampleAt(timestamps: bigint[]): Profile['samples'][number] {
  return { stack: 0, process: 0, tid: 1, threadName: '', cpu: -1, value: timestamps.length, timestamps };
}
