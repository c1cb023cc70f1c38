/** How types without a period are written for receivers that name profiles by it. */
import { describe, expect, it } from 'vitest';
import { opentelemetry } from '#otlp';
import type { Profile } from '../model/profile.ts';
import { ProfileBuilder } from '../model/profile-builder.ts';
import { cpuType, NO_PERIOD, type ProfileType, parseValueType, typeKey } from '../model/profile-type.ts';
import { decodeOtlp } from './otlp-decode.ts';
import { encodeOtlp } from './otlp-encode.ts';

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

/** Period type and period, and values beside timestamps, read by the generated code. */
function written(type: ProfileType) {
  const request = ExportRequest.toObject(ExportRequest.decode(encodeOtlp([profileOf(type)], SCOPE)), {
    longs: Number,
    arrays: true,
  });
  const [profile] = request['resourceProfiles'][0].scopeProfiles[0].profiles;
  const strings = request['dictionary'].stringTable;
  const { typeStrindex, unitStrindex } = profile.periodType ?? { typeStrindex: 0, unitStrindex: 0 };
  return {
    period: [`${strings[typeStrindex]}/${strings[unitStrindex]}`, profile.period],
    samples: profile.samples.map((sample: { values: number[]; timestampsUnixNano: number[] }) => [
      sample.values,
      sample.timestampsUnixNano,
    ]),
  };
}

describe('a type without a period', () => {
  it.each(['alloc_space/bytes', 'page-faults/count', 'thread_time/nanoseconds'])(
    '%s is written with one of its own, and a value a sample',
    (name) => {
      expect(written(typeOf(name))).toEqual({
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
