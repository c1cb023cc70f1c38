/** What becomes a profile, as a list of nouns; and that CPU time does not, where events took its place. */
import { type AgentOptions, samplesWaits } from '../../agent/settings/options.ts';

type Asked = Pick<
  AgentOptions,
  'samplesPerSecond' | 'offCpu' | 'offCpuThreshold' | 'event' | 'cgroup' | 'excludeCgroup'
>;

/** `pids`: of -p; none: it was not given. */
export function whatIsSampled(asked: Asked, pids: readonly number[] = []): string {
  const { samplesPerSecond, event, cgroup, excludeCgroup } = asked;
  const events = event.filter(({ kind }) => kind !== 'cpu-clock').map(({ text }) => text);
  const hasClock = event.length === 0 || events.length < event.length;
  const sources = [
    ...(hasClock ? [`each CPU ${samplesPerSecond} times a second`] : []),
    ...(samplesWaits(asked) ? ['threads that wait'] : []),
    ...events,
  ];
  const format = new Intl.ListFormat('en');
  const groups = cgroup.length > 0 ? `, of the processes of ${format.format(cgroup)} alone` : '';
  const numbers = format.format(pids.map(String));
  const who = pids.length > 1 ? `the processes ${numbers} and their` : `process ${numbers} and its`;
  const place = pids.length > 0 ? `, of ${who} descendants alone` : groups;
  const those = place === '' ? 'the processes' : 'those';
  const others = excludeCgroup.length > 0 ? `, without ${those} of ${format.format(excludeCgroup)}` : '';
  const list = format.format(sources) + place + others;
  return hasClock ? list : `${list}, but no CPU time (--event cpu-clock adds it)`;
}
