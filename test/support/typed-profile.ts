/** Profiles of other things than CPU samples, for tests. */
import type { Profile } from '../../common/profile/model/profile.ts';
import type { ValueType } from '../../common/profile/model/profile-type.ts';
import { profileFromText } from '../browser/synthetic-profile.ts';

export interface TypedOptions {
  sampleType: ValueType;
  periodType?: ValueType;
  /** Milliseconds since the Unix epoch of the sample. */
  endMs: number;
  host?: string;
}

/** As {@link profileFromText}, the numbers at the ends of lines being values of a type, one sample each. */
export function typedProfile(
  text: string,
  { sampleType, periodType = { type: '', unit: '' }, endMs, host = 'test-host' }: TypedOptions,
): Profile {
  const lines = text.trim().split('\n');
  const profile = profileFromText(lines.map((line) => line.replace(/ \S+$/, ' 1')).join('\n'), {
    endMs,
    spanMs: 1,
    host,
  });
  profile.timeUnixNano = BigInt(endMs) * 1_000_000n;
  profile.durationNano = 0n;
  profile.type = { sampleType, periodType, period: 0n };
  for (const [i, sample] of profile.samples.entries()) {
    sample.value = Number(/ (\S+)$/.exec(lines[i]!)![1]);
    sample.timestamps = [];
  }
  return profile;
}
