import { formatCount, formatDuration, plural } from '../../../common/flame/format.ts';
import type { AgentStatus, ReasonCount, StatusResponse } from '../../status/status.ts';

/** `unreachable`: the collector; `waiting`: for a first agent; `silent`: agents were heard, samples are missing. */
export type Condition = 'live' | 'waiting' | 'silent' | 'unreachable';

export interface Diagnosis {
  condition: Condition;
  /** Where there is no picture: what is wrong and what to do. */
  headline: string;
  sentences: string[];
  /** A command that helps, '' if none does. */
  command: string;
  /** Beside a picture. */
  warnings: string[];
}

export interface Observed {
  status: StatusResponse | undefined;
  /** Samples in the picture; undefined while the first answer is on its way. */
  samples: number | undefined;
  /** Of the last request to the collector. */
  error: string | undefined;
  /** The collector answers, but not this. */
  isRefused: boolean;
  rangeTitle: string;
  /** Filter, '' for none. */
  where: string;
  /** The shown time ends now. */
  isFollowing: boolean;
}

/** Agents send every 5 s or so: this long without samples is worth a word. */
const STALE_MS = 15_000;
/** Nobody knows which: an agent that is connected holds back samples while it looks up the names of new programs. */
const NOTHING_NEW = 'either nothing ran there, or names of new programs are still being looked up';
/** Refusals older than this are history. */
const RECENT_MS = 120_000;

export function diagnose(observed: Observed): Diagnosis {
  const { status, error, isRefused, samples } = observed;
  const diagnosis: Diagnosis = { condition: 'live', headline: '', sentences: [], command: '', warnings: [] };
  if (error !== undefined || status === undefined)
    return error === undefined ? diagnosis : isRefused ? refused(error) : unreachable(error, samples);
  diagnosis.warnings = [
    ...refusalWarnings(status),
    ...learningWarnings(status),
    ...staleWarnings(status, samples),
    ...storeWarnings(status),
  ];
  if (samples !== 0) return diagnosis;
  return { ...diagnosis, ...explainNothing(observed, status), warnings: [] };
}

function unreachable(error: string, samples: number | undefined): Diagnosis {
  const headline = 'The collector does not answer';
  return {
    condition: 'unreachable',
    headline,
    sentences: [
      `It may have ended, or the connection to it did (${error}).`,
      'Trying again every 2 seconds.',
    ],
    command: '',
    warnings: samples === undefined ? [] : [`${headline} (${error}). This is the last picture it sent.`],
  };
}

/** What the address asks for, since buttons ask for nothing that is refused. */
function refused(error: string): Diagnosis {
  return {
    condition: 'silent',
    headline: 'The collector cannot answer what the address asks',
    sentences: [`It says: ${error}.`],
    command: '',
    warnings: [],
  };
}

type Explanation = Pick<Diagnosis, 'condition' | 'headline' | 'sentences' | 'command'>;

function explainNothing(observed: Observed, status: StatusResponse): Explanation {
  const { where, rangeTitle, isFollowing } = observed;
  const latest = latestSender(status);
  if (status.requests.accepted === 0) return explainNobody(status);
  if (latest === undefined) return explainIdle(status);
  const agoS = (status.nowMs - latest.lastSamplesMs!) / 1000;
  const that = where === '' ? '' : ` with ${where}`;
  const headline = `No samples${that} in ${rangeTitle}`;
  const sentences = [`The last samples came ${formatDuration(agoS)} ago from ${agentName(latest)}.`];
  if (where !== '') sentences.push('The filter matched nothing in this period.');
  else if (!isFollowing)
    sentences.push('Nothing was sampled in that time, or its samples are no longer kept.');
  else if (status.nowMs - latest.lastMs < STALE_MS) sentences.push(`The agent is connected: ${NOTHING_NEW}.`);
  else sentences.push('Is the agent still running? A longer range shows what it sent before.');
  return { condition: 'silent', headline, sentences: [...sentences, ...reasonLines(status)], command: '' };
}

