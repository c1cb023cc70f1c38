/** How types without a period are written for receivers that name profiles by it. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { opentelemetry } from '#otlp';
import type { Profile } from '../model/profile.ts';
import { ProfileBuilder } from '../model/profile-builder.ts';
import { cpuType, NO_PERIOD, type ProfileType, parseValueType, typeKey } from '../model/profile-type.ts';
import { decodeOtlp } from './otlp-decode.ts';
import { encodeOtlp } from './otlp-encode.ts';
import { decodeOtlpJson } from './otlp-json.ts';

const ExportRequest = opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceRequest;
const SCOPE = { scopeName: 'test', scopeVersion: '0' };
const typeOf = (name: string): ProfileType => ({ ...NO_PERIOD, sampleType: parseValueType(name) });
const BYTES = typeOf('alloc_space/bytes');

/** 5 and 7 in one stack. */
function profileOf(type: ProfileType): Profile {
  const builder = new ProfileBuilder();
  const stack = builder.stack([builder.location({ name: 'main' })]);
  builder.add(stack, { process: 'app', pid: 7, tid: 8, thread: 'worker' }, 12, [1000n, 2000n], [5, 7]);
  return { ...builder.profile, type };
}

/** The request, read by the generated code. */
const requestOf = (type: ProfileType) =>
  ExportRequest.toObject(ExportRequest.decode(encodeOtlp([profileOf(type)], SCOPE)), {
    longs: Number,
    arrays: true,
  });

/** Types, period and attributes, and values beside timestamps. */
function written(type: ProfileType) {
  const request = requestOf(type);
  const [profile] = request['resourceProfiles'][0].scopeProfiles[0].profiles;
  const { stringTable: strings, attributeTable } = request['dictionary'];
  const nameOf = (valueType = { typeStrindex: 0, unitStrindex: 0 }): string =>
    `${strings[valueType.typeStrindex]}/${strings[valueType.unitStrindex]}`;
  return {
    type: nameOf(profile.sampleType),
    attributes: profile.attributeIndices.map((index: number) => [
      strings[attributeTable[index].keyStrindex],
      attributeTable[index].value.stringValue,
    ]),
    period: [nameOf(profile.periodType), profile.period],
    samples: profile.samples.map((sample: { values: number[]; timestampsUnixNano: number[] }) => [
      sample.values,
      sample.timestampsUnixNano,
    ]),
  };
}

describe('a type without a period', () => {
  it.each(['alloc_space/bytes', 'events/count', 'thread_time/nanoseconds'])(
    '%s is written with one of its own, and a value a sample',
    (name) => {
      expect(written(typeOf(name))).toEqual({
        type: name,
        attributes: [],
        period: [name, 1],
        samples: [
          [[5], [1000]],
          [[7], [2000]],
        ],
      });
    },
  );

  it('is read as it was', () => {
    const { profiles } = decodeOtlp(encodeOtlp([profileOf(BYTES)], SCOPE));
    expect(profiles[0]!.type).toEqual(BYTES);
    expect(profiles[0]!.samples.map(({ value, timestamps }) => [value, timestamps])).toEqual([
      [5, [1000n]],
      [7, [2000n]],
    ]);
  });

  it('has none where off-CPU time is known by that, with all values of a stack in one sample', () => {
    expect(written(typeOf('off_cpu/nanoseconds'))).toEqual({
      type: 'off_cpu/nanoseconds',
      attributes: [],
      period: ['/', undefined],
      samples: [
        [
          [5, 7],
          [1000, 2000],
        ],
      ],
    });
  });

  it('has the key of one whose period is of what it counts, as Go writes goroutines', () => {
    for (const period of [0n, 1n, 512n])
      expect(typeKey({ ...BYTES, periodType: BYTES.sampleType, period })).toBe(typeKey(BYTES));
    expect(typeKey({ ...BYTES, periodType: { type: 'space', unit: 'bytes' }, period: 1n })).not.toBe(
      typeKey(BYTES),
    );
  });
});

it('a type that has a period keeps it', () => {
  expect(written(cpuType(10n)).period).toEqual(['cpu/nanoseconds', 10]);
});

