/** What the values of events measure: each event is a type of its own, which its text names. */
import type { ProfileType } from '../../common/profile/model/profile-type.ts';
import { Origin, PROFILE_TYPES } from '../records/records.gen.ts';
import type { EventSpec } from './event-spec.ts';

export type SourceType = Omit<ProfileType, 'period'>;

/** By origin of a sample: those of the BPF programs, then those of the events. */
export const sourceTypes = (events: readonly EventSpec[] = []): SourceType[] => [
  ...PROFILE_TYPES.map((type, origin) => (origin === Origin.OFF_CPU && hasLocks(events) ? LOCK : type)),
  ...events.filter(isSource).map(typeOf),
];

/** All but the clock, which the sampler has, and locks, which are waits. */
export type SourceSpec = Exclude<EventSpec, { kind: 'cpu-clock' | 'lock' }>;

const isSource = (event: EventSpec): event is SourceSpec =>
  event.kind !== 'cpu-clock' && event.kind !== 'lock';

export const hasLocks = (events: readonly EventSpec[]): boolean => events.some(({ kind }) => kind === 'lock');

/** Waits that are of locks alone: of what is sampled at switches, which there is once. */
const LOCK: SourceType = {
  ...PROFILE_TYPES[Origin.OFF_CPU],
  sampleType: { type: 'lock', unit: 'nanoseconds' },
};

export interface EventSourcesOptions {
  events: readonly SourceSpec[];
  /** Stacks a second on each CPU, for each event. */
  budget: number;
  /** Samples a second of the processor's counters. */
  samplesPerSecond: number;
  /** The processor's counters count where a CPU is idle, too. */
  includeIdle: boolean;
}

/** What the tracer samples: the clock alone where no event was asked for. */
export function sampledEvents({ events, samplesPerSecond, sendIdleFrames }: SampledOptions): {
  withoutClock: boolean;
  events: EventSourcesOptions | undefined;
} {
  const { specs = [], budget = 0 } = events ?? {};
  const sources = specs.filter(isSource);
  return {
    withoutClock: specs.length > 0 && specs.every(({ kind }) => kind !== 'cpu-clock'),
    events:
      sources.length === 0
        ? undefined
        : { events: sources, budget, samplesPerSecond, includeIdle: sendIdleFrames },
  };
}

interface SampledOptions {
  events?: { specs: readonly EventSpec[]; budget: number } | undefined;
  samplesPerSecond: number;
  sendIdleFrames: boolean;
}

/** What its samples are of; those of `malloc` have a second type, LIVE. */
export function typeOf(event: EventSpec): SourceType {
  if (event.kind === 'cpu-clock') return PROFILE_TYPES[Origin.CPU];
  if (event.kind === 'lock') return LOCK;
  if (event.kind === 'malloc') return PROFILE_TYPES[Origin.ALLOCATED];
  return { sampleType: { type: event.text, unit: unitOf(event) }, periodType: { type: '', unit: '' } };
}

function unitOf(event: SourceSpec): string {
  if (event.kind === 'uretprobe') return 'nanoseconds';
  if (event.kind === 'mmap') return 'bytes';
  return 'unit' in event ? event.unit : 'count';
}
