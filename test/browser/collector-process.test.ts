import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';

const EVERYFRAME = fileURLToPath(new URL('../../bin/everyframe', import.meta.url));
const FREE_PORTS = [
  '--grpc-listen',
  '127.0.0.1:0',
  '--http-listen',
  '127.0.0.1:0',
  '--page-listen',
  '127.0.0.1:0',
];
const running: ChildProcess[] = [];

/** The built product, as a user starts it; nothing is left running after a test. */
function start(...flags: string[]) {
  const child = spawn(EVERYFRAME, ['collector', ...flags], { stdio: ['ignore', 'pipe', 'pipe'] });
  running.push(child);
  const output = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output.out += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output.err += text;
  });
  const exited = once(child, 'exit').then(([code]) => code as number | null);
  const url = () => expect.poll(() => pageOf(output), { timeout: 20_000 });
  return { child, output, exited, url };
}

afterEach(async () => {
  for (const child of running.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
});

/** Undefined until it is told. */
const pageOf = ({ err }: { err: string }): string | undefined => /"page":"(http:[^"]+)/.exec(err)?.[1];

describe('everyframe collector', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)(
    'prints where the page is, serves it, and ends well on %s',
    async (signal) => {
      const { child, output, exited, url } = start(...FREE_PORTS);
      await url().toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/);
      const page = await fetch(pageOf(output)!);
      expect(await page.text()).toContain('<title>everyframe</title>');
      child.kill(signal);
      expect(await exited).toBe(0);
      // a service's log has nothing but JSON
      expect(output.out).toBe('');
      expect(
        output.err
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line)),
      ).toMatchObject([
        { level: 'info', name: 'collector', grpc: expect.stringMatching(/^127\.0\.0\.1:\d+$/) },
      ]);
    },
  );

  it('says which port is taken and exits with 1', async () => {
    const first = start(...FREE_PORTS);
    await first.url().toBeDefined();
    const { host, port } = new URL(pageOf(first.output)!);
    const second = start(...FREE_PORTS.slice(0, 4), '--page-listen', host);
    expect(await second.exited).toBe(1);
    expect(second.output.err).toContain(`port ${port} for the page is taken by another program`);
    expect(second.output.err).toContain('--page-listen');
  });

  if (process.getuid?.() !== 0) console.log('skipped: another user (needs root)');
  it.runIf(process.getuid?.() === 0)('gives up root when told to', async () => {
    const { child, output, url } = start(...FREE_PORTS, '--user', 'nobody');
    await url().toBeDefined();
    const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
    expect(status).toMatch(/^Uid:\s+(?!0\s)(\d+)\s+\1\s+\1\s+\1$/m);
    expect(status).toMatch(/^Groups:\s*$/m);
    expect(status).toMatch(/^CapEff:\s+0+$/m);
    expect((await fetch(new URL('api/v1/status', pageOf(output)))).status).toBe(200);
    const bad = start(...FREE_PORTS, '--user', 'no-such-user');
    expect(await bad.exited).toBe(1);
    expect(bad.output.err).toContain('--user no-such-user: /etc/passwd has no such user');
  });
});
