import type { Profile } from '../../common/profile/model/profile.ts';
import { cpuType, valueTypeName } from '../../common/profile/model/profile-type.ts';

export interface Placement {
  /** When the newest sample is to have happened, milliseconds since the Unix epoch; undefined: as the file says. */
  endMs: number | undefined;
  /** The same, for files that don't say when. */
  fallbackEndMs: number;
  /** Name of processes that have none. */
  processName: string;
}

/** 2000-01-01: earlier times count from a start, of a machine or a program, and not from 1970. */
const EARLIEST_NANOS = 946_684_800_000_000_000n;

/**
 * Makes the profiles that were read from a file ones that the store takes: at a time, with a name for each process. Changes them
 * in place.
 *
 * @param profiles one for each type; their times are moved together
 */
export function placeProfiles(
  profiles: readonly Profile[],
  { endMs, fallbackEndMs, processName }: Placement,
): void {
  const newest = profiles.map(newestNanos).reduce((a, b) => (a > b ? a : b), 0n);
  const wanted = endMs ?? (newest < EARLIEST_NANOS ? fallbackEndMs : undefined);
  for (const profile of profiles) {
    countByPeriod(profile);
    if (wanted !== undefined) shift(profile, BigInt(Math.floor(wanted)) * 1_000_000n - newest);
    for (const process of profile.processes) {
      if (process.executableName === '' && process.commandName === '' && process.serviceName === '')
        process.executableName = processName;
    }
  }
}

/** CPU time becomes samples, as many as would have taken it: pictures of CPU time are of samples. */
function countByPeriod(profile: Profile): void {
  const { sampleType, periodType, period } = profile.type;
  const isCpuTime = [sampleType, periodType].every((type) => valueTypeName(type) === 'cpu/nanoseconds');
  // of single events none takes a whole number of periods
  const isTimed = profile.samples.some(({ timestamps }) => timestamps.length > 0);
  if (!isCpuTime || isTimed || period <= 0n) return;
  profile.type = cpuType(period);
  for (const sample of profile.samples) sample.value = Math.max(1, Math.round(sample.value / Number(period)));
}

function newestNanos(profile: Profile): bigint {
  let newest = 0n;
  for (const { timestamps } of profile.samples)
    for (const time of timestamps) if (time > newest) newest = time;
  return newest > 0n ? newest : profile.timeUnixNano + profile.durationNano;
}

function shift(profile: Profile, by: bigint): void {
  profile.timeUnixNano += by;
  for (const sample of profile.samples) {
    if (sample.timestamps.length > 0) sample.timestamps = sample.timestamps.map((time) => time + by);
  }
}
