import type { Profile } from '../../common/profile/profile.ts';

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
 * Makes a profile that was read from a file one that the store takes: in counts, at a time, with a name for
 * each process. Changes it in place.
 *
 * @throws Error for a profile whose values are no counts and no multiples of a period
 */
export function placeProfile(profile: Profile, { endMs, fallbackEndMs, processName }: Placement): void {
  countByPeriod(profile);
  const newest = newestNanos(profile);
  const wanted = endMs ?? (newest < EARLIEST_NANOS ? fallbackEndMs : undefined);
  if (wanted !== undefined) shift(profile, BigInt(Math.floor(wanted)) * 1_000_000n - newest);
  for (const process of profile.processes) {
    if (process.executableName === '' && process.commandName === '' && process.serviceName === '')
      process.executableName = processName;
  }
}

/** CPU time becomes samples, as many as would have taken it. */
function countByPeriod(profile: Profile): void {
  const { type, unit } = profile.type.sampleType;
  if (type === 'samples' && unit === 'count') return;
  const period = Number(profile.type.period);
  const isCpuTime = (type === 'cpu' || type === 'wall') && unit === 'nanoseconds' && period > 0;
  if (!isCpuTime) {
    throw new Error(
      `its values are ${type || '(nothing)'}/${unit || '(nothing)'}: samples/count can be imported, and ` +
        'cpu/nanoseconds with a period',
    );
  }
  profile.type = { ...profile.type, sampleType: { type: 'samples', unit: 'count' } };
  for (const sample of profile.samples) sample.value = Math.max(1, Math.round(sample.value / period));
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