function explainNobody(status: StatusResponse): Explanation {
  const command = `everyframe agent --collection-agent ${status.listen.grpc} --disable-tls`;
  if (status.requests.refused > 0) {
    return {
      condition: 'silent',
      headline: `${plural(status.requests.refused, 'request')} refused`,
      sentences: ['Something sends data here that this collector cannot read:', ...reasonLines(status)],
      command: '',
    };
  }
  return {
    condition: 'waiting',
    headline: 'No agent has connected yet',
    sentences: [
      `Waiting for OpenTelemetry profiles on ${status.listen.grpc} (gRPC) and ${status.listen.http}.`,
      'To profile this machine, start an agent as root:',
    ],
    command,
  };
}

function explainIdle(status: StatusResponse): Explanation {
  const agent = status.agents[0];
  const heard = agent === undefined ? '' : ` ${agentName(agent)} was heard ${ago(status, agent.lastMs)}.`;
  const rejected = status.samples.rejected > 0;
  return {
    condition: 'silent',
    headline: rejected
      ? 'An agent is connected, but its samples are rejected'
      : 'An agent is connected, but has sent no samples',
    sentences: rejected
      ? reasonLines(status)
      : [`Nothing ran on a CPU when it looked: an idle machine has no samples.${heard}`],
    command: '',
  };
}

function refusalWarnings(status: StatusResponse): string[] {
  const isRecent = ({ lastMs }: ReasonCount): boolean => status.nowMs - lastMs < RECENT_MS;
  return [
    ...status.refusals
      .filter(isRecent)
      .map(({ reason, count }) => `${plural(count, 'request')} refused: ${reason}`),
    ...status.rejections
      .filter(isRecent)
      .map(({ reason, count }) => `${plural(count, 'sample')} rejected: ${reason}`),
  ].slice(0, 3);
}

function learningWarnings({ agents }: StatusResponse): string[] {
  const learning = agents.reduce((sum, { counters }) => sum + (counters?.['executables.learning'] ?? 0), 0);
  if (learning === 0) return [];
  return [`Learning ${plural(learning, 'program')}: stacks through them are incomplete until then.`];
}

function staleWarnings(status: StatusResponse, samples: number | undefined): string[] {
  const latest = latestSender(status);
  if (latest === undefined || !samples || status.nowMs - latest.lastSamplesMs! < STALE_MS) return [];
  const heardOf =
    status.nowMs - latest.lastMs < STALE_MS ? `It is connected: ${NOTHING_NEW}.` : 'Is it still running?';
  return [
    `The last samples came ${ago(status, latest.lastSamplesMs!)} from ${agentName(latest)}. ${heardOf}`,
  ];
}

function storeWarnings({ store, nowMs }: StatusResponse): string[] {
  if (store.problem !== undefined) return [`The store has a problem: ${store.problem}`];
  if (store.droppedForMemory === 0 || store.oldestMs === undefined) return [];
  const reach = formatDuration((nowMs - store.oldestMs) / 1000);
  const size = Math.round(store.maxBytes / 2 ** 20);
  return [`Samples older than ${reach} were dropped to stay within ${size} MiB (--max-memory).`];
}

function reasonLines(status: StatusResponse): string[] {
  return [...status.refusals, ...status.rejections]
    .slice(0, 3)
    .map(({ reason, count, lastMs }) => `${formatCount(count)} × ${reason} (last ${ago(status, lastMs)})`);
}

/** The agent whose samples came last. */
function latestSender(status: StatusResponse): AgentStatus | undefined {
  return status.agents
    .filter(({ lastSamplesMs }) => lastSamplesMs !== undefined)
    .sort((a, b) => b.lastSamplesMs! - a.lastSamplesMs!)[0];
}

const agentName = ({ host, peer }: AgentStatus): string => (host === '' ? peer : `${host} (${peer})`);

const ago = (status: StatusResponse, timeMs: number): string =>
  `${formatDuration(Math.max(0, status.nowMs - timeMs) / 1000)} ago`;
