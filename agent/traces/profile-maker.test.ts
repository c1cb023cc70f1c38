import { describe, expect, it } from 'vitest';
import { toTraceId } from '../../common/base/brand.ts';
import { emptyMapping, emptyProcess, type Profile } from '../../common/profile/model/profile.ts';
import { typeName } from '../../common/profile/model/profile-type.ts';
import { Origin, PROFILE_TYPES, RecordType, SAMPLE } from '../records/records.gen.ts';
import type { Frame } from './frame.ts';
import { Interval } from './interval.ts';
import { ProfileMaker } from './profile-maker.ts';

const OFF_CPU = 1;
const SOURCES = [
  PROFILE_TYPES[Origin.CPU],
  { sampleType: { type: 'off_cpu', unit: 'nanoseconds' }, periodType: { type: '', unit: '' } },
];
const UNIX_OFFSET = 1_700_000_000_000_000_000n;

function record(fields: { origin: number; value: bigint; ktimeNs: bigint }): Buffer {
  const buffer = Buffer.alloc(SAMPLE.bytes);
  buffer.writeUInt16LE(RecordType.SAMPLE, SAMPLE.type);
  buffer.writeUInt16LE(fields.origin, SAMPLE.origin);
  buffer.writeBigUInt64LE(fields.value, SAMPLE.value);
  buffer.writeBigUInt64LE(fields.ktimeNs, SAMPLE.ktimeNs);
  buffer.writeUInt32LE(9, SAMPLE.tid);
  buffer.write('worker', SAMPLE.comm);
  return buffer;
}

/** All samples are of one trace of one frame. */
function make(records: readonly Buffer[]): Promise<Profile[]> {
  const interval = new Interval(0, () => false);
  for (const buffer of records) interval.add(toTraceId(3), buffer, 0);
  const frame: Frame = {
    ...{ mapping: emptyMapping(), address: 7, frameType: 'native', lines: [] },
    isChanged: false,
  };
  const maker = new ProfileMaker({
    periodNs: 50_000_000,
    sources: SOURCES,
    stacks: {
      resolve: (_traces, use) => use(),
      viewOf: () => 0,
      depthOf: () => 1,
      mapFrames: (_id, _view, into, map) => void into.fill(map(0)),
      frameCount: 1,
      frameAt: () => frame,
    },
    processes: { get: () => emptyProcess() },
    unixOffsetNs: () => UNIX_OFFSET,
  });
  return maker.make(interval);
}

const cpu = (ktimeNs: bigint): Buffer => record({ origin: Origin.CPU, value: 1n, ktimeNs });
const wait = (ktimeNs: bigint, value: bigint): Buffer => record({ origin: OFF_CPU, value, ktimeNs });

describe('ProfileMaker', () => {
  it('makes no values of CPU samples: one profile, a timestamp each', async () => {
    const profiles = await make([cpu(5n), cpu(7n)]);
    expect(profiles.map(({ type }) => [typeName(type), type.period])).toEqual([
      ['samples/count', 50_000_000n],
    ]);
    const [sample] = profiles[0]!.samples;
    expect(sample).toMatchObject({ value: 2, timestamps: [UNIX_OFFSET + 5n, UNIX_OFFSET + 7n], tid: 9 });
    expect(sample).not.toHaveProperty('values');
  });

  it('makes a profile for each source, of one stack and thread, with the values in the order of their times', async () => {
    const [first, second] = [50_000_000n, 7_000_000_000n];
    const profiles = await make([cpu(1n), wait(2n, first), cpu(3n), wait(4n, second), wait(5n, 1n)]);
    expect(profiles.map(({ type }) => [typeName(type), type.period])).toEqual([
      ['samples/count', 50_000_000n],
      ['off_cpu/nanoseconds', 0n],
    ]);
    expect(profiles[0]!.samples).toMatchObject([
      { value: 2, timestamps: [UNIX_OFFSET + 1n, UNIX_OFFSET + 3n] },
    ]);
    expect(profiles[1]!.samples).toMatchObject([
      { value: 7_050_000_001, values: [50_000_000, 7_000_000_000, 1], threadName: 'worker' },
    ]);
    expect(profiles[1]!.stacks).toBe(profiles[0]!.stacks);
    expect(profiles[1]!.timeUnixNano).toBe(UNIX_OFFSET + 1n);
  });

  it('keeps values while the columns grow, and those of 64 bits to the nearest double', async () => {
    const [profile] = await make([
      ...Array.from({ length: 3000 }, (_, i) => wait(BigInt(i + 1), BigInt(i + 1))),
      wait(4000n, 2n ** 64n - 1n),
    ]);
    const { values, value } = profile!.samples[0]!;
    expect(values!.slice(0, 3000)).toEqual(Array.from({ length: 3000 }, (_, i) => i + 1));
    expect(values![3000]).toBe(2 ** 64);
    expect(value / 2 ** 64).toBeCloseTo(1);
  });

  it('makes nothing of an interval without samples', async () => {
    expect(await make([])).toEqual([]);
  });
});
