/**
 * Whether a change between two sets of samples may be nothing but chance. Samples are taken at a fixed rate, each for itself: what
 * a function has of n of them varies by sqrt(p (1 - p) / n) from one recording to the next, though nothing has changed.
 */
import { countsSamples, type ProfileType } from './profile-type.ts';

/** What something has of all samples; both are numbers of samples. */
export interface PartOfSamples {
  part: number;
  all: number;
}

/** A change is told from chance where it is larger than so many standard errors: chance alone is in one of twenty cases. */
const STANDARD_ERRORS = 2;

/**
 * How many samples values of that type add up to; undefined where a value does not say how many there were: of waits and of
 * events one sample stands for many, of bytes each has its own size.
 */
export function samplesIn(value: number, type: ProfileType): number | undefined {
  if (countsSamples(type)) return value;
  const { sampleType, periodType, period } = type;
  const isClock = sampleType.type === 'cpu' && sampleType.unit === periodType.unit && period > 0n;
  return isClock ? value / Number(period) : undefined;
}

/** Of the change of a share. */
export function mayBeChance(before: PartOfSamples, after: PartOfSamples): boolean {
  if (before.all === 0 || after.all === 0) return false;
  const change = after.part / after.all - before.part / before.all;
  return Math.abs(change) < STANDARD_ERRORS * Math.sqrt(variance(before) + variance(after));
}

/** As if two more had been taken, of which it had one: what was not met among few samples may still be there (Agresti and Coull). */
function variance({ part, all }: PartOfSamples): number {
  const share = (part + 1) / (all + 2);
  return (share * (1 - share)) / (all + 2);
}
