import { describe, expect, it } from 'vitest';
import type { Profile } from '../../common/profile/profile.ts';
import { cpuType, NO_PERIOD } from '../../common/profile/profile-type.ts';
import { profileFromText } from '../../test/browser/synthetic-profile.ts';
import { placeProfile } from './place.ts';

const CPU_TIME = { type: 'cpu', unit: 'nanoseconds' };
const END_MS = Date.UTC(2026, 0, 1);
const make = (changes: Partial<Profile> = {}, endMs = END_MS): Profile =>
  Object.assign(profileFromText('p;f@n 3', { endMs, spanMs: 300 }), changes);
const times = (profile: Profile): number[] =>
  profile.samples[0]!.timestamps.map((ns) => Number(ns / 1_000_000n));
const place = (profile: Profile, endMs?: number): Profile => {
  placeProfile(profile, { endMs, fallbackEndMs: END_MS + 5000, processName: 'file' });
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
    place(profile);
    expect([profile.samples[0]!.value, profile.type.sampleType.type]).toEqual([5, 'samples']);
  });

  it('refuses values that are no samples', () => {
    const heap = make({ type: { ...NO_PERIOD, sampleType: { type: 'inuse_space', unit: 'bytes' } } });
    expect(() => place(heap)).toThrow('its values are inuse_space/bytes: samples/count can be imported');
    const noPeriod = make({ type: { ...cpuType(0n), sampleType: CPU_TIME } });
    expect(() => place(noPeriod)).toThrow('cpu/nanoseconds with a period');
  });
});
