/**
 * Types without a period, such as `page-faults/count`, as receivers take them. Pyroscope names a profile by its period type,
 * refuses one without, and of one that has it takes a single value a sample: so such a type is written with a period of one
 * of its own values. Off-CPU time alone is known there, as OpenTelemetry's profiler sends it, by having none.
 *
 * It takes no name with a `-` either, and does not list types with a `:` in theirs. So only letters, digits and underscores are
 * written, and the real name goes beside them for whoever knows it.
 */
import type { Sample } from '../model/profile.ts';
import { countsSamples, isOwnPeriod, NO_PERIOD, type ProfileType, typeName } from '../model/profile-type.ts';

const hasNoPeriod = ({ periodType }: ProfileType): boolean =>
  periodType.type === '' && periodType.unit === '';

/** Whether it is written with a period of its own: what counts samples and has none would be read as CPU time. */
export const needsOwnPeriod = (type: ProfileType): boolean =>
  hasNoPeriod(type) && !countsSamples(type) && typeName(type) !== 'off_cpu/nanoseconds';

/** Key of the attribute of a profile whose type has another name than is written. */
export const REAL_NAME = 'everyframe.type';
/** Of longer ones the name stays that is written: each of many profiles may have one, and looking at it takes time. */
const MAX_REAL_NAME = 256;

const writtenName = (name: string): string => name.replace(/[^A-Za-z0-9]/gu, '_');

/** The type as written. */
export function withOwnPeriod(type: ProfileType): ProfileType {
  if (!needsOwnPeriod(type)) return type;
  const sampleType = { ...type.sampleType, type: writtenName(type.sampleType.type) };
  return { sampleType, periodType: sampleType, period: 1n };
}

/**
 * The type as it was before it was written.
 *
 * @param realName the attribute's text; what can't have been written as this type is passed over
 */
export function withoutOwnPeriod(type: ProfileType, realName: string): ProfileType {
  if (!isOwnPeriod(type) || countsSamples(type)) return type;
  const { sampleType } = type;
  const isReal = realName.length <= MAX_REAL_NAME && writtenName(realName) === sampleType.type;
  return { sampleType: isReal ? { ...sampleType, type: realName } : sampleType, ...NO_PERIOD };
}

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
