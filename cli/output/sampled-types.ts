/** Whether a recording will have what is to be written of it. */
import { hasLocks, sourceTypes } from '../../agent/events/event-types.ts';
import { Origin } from '../../agent/records/records.gen.ts';
import { type AgentOptions, samplesWaits } from '../../agent/settings/options.ts';
import { findType } from '../../common/profile/model/profile-type.ts';

type Asked = Pick<AgentOptions, 'event' | 'offCpu' | 'offCpuThreshold'>;

/** @throws Error for a type that nobody knows, or one that these settings do not sample: it says which flag does */
export function requireType(name: string, asked: Asked): void {
  const types = sourceTypes(asked.event).map((type) => ({ ...type, period: 0n }));
  const flag = missingFlag(findType(types, name), asked);
  if (flag !== undefined) throw new Error(`--type ${name}: nothing of it is sampled: add ${flag}`);
}

/** @throws Error where there are no waits, which idle threads are taken out of */
export function requireWaits(asked: Asked): void {
  if (missingFlag(Origin.OFF_CPU, asked) !== undefined)
    throw new Error('--idle: threads that wait are not sampled: add --off-cpu');
}

/** What samples the types of an origin, where it was not given. */
function missingFlag(origin: number, asked: Asked): string | undefined {
  const { event } = asked;
  const kinds = event.map(({ kind }) => kind);
  switch (origin) {
    case Origin.CPU:
      return kinds.length === 0 || kinds.includes('cpu-clock') ? undefined : '--event cpu-clock';
    case Origin.OFF_CPU:
      return samplesWaits(asked) || hasLocks(event) ? undefined : '--off-cpu';
    case Origin.THREAD_TIME:
      return samplesWaits(asked) ? undefined : '--off-cpu';
    case Origin.ALLOCATED:
    case Origin.LIVE:
      return kinds.includes('malloc') ? undefined : '--event malloc';
    default:
      return undefined;
  }
}
