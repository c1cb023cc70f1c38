import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { redact } from '../support/redact.ts';
import { makeBundle } from './support-bundle.ts';

const directory = mkdtempSync(join(tmpdir(), 'everyframe-bundle-'));
afterAll(() => rmSync(directory, { recursive: true }));

it('is an archive that tar reads, with every part and no secret', async () => {
  const config = join(directory, 'config.yaml');
  const secrets = ['s3cret-of-header', 's3cret-of-file', 's3cret-of-url', 's3cret-of-env'];
  writeFileSync(join(directory, 'token'), secrets[1]!);
  writeFileSync(
    config,
    [
      `agent: {header: {authorization: Bearer ${secrets[0]}, x: "\${file:token}"}, samples-per-second: 97}`,
      `collector: {clickhouse: "http://u:${secrets[2]}@h:8123/d"}`,
    ].join('\n'),
  );
  const env = { EVERYFRAME_HEADERS: secrets[3], OTEL_EXPORTER_OTLP_HEADERS: `a=${secrets[3]}` };
  const archive = join(directory, 'bundle.tar.gz');
  writeFileSync(archive, await makeBundle(config, env, []));
  execFileSync('tar', ['xzf', archive, '-C', directory]);
  const root = join(directory, 'everyframe-support');
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).sort();
  expect(files).toEqual(
    expect.arrayContaining([
      ...['versions.txt', 'settings.yaml', 'environment-names.txt', 'doctor.jsonl', 'kernel.txt'],
      ...['counters/agent.txt', 'counters/collector.txt', 'logs/everyframe-agent.log'],
    ]),
  );
  const read = (name: string): string => readFileSync(join(root, name), 'utf8');
  expect(read('settings.yaml')).toMatch(/samples-per-second: 97 /);
  expect(read('kernel.txt')).toContain('kernel/perf_event_paranoid');
  expect(read('environment-names.txt')).toContain('OTEL_EXPORTER_OTLP_HEADERS');
  const all = execFileSync('tar', ['xzOf', archive], { encoding: 'utf8' });
  for (const secret of secrets) expect(all).not.toContain(secret);
});

it('has the settings and counters that the flags of what runs here name, as in a pod', async () => {
  const server = createServer((_, response) => response.end('everyframe_x 1\n')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const config = join(directory, 'mounted.yaml');
  writeFileSync(config, 'agent: {samples-per-second: 43}');
  const proc = join(directory, 'proc');
  mkdirSync(join(proc, '1'), { recursive: true });
  symlinkSync('/', join(proc, '1/root'));
  const address = `0.0.0.0:${(server.address() as AddressInfo).port}`;
  const words = [
    'node',
    '/x/dist/cli/main.js',
    'agent',
    `--config=${config}`,
    `--metrics-address=${address}`,
  ];
  writeFileSync(join(proc, '1/cmdline'), words.map((word) => `${word}\0`).join(''));
  const archive = join(directory, 'pod.tar.gz');
  writeFileSync(archive, await makeBundle(undefined, {}, [], proc));
  server.close();
  const part = (name: string): string =>
    execFileSync('tar', ['xzOf', archive, `everyframe-support/${name}`], { encoding: 'utf8' });
  expect(part('settings.yaml')).toMatch(/samples-per-second: 43 /);
  expect(part('counters/agent.txt')).toBe('everyframe_x 1\n');
  expect(part('counters/collector.txt')).toContain('not available');
  expect(part('commands.txt')).toBe(`1 ${words.slice(2).join(' ')}\n`);
  expect(part('versions.txt')).toContain('everyframe: ');
});

it('is made with settings that are wrong too, and says that', async () => {
  const config = join(directory, 'wrong.yaml');
  writeFileSync(config, 'agent: {nonsense: 1}');
  const archive = join(directory, 'wrong.tar.gz');
  writeFileSync(archive, await makeBundle(config, { OTEL_EXPORTER_OTLP_HEADERS: 'wrong' }, []));
  const text = execFileSync('tar', ['xzOf', archive, 'everyframe-support/settings.yaml'], {
    encoding: 'utf8',
  });
  expect(text).toContain('wrong.yaml:1: agent.nonsense is not a setting');
});

it.each([
  ['authorization: Bearer abc.def-123', 'authorization: Bearer (secret)'],
  ['{"authorization":"Basic dXNlcjpwdw=="}', '{"authorization":"Basic (secret)"}'],
  ['http://user:pw@host/x', 'http://user:(secret)@host/x'],
  ['password=hunter2 next', 'password=(secret) next'],
  ['"apiKey": "abcd"', '"apiKey": "(secret)"'],
  ['x hush-hush y', 'x (secret) y'],
  ['-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\nrest', '(secret)\nrest'],
  ['http://host:4317 reads 12 tokens', 'http://host:4317 reads 12 tokens'],
])('redacts %j', (text, clean) => expect(redact(text, ['hush-hush', 'y'])).toBe(clean));
