import { formatBytes, formatCount, formatDuration, formatShare } from '../../../common/flame/format.ts';
import type { HealthAnswer } from '../../api/types.ts';
import type { AgentStatus } from '../../status/status.ts';
import { ask } from '../state/questions.ts';
import { useAnswer } from '../state/use-answer.ts';
import type { ViewProperties } from '../state/view-properties.ts';
import { type LossRow, listLosses, listStages, STAGE_NAMES, type StageRow } from './health-model.ts';
import { Waiting } from './waiting.tsx';

/** Below this share a stage is shown as one that needs a look. */
const GOOD = 0.95;

/** Is the data complete: what came through each stage, what was lost and why, and who sends. */
export function HealthView({ state, isLive, change }: Pick<ViewProperties, 'state' | 'isLive' | 'change'>) {
  const { value: health, error } = useAnswer<HealthAnswer>(ask('health', state), isLive);
  if (health === undefined) return <Waiting error={error} />;
  const losses = listLosses(health);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section class="health" aria-label="Health" tabIndex={0}>
      {health.status.tenant !== undefined && (
        <p>
          What the collector has of tenant <b>{health.status.tenant}</b>.
        </p>
      )}
      <Stages stages={listStages(health)} />
      {health.status.agents.every(({ counters }) => counters === undefined) && (
        <p class="hint">
          No agent reports its counters: start it with <code>--self-metrics</code> to see what it lost before
          it sent, and why.
        </p>
      )}
      <Losses losses={losses} />
      <Worst health={health} onChoose={(where) => change({ where, view: 'icicle' })} />
      <Agents health={health} />
      <StoreFigures health={health} />
    </section>
  );
}

function Stages({ stages }: { stages: readonly StageRow[] }) {
  return (
    <section>
      <h2>From sample to store</h2>
      <ol class="stages">
        {stages.map(({ stage, title, count, of, scope }) => {
          const share =
            count === undefined || of === undefined || of === 0 ? undefined : Math.min(1, count / of);
          const tone = share === undefined ? 'none' : share >= GOOD ? 'good' : 'poor';
          return (
            <li key={stage} class={`stage stage-${tone}`} title={title}>
              <span class="stage-name">{STAGE_NAMES[stage]}</span>
              <b>{share === undefined ? '–' : formatShare(share)}</b>
              <span class="stage-bar" aria-hidden="true">
                <i style={{ width: `${(share ?? 0) * 100}%` }} />
              </span>
              <span class="soft">
                {share === undefined ? 'not reported' : `${formatCount(count!)} of ${formatCount(of!)}`}
              </span>
              <span class="soft">{scope}</span>
            </li>
          );
        })}
      </ol>
    </section>
  );
}

function Losses({ losses }: { losses: readonly LossRow[] }) {
  return (
    <section>
      <h2>Losses</h2>
      {losses.length === 0 ? (
        <p>No losses reported.</p>
      ) : (
        <table class="plain-table">
          <thead>
            <tr>
              <th scope="col">Stage</th>
              <th scope="col" class="figure">
                Samples
              </th>
              <th scope="col" class="figure">
                Share
              </th>
              <th scope="col">Cause</th>
              <th scope="col">Fix</th>
            </tr>
          </thead>
          <tbody>
            {losses.map(({ stage, reason, advice, count, of }) => (
              <tr key={stage + reason}>
                <td>{STAGE_NAMES[stage]}</td>
                <td class="figure">{formatCount(count)}</td>
                <td class="figure">{of === undefined ? '' : formatShare(count / of)}</td>
                <td>{reason}</td>
                <td>{advice}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function Worst({ health, onChoose }: { health: HealthAnswer; onChoose(where: string): void }) {
  const { worst } = health.quality;
  if (worst.length === 0) return null;
  return (
    <section>
      <h2>Processes with the most incomplete or unnamed stacks</h2>
      <table class="plain-table">
        <thead>
          <tr>
            <th scope="col">Process</th>
            <th scope="col" class="figure">
              Samples
            </th>
            <th scope="col" class="figure">
              Incomplete
            </th>
            <th scope="col" class="figure">
              With unnamed frames
            </th>
          </tr>
        </thead>
        <tbody>
          {worst.map(({ process, samples, cut, unnamed }) => (
            <tr key={process}>
              <td>
                <button
                  type="button"
                  class="link"
                  onClick={() => onChoose(`process=${JSON.stringify(process)}`)}
                >
                  {process}
                </button>
              </td>
              <td class="figure">{formatCount(samples)}</td>
              <td class="figure">{formatShare(cut / samples)}</td>
              <td class="figure">{formatShare(unnamed / samples)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Agents({ health }: { health: HealthAnswer }) {
  const { agents, nowMs } = health.status;
  const ago = (ms: number | undefined): string =>
    ms === undefined ? 'never' : `${formatDuration(Math.max(0, nowMs - ms) / 1000)} ago`;
  return (
    <section>
      <h2>Agents</h2>
      {agents.length === 0 ? (
        <p>None has connected to {health.status.listen.grpc} yet.</p>
      ) : (
        <table class="plain-table">
          <thead>
            <tr>
              {['Host', 'Address', 'Version', 'Last contact', 'Samples', 'A second', 'CPU', 'Memory'].map(
                (name, i) => (
                  <th key={name} scope="col" class={i > 2 ? 'figure' : ''}>
                    {name}
                  </th>
                ),
              )}
            </tr>
          </thead>
          <tbody>
            {agents.map((agent) => (
              <tr key={agent.peer + agent.host}>
                <td>{agent.host || '–'}</td>
                <td>{agent.peer}</td>
                <td>{agent.version || '–'}</td>
                <td class="figure">{ago(agent.lastMs)}</td>
                <td class="figure">{formatCount(agent.samples)}</td>
                <td class="figure">{agent.samplesPerSecond.toFixed(1)}</td>
                <td class="figure">{cpuOf(agent)}</td>
                <td class="figure">{memoryOf(agent)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

/** Share of one CPU since the agent's start. */
function cpuOf({ counters, countersSpanMs }: AgentStatus): string {
  const micros = counters?.['cpu.userMicros'];
  if (micros === undefined || countersSpanMs === undefined || countersSpanMs <= 0) return '–';
  return formatShare((micros + (counters!['cpu.systemMicros'] ?? 0)) / 1000 / countersSpanMs);
}

function memoryOf({ counters }: AgentStatus): string {
  const bytes = counters?.['memory.rssBytes'];
  return bytes === undefined ? '–' : formatBytes(bytes);
}

function StoreFigures({ health }: { health: HealthAnswer }) {
  const { store, nowMs, requests } = health.status;
  const oldest =
    store.oldestMs === undefined ? '' : `, back to ${formatDuration((nowMs - store.oldestMs) / 1000)} ago`;
  return (
    <section>
      <h2>Store</h2>
      <p>
        {formatCount(store.samples)} samples in {formatBytes(store.bytes)} of {formatBytes(store.maxBytes)}
        {oldest}; kept for at most {formatDuration(store.maxAgeMs / 1000)}. {formatCount(requests.accepted)}{' '}
        requests taken, {formatCount(requests.refused)} refused.
      </p>
      {store.problem !== undefined && <p role="alert">The store has a problem: {store.problem}</p>}
    </section>
  );
}
