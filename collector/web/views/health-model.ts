/** From what was sampled to what is kept: where something was lost, why, and what to do. */

import { formatCount } from '../../../common/flame/format.ts';
import type { HealthAnswer } from '../../api/types.ts';
import type { AgentStatus, ReasonCount } from '../../status/status.ts';
import { cutOf, LOSSES, type LossKind, type Stage, unreadOf } from './losses.ts';

export interface StageRow {
  stage: Stage;
  title: string;
  /** Events that came this far; undefined where no agent says. */
  count: number | undefined;
  /** Out of these. */
  of: number | undefined;
  /** What the figures stand for. */
  scope: string;
}

export interface LossRow extends LossKind {
  count: number;
  /** Out of these, where the shown time is counted. */
  of?: number;
}

const SINCE_START = 'since the agents started';
const SINCE_COLLECTOR = 'since the collector started';
const SHOWN = 'of the shown time';
/** What agents send besides samples, an entry as a sample: so more may be sent than was sampled. */
const SUMS = ['threads.reported', 'liveHeap.reported'];

export function listStages({ quality, status }: HealthAnswer): StageRow[] {
  const taken = sumCounter(status.agents, 'bpf.samples');
  // Not what user space has seen so far: some samples are always on their way.
  const lost = Object.entries(LOSSES)
    .filter(([, { stage }]) => stage === 'taken')
    .reduce((sum, [name]) => sum + (sumCounter(status.agents, name) ?? 0), 0);
  const sent = sumCounter(status.agents, 'reporter.samplesSent');
  const queued = sumCounter(status.agents, 'reporter.samplesQueued') ?? 0;
  const sums = SUMS.reduce((sum, name) => sum + (sumCounter(status.agents, name) ?? 0), 0);
  const { samples, unwound, named, attributed } = quality;
  return [
    {
      stage: 'taken',
      title: 'Samples that arrived in the agent',
      count: taken === undefined ? undefined : taken - lost,
      of: taken,
      scope: SINCE_START,
    },
    { stage: 'unwound', title: 'Stacks that reach their root', count: unwound, of: samples, scope: SHOWN },
    { stage: 'named', title: 'Stacks whose every frame has a name', count: named, of: samples, scope: SHOWN },
    {
      stage: 'attributed',
      title: 'Samples of a known process',
      count: attributed,
      of: samples,
      scope: SHOWN,
    },
    {
      stage: 'exported',
      title:
        'Samples that the agents sent, and sums of each interval: times of threads (--off-cpu), memory in use (--event malloc)',
      count: sent,
      of:
        sent === undefined
          ? undefined
          : (sumCounter(status.agents, 'reporter.samplesPushed') ?? sent) - queued,
      scope: sums === 0 ? SINCE_START : `${SINCE_START}; ${formatCount(sums)} of them are sums, not samples`,
    },
    {
      stage: 'stored',
      title: 'Samples that this collector keeps or kept',
      count: status.samples.stored,
      of: status.samples.received,
      scope: SINCE_COLLECTOR,
    },
    ...forwardStage(status),
  ];
}

/** Undefined if no agent reports the counter. */
function sumCounter(agents: readonly AgentStatus[], name: string): number | undefined {
  const values = agents.flatMap(({ counters }) => (counters?.[name] === undefined ? [] : [counters[name]]));
  return values.length === 0 ? undefined : values.reduce((a, b) => a + b, 0);
}

/** The largest loss of each stage first. */
export function listLosses({ quality, status }: HealthAnswer): LossRow[] {
  const rows: LossRow[] = [];
  for (const [name, kind] of Object.entries(LOSSES)) {
    const count = sumCounter(status.agents, name) ?? 0;
    if (count > 0) rows.push({ ...kind, count });
  }
  const of = quality.samples;
  for (const { marker, samples } of quality.cuts)
    rows.push({ stage: 'unwound', ...cutOf(marker), count: samples, of });
  const { unread } = quality;
  for (const { marker, samples } of unread)
    rows.push({ stage: 'named', ...unreadOf(marker), count: samples, of });
  const unnamed = of - quality.named - unread.reduce((sum, { samples }) => sum + samples, 0);
  if (unnamed > 0) {
    rows.push({
      stage: 'named',
      reason: 'a frame has an address only: its file has no symbols for it',
      advice: 'Install debug symbols (such as -dbgsym packages), or do not strip the program.',
      count: unnamed,
      of,
    });
  }
  const unknown = of - quality.attributed;
  if (unknown > 0) {
    rows.push({
      stage: 'attributed',
      reason: 'the process ended before it could be looked at',
      advice: 'Expected of a few very short processes.',
      count: unknown,
      of,
    });
  }
  rows.push(...storeLosses(status), ...forwardLosses(status));
  return rows.sort((a, b) => STAGES.indexOf(a.stage) - STAGES.indexOf(b.stage) || b.count - a.count);
}

/** As the page shows them. */
export const STAGE_NAMES: Readonly<Record<Stage, string>> = {
  taken: 'sampled',
  unwound: 'stack complete',
  named: 'named',
  attributed: 'process known',
  exported: 'sent',
  stored: 'stored',
  forwarded: 'forwarded',
};

const STAGES: readonly Stage[] = [
  'taken',
  'unwound',
  'named',
  'attributed',
  'exported',
  'stored',
  'forwarded',
];

function forwardStage({ forward }: HealthAnswer['status']): StageRow[] {
  if (forward === undefined) return [];
  const { received, sent, waiting } = forward.samples;
  return [
    {
      stage: 'forwarded',
      title: `Samples passed on to ${forward.to}`,
      count: sent,
      of: received - waiting,
      scope: SINCE_COLLECTOR,
    },
  ];
}

const forwardLosses = ({ forward }: HealthAnswer['status']): LossRow[] =>
  (forward?.losses ?? []).map(({ reason, count }) => ({
    stage: 'forwarded',
    reason,
    advice: `See what ${forward!.to} says; --max-forward-queue gives more room while it is away.`,
    count,
  }));

function storeLosses({ rejections, refusals, store }: HealthAnswer['status']): LossRow[] {
  const rows = [
    ...rejections.map((each) => storedLoss(each, 'Update the sender; what it says is in its log as well.')),
    ...refusals.map((each) => storedLoss(each, 'Whole requests: update the sender.')),
  ];
  const dropped: [count: number, reason: string, advice: string][] = [
    [
      store.droppedForMemory,
      'dropped to stay within the size of the store',
      'Raise --max-memory or --max-disk.',
    ],
    [store.droppedForAge, 'dropped because of their age', 'Raise --max-age to keep them for longer.'],
  ];
  for (const [count, reason, advice] of dropped) {
    if (count > 0) rows.push({ stage: 'stored', reason, advice, count });
  }
  return rows;
}

const storedLoss = ({ reason, count }: ReasonCount, advice: string): LossRow => ({
  stage: 'stored',
  reason,
  advice,
  count,
});
