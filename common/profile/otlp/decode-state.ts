/** What the profiles of an OTLP request share while they are decoded, and what comes of them. */
import type { ColumnProfile } from '../model/frame-columns.ts';
import type { Profile } from '../model/profile.ts';
import type { StringCache } from '../model/string-cache.ts';
import { EntryMap, IndexRoom } from './index-tables.ts';
import type { DictionaryReader } from './otlp-dictionary.ts';
import { type ProfileHeader, WireLines, WireSample } from './otlp-request.ts';

export interface DecodeResult<P = Profile> {
  profiles: P[];
  /** Sample entries left out. */
  rejected: number;
  /** Reason → events in the entries that were left out. */
  problems: Map<string, number>;
  /** Sample entries in the request, the rejected ones included. */
  totalSamples: number;
  /** Profiles of which no sample is left, though they had some. */
  rejectedProfiles: number;
}

/** Each has tables of its own, and is stored by itself. A machine has a few hundred of services and containers. */
export const MAX_PROFILES = 16_384;
/** Over all profiles of a request. Those that say other things of themselves are others, whatever they are. */
export const MAX_PROCESSES = 32_768;
/** Table entries over all profiles of a request: each profile has its own copy of what it refers to. */
export const MAX_ENTRIES = 8_000_000;

/** As far as a sample that can't be read says; only values that count samples say how many there are. */
function eventsOf({ timestamps, values }: WireSample, areCounts: boolean): number {
  if (timestamps.length > 0) return timestamps.length;
  const sum = areCounts ? values.reduce((total, value) => total + value, 0) : 0;
  return sum >= 1 && Number.isSafeInteger(sum) ? sum : 1;
}

/** What the profiles of a request share. */
export class RequestState {
  readonly dictionary: DictionaryReader;
  readonly strings: StringCache;
  readonly result: DecodeResult<ColumnProfile>;
  readonly sample = new WireSample();
  readonly lines = new WireLines();
  readonly room = new IndexRoom();
  entriesLeft = MAX_ENTRIES;
  profilesLeft = MAX_PROFILES;
  processesLeft = MAX_PROCESSES;
  /** Whether the values of the profile that is read count samples. */
  areCounts = false;
  /** Samples whose attributes are none that a sample has. */
  oldLooking = 0;
  readonly mappings: EntryMap;
  readonly functions: EntryMap;
  readonly locations: EntryMap;
  readonly stacks: EntryMap;
  readonly links: EntryMap;

  constructor(dictionary: DictionaryReader, strings: StringCache, result: DecodeResult<ColumnProfile>) {
    this.dictionary = dictionary;
    this.strings = strings;
    this.result = result;
    this.mappings = new EntryMap(dictionary.count('mapping'));
    this.functions = new EntryMap(dictionary.count('func'));
    this.locations = new EntryMap(dictionary.count('location'));
    this.stacks = new EntryMap(dictionary.count('stack'));
    this.links = new EntryMap(dictionary.count('link'));
  }

  /** The sample that was read. */
  reject(reason: string): void {
    const { result } = this;
    result.rejected++;
    result.problems.set(reason, (result.problems.get(reason) ?? 0) + eventsOf(this.sample, this.areCounts));
  }

  rejectAll({ samples }: ProfileHeader, reason: string): void {
    const { reader } = this.dictionary;
    for (let i = 0; i < samples.length; i++) {
      this.sample.read(reader, samples.open(reader, i));
      this.reject(reason);
    }
    this.result.totalSamples += samples.length;
  }
}

export const NO_STACK = 'stack index out of range';

/**
 * What the scan of the bytes can't see. Up to 1.9 a sample's values stood where its attributes stand now, so its
 * "attributes" are counts; up to 1.7 there was no table of stacks.
 */
export function looksOld({ dictionary, result, oldLooking }: RequestState): boolean {
  const { totalSamples, rejected, problems } = result;
  if (totalSamples === 0) return false;
  if (oldLooking === totalSamples) return true;
  const hasNoStacks = dictionary.count('stack') === 0;
  return rejected === totalSamples && problems.size === 1 && problems.has(NO_STACK) && hasNoStacks;
}
