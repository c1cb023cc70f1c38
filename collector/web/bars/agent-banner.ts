/** What became of the agent that `everyframe run` keeps alive. */
import { formatDuration } from '../../../common/flame/format.ts';

/** Of `GET /api/v1/status`, where `everyframe run` answers it. */
export interface WatchedAgent {
  /** `waiting`: it ended, and is started again at `nextTryMs`. */
  state: 'running' | 'waiting';
  /** Since `everyframe run` began. */
  restarts: number;
  startedMs: number;
  lastExit?: { code: number | null; signal: string | null; atMs: number };
  nextTryMs?: number;
}

/** A restart that is older is history. */
const RECENT_MS = 600_000;
const CLOCK = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });

/** A sentence for a banner; '' where nothing is worth one. */
export function describeAgent(agent: WatchedAgent | undefined, nowMs: number): string {
  const exit = agent?.lastExit;
  if (agent === undefined || exit === undefined) return '';
  const ended = `The agent ended (${causeOf(exit)}) at ${CLOCK.format(exit.atMs)}`;
  if (agent.state === 'waiting') {
    const left = Math.max(0, (agent.nextTryMs ?? nowMs) - nowMs);
    return `${ended} and starts again in ${formatDuration(Math.ceil(left / 1000))}: nothing is sampled meanwhile.`;
  }
  if (nowMs - exit.atMs > RECENT_MS) return '';
  return `${ended} and was started again (restart ${agent.restarts}): the samples of that gap are missing.`;
}

function causeOf({ code, signal }: NonNullable<WatchedAgent['lastExit']>): string {
  if (signal === 'SIGKILL') return 'SIGKILL, for example out of memory';
  return signal ?? `exit code ${code ?? 'unknown'}`;
}
