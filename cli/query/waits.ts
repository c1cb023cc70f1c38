/** Where threads waited: exact times by state, beside what the stacks that were sampled stand for. */
import { OFF_CPU, THREAD_STATE, THREAD_TIME, THREAD_WAKER } from '../../common/profile/model/thread-types.ts';
import { valueFormatter } from '../../common/profile/model/value-format.ts';
import { ask, type CollectorFlags, type Query } from './query-client.ts';
import { leftOut, type TypesAnswer } from './query-text.ts';

const RUNNING = 'running';
const NOT_RUNNING = `${THREAD_STATE}!=${RUNNING}`;
const STATES_LIMIT = 20;
/** No more than a person reads. */
const MAX_WAKERS = 5;

interface Span {
  fromMs: number;
  toMs: number;
}

interface Values extends Span {
  samples: number;
  valueCount: number;
  values: { value: string; samples: number }[];
}

export interface WaitRow {
  name: string;
  /** Counted at each switch, nanoseconds. */
  exactNs: number;
  /** What sampled stacks stand for, nanoseconds. */
  sampledNs: number;
}

export interface WaitsAnswer extends Span {
  /** All states: the time that threads were there. */
  threadNs: number;
  states: WaitRow[];
  /** By what was asked for, `process` or another label: the time not running. */
  by: string;
  groups: WaitRow[];
  groupCount: number;
  /** Who ended waits for locks, with the time of those. */
  wakers: { name: string; sampledNs: number }[];
}

/** @throws Error as `ask`; where the agent does not count waits, `threadNs` is 0 */
export async function askWaits(
  collector: CollectorFlags,
  query: Query,
  by = 'process',
  limit = 10,
): Promise<WaitsAnswer> {
  const { types, fromMs, toMs } = await ask<TypesAnswer & Span>(collector, 'types', query);
  if (!types.some(({ name }) => name === THREAD_TIME))
    return { ...{ fromMs, toMs, threadNs: 0, by }, states: [], groups: [], groupCount: 0, wakers: [] };
  const values = (type: string, label: string, term: string, most: number): Promise<Values> =>
    ask<Values>(collector, 'values', {
      ...query,
      type,
      label,
      limit: most,
      where: both(query['where'], term),
    });
  const [states, sampledStates, groups, sampledGroups, wakers] = await Promise.all([
    values(THREAD_TIME, THREAD_STATE, '', STATES_LIMIT),
    values(OFF_CPU, THREAD_STATE, '', STATES_LIMIT),
    values(THREAD_TIME, by, NOT_RUNNING, limit),
    values(OFF_CPU, by, '', 10_000),
    values(OFF_CPU, THREAD_WAKER, `${THREAD_STATE}=blocked:lock`, MAX_WAKERS + 1),
  ]);
  return {
    ...{ fromMs: states.fromMs, toMs: states.toMs, threadNs: states.samples, by },
    states: joined(states, sampledStates),
    groups: joined(groups, sampledGroups),
    groupCount: groups.valueCount,
    wakers: wakers.values
      .filter(({ value }) => value !== '')
      .slice(0, MAX_WAKERS)
      .map(({ value, samples }) => ({ name: value, sampledNs: samples })),
  };
}

const both = (where: string | number | undefined, term: string): string | undefined =>
  [where, term].filter((part) => part !== undefined && part !== '').join(' ') || undefined;

function joined(exact: Values, sampled: Values): WaitRow[] {
  const ofName = new Map(sampled.values.map(({ value, samples }) => [value, samples]));
  return exact.values.map(({ value, samples }) => ({
    ...{ name: value, exactNs: samples, sampledNs: ofName.get(value) ?? 0 },
  }));
}

const { cell } = valueFormatter({ type: '', unit: 'nanoseconds' });
const share = (part: number, of: number): string => `${(of === 0 ? 0 : (100 * part) / of).toFixed(1)}%`;

export function waitsText(answer: WaitsAnswer): string[] {
  const { fromMs, toMs, threadNs, states, by, groups, groupCount, wakers } = answer;
  const iso = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;
  if (threadNs === 0)
    return [
      'no waits in this time: the agent counts them with --off-cpu; if it does, the filter leaves nothing (everyframe query types)',
    ];
  return [
    `${cell(threadNs)} of threads, ${iso(fromMs)} to ${iso(toMs)}`,
    '     exact   share    by stacks  state',
    ...states.map((row) => line(row, threadNs, row.name === RUNNING)),
    `    waited   share    by stacks  ${by}`,
    ...groups.map((row) => line(row, threadNs, false)),
    ...leftOut(groupCount - groups.length, 'groups'),
    ...wakers.map(
      ({ name, sampledNs }) => `${cell(sampledNs)} of waits for locks were ended by the thread ${name}`,
    ),
    `exact: counted at each switch; by stacks: what sampled stacks stand for. Which: everyframe query top --type off_cpu`,
  ];
}

function line({ name, exactNs, sampledNs }: WaitRow, threadNs: number, isRunning: boolean): string {
  const sampled = isRunning ? '-' : cell(sampledNs);
  return `${cell(exactNs).padStart(10)}  ${share(exactNs, threadNs).padStart(6)}  ${sampled.padStart(11)}  ${name}`;
}
