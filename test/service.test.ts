/** Agent and collector as services: told by signals, watched over HTTP and by systemd's protocol. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { EVERYFRAME, type RunningCollector, startCollectorProcess } from './support/collector.ts';
import { hasTool, missingRights } from './support/fixtures.ts';

const directory = mkdtempSync(join(tmpdir(), 'everyframe-service-'));
const children: ChildProcess[] = [];
const collectors: RunningCollector[] = [];
afterAll(() => rmSync(directory, { recursive: true }));
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  for (const collector of collectors.splice(0)) await collector.end('SIGKILL');
});

function start(command: string, args: string[], env: Record<string, string> = {}) {
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  children.push(child);
  const output = { text: '' };
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output.text += text;
    });
  return { child, output };
}

/** What systemd does with its socket. */
const LISTEN = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print('bound', flush=True)
while True:
    print(s.recv(4096).decode().replace(chr(10), ' '), flush=True)
`;

async function collect(...flags: string[]): Promise<RunningCollector> {
  const collector = await startCollectorProcess(...flags);
  collectors.push(collector);
  return collector;
}

const DEPLOY = join(import.meta.dirname, '../deploy');

const metricsOfCollector = async (): Promise<string> => {
  const { errors } = await collect('--metrics-address', '127.0.0.1:0', '--forward-to', '127.0.0.1:1');
  const [, url = ''] = /(http:\/\/127\.0\.0\.1:\d+)/.exec(errors()) ?? [];
  return (await fetch(`${url}/metrics`)).text();
};

const receivedBy = async ({ query }: RunningCollector): Promise<number> =>
  (await query<{ samples: { received: number } }>(`/api/v1/status?${performance.now()}`)).samples.received;

it('a wrong file of settings ends a service for good, as its unit says', async () => {
  const config = join(directory, 'wrong.yaml');
  writeFileSync(config, 'collector: {max-age: nonsense}\nagent: {samples-per-second: many}\n');
  for (const unit of ['agent', 'collector']) {
    const text = readFileSync(join(DEPLOY, `systemd/everyframe-${unit}.service`), 'utf8');
    const status = Number(/^RestartPreventExitStatus=(\d+)$/m.exec(text)?.[1]);
    const socket = { NOTIFY_SOCKET: join(directory, 'nobody') };
    const service = start(EVERYFRAME, [unit, '--config', config], socket);
    expect(await once(service.child, 'exit')).toEqual([status, null]);
    expect(service.output.text).toMatch(/wrong\.yaml.*(nonsense|many)/);
    const typed = start(EVERYFRAME, [unit, '--config', config], { NOTIFY_SOCKET: '' });
    expect(await once(typed.child, 'exit')).toEqual([1, null]);
  }
});

it.each([
  ['agent', '--no-such-flag', /unknown option '--no-such-flag' \(--help lists the flags\)/],
  ['agent', '-samples-per-second=many', /samples-per-second .*is "many"/],
  ['agent', '--reporter-interval', /argument missing/],
  ['agent', '', /--collection-agent HOST:PORT is needed/],
  ['agent', '--collection-agent 127.0.0.1:1 --off-cpu --event lock', /--event lock and --off-cpu were given/],
  ['collector', '--no-such-flag', /unknown option/],
  ['collector', '--page-listen nowhere', /--page-listen: "nowhere" is not an address/],
  ['collector', '--forward-to a:b:c', /--forward-to/],
  ['collector', 'stray', /collector has no use for "stray"/],
])(
  'a wrong flag ends a service for good, with a line as all its lines are: %s %s',
  async (unit, flags, message) => {
    const args = [unit, ...flags.split(' ').filter(Boolean)];
    const socket = { NOTIFY_SOCKET: join(directory, 'nobody') };
    const service = start(EVERYFRAME, args, socket);
    expect(await once(service.child, 'close')).toEqual([78, null]);
    const lines = service.output.text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.at(-1)).toMatchObject({ level: 'fatal', name: unit, msg: expect.stringMatching(message) });
    const typed = start(EVERYFRAME, args, { NOTIFY_SOCKET: '' });
    expect(await once(typed.child, 'exit')).toEqual([1, null]);
  },
);

describe.skipIf(missingRights || !hasTool('python3'))('the agent as a service', () => {
  it('is ready, watched, reloaded and stopped, and loses no sample meanwhile', async () => {
    const [one, other] = [await collect(), await collect()];
    const socket = join(directory, 'notify');
    const systemd = start('python3', ['-c', LISTEN, socket]);
    await expect.poll(() => systemd.output.text).toContain('bound');
    const config = join(directory, 'config.yaml');
    const write = (text: string): void => {
      writeFileSync(`${config}.new`, `agent:\n  disable-tls: true\n  reporter-interval: 1s\n${text}`);
      renameSync(`${config}.new`, config);
    };
    write(`  collection-agent: ${one.grpc}\n  metrics-address: 127.0.0.1:0\n`);
    const agent = start(EVERYFRAME, ['agent', '--config', config, '-v'], {
      NOTIFY_SOCKET: socket,
      WATCHDOG_USEC: '1000000',
    });
    await expect.poll(() => systemd.output.text, { timeout: 20_000 }).toMatch(/READY=1 STATUS=sampling/);
    await expect.poll(() => systemd.output.text).toContain('WATCHDOG=1');
    const [, url = ''] = /(http:\/\/127\.0\.0\.1:\d+)/.exec(agent.output.text.replaceAll(one.grpc, '')) ?? [];
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    await expect.poll(() => receivedBy(one), { timeout: 20_000 }).toBeGreaterThan(0);
    const metricsOfAgent = async (): Promise<string> => (await fetch(`${url}/metrics`)).text();
    await expect.poll(metricsOfAgent).toMatch(/^everyframe_agent_reporter_samples_sent_total [1-9]/m);
    const metrics = await metricsOfAgent();
    const told = (await metricsOfCollector()) + metrics;
    for (const file of ['grafana/everyframe.json', 'prometheus/everyframe.rules.yaml'])
      for (const [name] of readFileSync(join(DEPLOY, file), 'utf8').matchAll(
        /\b(everyframe_\w+|process_\w+)\b/g,
      ))
        expect(told, `${file} has ${name}`).toMatch(new RegExp(`^# TYPE ${name} `, 'm'));
    for (const line of metrics.trim().split('\n'))
      expect(line).toMatch(/^(# (HELP|TYPE) \w+ .*|\w+(\{.*\})? [-+\d.e]+)$/);

    write('  colection-agent: x\n');
    agent.child.kill('SIGHUP');
    await expect
      .poll(() => agent.output.text)
      .toContain(`${config}:4: agent.colection-agent is not a setting`);

    write(`  collection-agent: ${other.grpc}\n  metrics-address: 127.0.0.1:0\n  samples-per-second: 21\n`);
    agent.child.kill('SIGHUP');
    await expect.poll(() => agent.output.text).toContain('--collection-agent changed');
    await expect.poll(() => agent.output.text).toContain('--samples-per-second: restart');
    await expect.poll(() => receivedBy(other), { timeout: 20_000 }).toBeGreaterThan(0);
    const ended = once(agent.child, 'exit');
    agent.child.kill('SIGTERM');
    expect((await ended)[0]).toBe(0);
    expect(systemd.output.text).toMatch(/RELOADING=1 MONOTONIC_USEC=\d+.*READY=1.*STOPPING=1/s);
    const sent = Number(/stopped: (\d+) samples sent/.exec(agent.output.text)?.[1]);
    expect((await receivedBy(one)) + (await receivedBy(other))).toBe(sent);
  }, 60_000);
});

