/** The agent where another one was: its command line, its environment, OpenTelemetry's variables. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import { EVERYFRAME, type RunningCollector, startCollectorProcess } from './support/collector.ts';
import { missingRights } from './support/fixtures.ts';

const collectors: RunningCollector[] = [];
const agents: ChildProcess[] = [];
afterEach(async () => {
  for (const agent of agents.splice(0)) agent.kill('SIGKILL');
  for (const collector of collectors.splice(0)) await collector.end('SIGKILL');
});

async function collect(): Promise<RunningCollector> {
  const collector = await startCollectorProcess();
  collectors.push(collector);
  return collector;
}

function start(args: string[], env: Record<string, string> = {}) {
  const child = spawn(EVERYFRAME, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  agents.push(child);
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const stop = async (): Promise<unknown> => {
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    return (await ended)[0];
  };
  const ended = once(child, 'exit').then(([code]) => code as number | null);
  return { stop, ended, log: () => log };
}

const samplesIn = async (collector: RunningCollector): Promise<number> => {
  const { values } = await collector.query<{ values: { samples: number }[] }>(
    `/api/v1/values?label=cpu&range=all&limit=100&question=${performance.now()}`,
  );
  return values.reduce((sum, { samples }) => sum + samples, 0);
};

const untilSamples = (collector: RunningCollector) =>
  expect.poll(() => samplesIn(collector), { timeout: 20_000, interval: 200 }).toBeGreaterThan(0);

describe.skipIf(missingRights)('everyframe where the OpenTelemetry profiler was', () => {
  it('takes its command line, to two receivers, and names once what has no meaning', async () => {
    const [one, other] = [await collect(), await collect()];
    const agent = start([
      ...[`-collection-agent=${one.grpc}`, '-collection-agent', `http://${other.grpc}`, '-disable-tls'],
      ...['-samples-per-second=97', '-reporter-interval=1s', '-t', 'all', '-no-kernel-version-check'],
      ...['-bpf-log-level', '1', '-map-scale-factor=2', '-v=false'],
    ]);
    await untilSamples(one);
    await untilSamples(other);
    expect(await agent.stop()).toBe(0);
    expect(agent.log().match(/no effect here/g)).toHaveLength(1);
    expect(agent.log()).toContain('97 times a second');
  }, 60_000);

  it("takes its variables and OpenTelemetry's, over HTTP", async () => {
    const { http, query } = await collect();
    const agent = start(['agent'], {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://${new URL(http).host}`,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=trial',
      OTEL_PROFILING_AGENT_REPORTER_INTERVAL: '1s',
    });
    await untilSamples(collectors[0]!);
    const labels = await query<object>('/api/v1/labels?range=all');
    expect(JSON.stringify(labels)).toContain('deployment.environment.name');
    expect(await agent.stop()).toBe(0);
  }, 60_000);
});

describe.skipIf(missingRights)('everyframe agent', () => {
  const flags = ['--reporter-interval', '1s', '--disable-tls', '--samples-per-second', '97'];
  const end = async (...args: string[]) => {
    const agent = start(['agent', ...flags, ...args]);
    return { code: await agent.ended, log: agent.log() };
  };

  it('samples once, and its exit code says whether that arrived', async () => {
    const collector = await collect();
    expect((await end('--once', '--collection-agent', collector.grpc)).code).toBe(0);
    expect(await samplesIn(collector)).toBeGreaterThan(0);
    expect((await end('--once', '--collection-agent', '127.0.0.1:1')).code).toBe(1);
  }, 60_000);

  it('says what it would push, and pushes nothing', async () => {
    const collector = await collect();
    const { code, log } = await end('--once', '--dry-run', '--collection-agent', collector.grpc);
    expect(log).toMatch(/dry run: this would be pushed: \d+ samples of \d+ processes/);
    expect(code).toBe(0);
    expect(await samplesIn(collector)).toBe(0);
    const agent = start(['agent', ...flags, '--dry-run']);
    await expect.poll(agent.log, { timeout: 20_000 }).toMatch(/dry run: this would be pushed/);
    expect(await agent.stop()).toBe(0);
    expect(agent.log()).toMatch(/stopped: \d+ samples would have been sent/);
    expect(agent.log()).not.toContain('sending the rest');
  }, 60_000);
});

it('prints its version and its copyright as Go programs do', () => {
  const run = (flag: string): string => execFileSync(EVERYFRAME, [flag], { encoding: 'utf8' });
  expect(run('-version')).toBe(run('--version'));
  expect(run('-copyright')).toContain('Apache License');
});