describe('a name with characters that not all receivers take', () => {
  it.each([
    ['page-faults', 'page_faults'],
    ['sched:sched_switch', 'sched_sched_switch'],
    ['uprobe:/usr/bin/größe:a::b(int)', 'uprobe__usr_bin_gr__e_a__b_int_'],
    ['🔥', '_'],
  ])('%s is sent as %s, with the real one beside it, and read as it was', (name, sent) => {
    const type = typeOf(`${name}/count`);
    const { type: sampleType, period, attributes } = written(type);
    expect([sampleType, period]).toEqual([`${sent}/count`, [`${sent}/count`, 1]]);
    expect(attributes).toEqual([['everyframe.type', name]]);
    const bytes = encodeOtlp([profileOf(type)], SCOPE);
    expect(decodeOtlp(bytes).profiles[0]!.type).toEqual(type);
    const json = JSON.stringify(ExportRequest.decode(bytes));
    expect(decodeOtlpJson(json).profiles[0]!.type).toEqual(type);
  });

  it('is no other type where only such characters differ', () => {
    const first = profileOf(typeOf('a-b/count'));
    const types = ['a-b', 'a:b', 'a_b'].map((name) => typeOf(`${name}/count`));
    const { profiles } = decodeOtlp(
      encodeOtlp(
        types.map((type) => ({ ...first, type })),
        SCOPE,
      ),
    );
    expect(profiles.map(({ type }) => type)).toEqual(types);
  });

  it('is sent as it is where the type has a period', () => {
    const type = { ...typeOf('heap-live/bytes'), periodType: { type: 'a-b', unit: 'bytes' }, period: 512n };
    expect(written(type)).toMatchObject({
      type: 'heap-live/bytes',
      period: ['a-b/bytes', 512],
      attributes: [],
    });
    expect(decodeOtlp(encodeOtlp([profileOf(type)], SCOPE)).profiles[0]!.type).toEqual(type);
  });

  it('is read as it was, whatever it is', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', minLength: 1, maxLength: 40 }), (name) => {
        const type = { ...NO_PERIOD, sampleType: { type: name, unit: 'things' } };
        expect(written(type).type).toMatch(/^\w+\/things$/);
        expect(decodeOtlp(encodeOtlp([profileOf(type)], SCOPE)).profiles[0]!.type).toEqual(type);
      }),
      { numRuns: 30 },
    );
  });
});

describe('a real name', () => {
  /** The name of the type that is read of a request for one, whose profile has other attributes than it had. */
  function readWith(change: (attributes: { value?: object }[], indices: number[]) => number[], name = 'a-b') {
    const request = requestOf(typeOf(`${name}/count`));
    const { attributeTable } = request['dictionary'];
    const [profile] = request['resourceProfiles'][0].scopeProfiles[0].profiles;
    profile.attributeIndices = change(attributeTable, profile.attributeIndices);
    const { profiles, rejected } = decodeOtlp(
      ExportRequest.encode(ExportRequest.fromObject(request)).finish(),
    );
    expect([rejected, profiles.length]).toEqual([0, 1]);
    expect(profiles[0]!.samples.map(({ value }) => value)).toEqual([5, 7]);
    return profiles[0]!.type.sampleType.type;
  }
  const withValue = (value: object): string =>
    readWith((attributes, indices) => {
      attributes[indices[0]!]!.value = value;
      return indices;
    });

  it('is taken only where it is sent under that name', () => {
    expect(withValue({ stringValue: 'a:b' })).toBe('a:b');
    for (const other of ['c-d', 'a-b-c', 'a', '', 'samples', 'A-b', `a-b${'-'.repeat(1e6)}`])
      expect(withValue({ stringValue: other })).toBe('a_b');
  });

  it.each([
    { intValue: 5 },
    { doubleValue: 0.5 },
    { boolValue: true },
    { bytesValue: Buffer.from('a-b') },
    { arrayValue: { values: [{ stringValue: 'a-b' }] } },
    { kvlistValue: { values: [{ key: 'a-b', value: { stringValue: 'a-b' } }] } },
    { stringValueStrindex: 1e6 },
    { stringValueStrindex: -1 },
    {},
  ])('is none that is not text: %j', (value) => {
    expect(withValue(value)).toBe('a_b');
  });

  it('is found beside attributes that can not be read, and not behind very many', () => {
    const many = new Array<number>(1e6).fill(0);
    expect(readWith((_, indices) => [-1, 1e6, 0, ...indices])).toBe('a-b');
    expect(readWith((_, indices) => many.concat(indices))).toBe('a_b');
    expect(readWith(() => [1e6])).toBe('a_b');
  });

  it('has an end', () => {
    const longest = 'a-'.repeat(128);
    expect(readWith((_, indices) => indices, longest) === longest).toBe(true);
    expect(readWith((_, indices) => indices, `${longest}-`) === `${'a_'.repeat(128)}_`).toBe(true);
  });

  it('is none of a type that has a period', () => {
    const change = { type: 'x', unit: 'y' };
    const request = requestOf(typeOf('a-b/count'));
    const { stringTable } = request['dictionary'];
    const [profile] = request['resourceProfiles'][0].scopeProfiles[0].profiles;
    profile.periodType = {
      typeStrindex: stringTable.push(change.type) - 1,
      unitStrindex: stringTable.push(change.unit) - 1,
    };
    const { profiles } = decodeOtlp(ExportRequest.encode(ExportRequest.fromObject(request)).finish());
    expect(profiles[0]!.type).toMatchObject({ sampleType: { type: 'a_b' }, periodType: change });
  });
});
