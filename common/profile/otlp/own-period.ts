/**
 * Types without a period, such as `page-faults/count`, as receivers take them. Pyroscope names a profile by its period type,
 * refuses one without, and of one that has it takes a single value a sample: so such a type is written with a period of one
 * of its own values. Off-CPU time alone is known there, as OpenTelemetry's profiler sends it, by having none.
 */
import type { Sample } from '../model/profile.ts';
import { countsSamples, isOwnPeriod, NO_PERIOD, type ProfileType, typeName } from '../model/profile-type.ts';

const hasNoPeriod = ({ periodType }: ProfileType): boolean =>
  periodType.type === '' && periodType.unit === '';

/** Whether it is written with a period of its own: what counts samples and has none would be read as CPU time. */
export const needsOwnPeriod = (type: ProfileType): boolean =>
  hasNoPeriod(type) && !countsSamples(type) && typeName(type) !== 'off_cpu/nanoseconds';

/** The type as written. */
export const withOwnPeriod = (type: ProfileType): ProfileType =>
  needsOwnPeriod(type) ? { ...type, periodType: type.sampleType, period: 1n } : type;

/** The type as it was before it was written. */
export const withoutOwnPeriod = (type: ProfileType): ProfileType =>
  isOwnPeriod(type) && !countsSamples(type) ? { ...type, ...NO_PERIOD } : type;

/** A sample for each of its values. */
export function singleValues(sample: Sample): Sample[] {
  const { values, timestamps } = sample;
  if (!values || values.length < 2) return [sample];
  return values.map((value, i) => ({
    ...sample,
    value,
    values: [value],
    timestamps: timestamps.slice(i, i + 1),
  }));
}
