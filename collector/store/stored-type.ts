/** How stores tell types of samples apart. */
import {
  cpuType,
  isCpuType,
  type ProfileType,
  typeKey,
  valueTypeName,
} from '../../common/profile/model/profile-type.ts';
import type { RowQuery } from './store.ts';

/** Senders could make up as many as they like, and each costs tables. */
export const MAX_TYPES = 64;
/** Characters of each of the four texts of a type. */
export const MAX_TYPE_TEXT = 128;

/** Without a period: that of each sender is kept with its series. */
export const CPU_TYPE = cpuType(0n);
export const CPU_KEY = typeKey(CPU_TYPE);

/** The type under which samples are kept: of a sender that says nothing else, samples are of CPU time. */
export function storedType(type: ProfileType): ProfileType {
  const { sampleType, periodType } = type;
  const isBare = periodType.type === '' && periodType.unit === '';
  if (isBare && valueTypeName(sampleType) === 'samples/count') return CPU_TYPE;
  return { sampleType, periodType, period: 0n };
}

/** Why samples of a type can't be kept, whatever else is. */
export function typeProblem({ sampleType, periodType }: ProfileType): string | undefined {
  const texts = [sampleType.type, sampleType.unit, periodType.type, periodType.unit];
  if (sampleType.type === '') return 'its sample type has no name';
  const isLong = texts.some((text) => text.length > MAX_TYPE_TEXT);
  return isLong ? `a name of its sample type is longer than ${MAX_TYPE_TEXT} characters` : undefined;
}

/** CPU time in nanoseconds that a value of 1 stands for; 0 for types that are not samples of a CPU. */
export const periodNanos = (type: ProfileType): number =>
  isCpuType(storedType(type)) ? Number(type.period) : 0;

/** Events of a CPU are the count of their samples. */
export const countable = (query: RowQuery, type: ProfileType): RowQuery =>
  isCpuType(type) ? { ...query, counts: false } : query;

/** As how many samples a row counts: sampling events of a CPU come summed, values of other types one by one. */
export const countOf = (type: ProfileType, weight: number): number => (isCpuType(type) ? weight : 1);