describe('the collector as a service', () => {
  it('takes another token without a restart, and informs whoever watches it without one', async () => {
    const file = join(directory, 'token');
    writeFileSync(file, 'the-first-token-of-all\n');
    const collector = await collect('--token-file', file, '--metrics-address', '127.0.0.1:0');
    const statusWith = async (token: string): Promise<number> => {
      const headers = { authorization: `Bearer ${token}` };
      return (await fetch(new URL('/api/v1/status', collector.page), { headers })).status;
    };
    for (const path of ['/healthz', '/readyz'])
      expect((await fetch(new URL(path, collector.page))).status).toBe(200);
    const [, metricsUrl = ''] = /(http:\/\/127\.0\.0\.1:\d+)/.exec(collector.errors()) ?? [];
    expect(await (await fetch(`${metricsUrl}/metrics`)).text()).toMatch(
      /^everyframe_collector_store_bytes \d/m,
    );
    expect(await statusWith('the-first-token-of-all')).toBe(200);
    writeFileSync(file, 'the-second-token-of-all\n');
    collector.process.kill('SIGHUP');
    await expect.poll(() => statusWith('the-second-token-of-all')).toBe(200);
    expect(await statusWith('the-first-token-of-all')).toBe(401);
    expect(collector.errors()).toContain('--token-file hold for new connections');
  }, 30_000);
});
