import { describe, expect, it } from 'vitest';
import type { Profile } from '../../common/profile/model/profile.ts';
import { cpuType, NO_PERIOD } from '../../common/profile/model/profile-type.ts';
import { profileFromText } from '../../test/browser/synthetic-profile.ts';
import { placeProfiles } from './place.ts';

const CPU_TIME = { type: 'cpu', unit: 'nanoseconds' };
const END_MS = Date.UTC(2026, 0, 1);
const make = (changes: Partial<Profile> = {}, endMs = END_MS): Profile =>
  Object.assign(profileFromText('p;f@n 3', { endMs, spanMs: 300 }), changes);
const times = (profile: Profile): number[] =>
  profile.samples[0]!.timestamps.map((ns) => Number(ns / 1_000_000n));
const place = (profile: Profile, endMs?: number): Profile => {
  placeProfiles([profile], { endMs, fallbackEndMs: END_MS + 5000, processName: 'file' });
  return profile;
};

describe('placeProfile', () => {
  it('leaves times that a file has', () => {
    expect(times(place(make()))).toEqual([END_MS - 201, END_MS - 101, END_MS - 1]);
  });

  it('moves all to where the newest is wanted, the distances as they were', () => {
    expect(times(place(make(), END_MS + 1000))).toEqual([END_MS + 800, END_MS + 900, END_MS + 1000]);
  });

  it('takes the fallback for times that count from a start', () => {
    expect(times(place(make({}, 60_000)))).toEqual([END_MS + 4800, END_MS + 4900, END_MS + 5000]);
    const profile = make({ timeUnixNano: 0n, durationNano: 2_000_000_000n });
    profile.samples[0]!.timestamps = [];
    expect(place(profile).timeUnixNano).toBe(BigInt(END_MS + 3000) * 1_000_000n);
  });

  it('names only processes that have no name', () => {
    const profile = make();
    profile.processes.push({ ...profile.processes[0]!, commandName: 'kept' });
    place(profile);
    expect(profile.processes.map((p) => p.executableName || p.commandName)).toEqual(['file', 'p', 'kept']);
  });

  it('makes samples of CPU time, by the period', () => {
    const profile = make({ type: { ...cpuType(10_000_000n), sampleType: CPU_TIME } });
    profile.samples[0]!.value = 45_000_000;
    profile.samples[0]!.timestamps = [];
    place(profile);
    expect([profile.samples[0]!.value, profile.type.sampleType.type]).toEqual([5, 'samples']);
  });

  it('keeps other types, and CPU time without a period, as they are', () => {
    const heap = { ...NO_PERIOD, sampleType: { type: 'inuse_space', unit: 'bytes' } };
    expect(place(make({ type: heap })).type).toEqual(heap);
    const noPeriod = { ...cpuType(0n), sampleType: CPU_TIME };
    expect(place(make({ type: noPeriod })).type).toEqual(noPeriod);
  });

  it('moves the types of a file together', () => {
    const heap = make(
      { type: { ...NO_PERIOD, sampleType: { type: 'inuse_space', unit: 'bytes' } } },
      END_MS - 500,
    );
    const cpu = make();
    placeProfiles([heap, cpu], { endMs: END_MS + 1000, fallbackEndMs: 0, processName: 'file' });
    expect([times(heap).at(-1), times(cpu).at(-1)]).toEqual([END_MS + 500, END_MS + 1000]);
  });
});
