import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { parseAgentOptions } from '../../agent/settings/options.ts';
import { parseCollectorSettings } from '../../collector/settings/options.ts';
import { checkFile, printSettings, settingsJson } from '../commands/config.ts';
import { parseConfig } from './config-file.ts';

const directory = mkdtempSync(join(tmpdir(), 'everyframe-config-'));
afterAll(() => rmSync(directory, { recursive: true }));

const PATH = join(directory, 'config.yaml');
const parse = async (text: string, env: Record<string, string> = {}) => parseConfig(text, PATH, env);
const check = async (): Promise<string> => checkFile(PATH, {});
const problemsOf = (text: string): Promise<string[]> =>
  parse(text).then(
    () => [],
    (error: Error) => error.message.split('\n').map((line) => line.replace(`${PATH}:`, '')),
  );

const GOOD = `
# a comment
agent:
  collection-agent: [a:1, "b:2"]
  disable-tls: true
  samples_per_second: 97
  header:
    authorization: Bearer \${TOKEN}
  reporter-interval: 1m30s
  headers-file:
collector:
  data: /var/lib/everyframe
  max-memory: \${env:ROOM:-512MiB}
  allow-anyone: false
`;

it('has every setting by its flag, with dashes or underscores, in the form that flags have', async () => {
  const { agent, collector, notes } = await parse(GOOD, { TOKEN: 'x' });
  expect(parseAgentOptions({}, { file: agent })).toMatchObject({
    collectionAgent: ['a:1', 'b:2'],
    disableTls: true,
    samplesPerSecond: 97,
    header: ['authorization=Bearer x'],
    reporterInterval: 90_000,
  });
  expect(parseCollectorSettings({}, { file: collector })).toMatchObject({
    data: '/var/lib/everyframe',
    maxMemory: 512 * 2 ** 20,
    allowAnyone: false,
  });
  expect(notes).toEqual([]);
});

it('is weaker than the environment, which is weaker than flags', async () => {
  const { agent, collector } = await parse('agent: {samples-per-second: 1}\ncollector: {max-memory: 100MiB}');
  const env = { EVERYFRAME_SAMPLES_PER_SECOND: '2', EVERYFRAME_COLLECTOR_MAX_MEMORY: '200MiB' };
  expect(parseAgentOptions({}, { file: agent }).samplesPerSecond).toBe(1);
  expect(parseAgentOptions({}, { file: agent, env }).samplesPerSecond).toBe(2);
  expect(parseAgentOptions({ samplesPerSecond: '3' }, { file: agent, env }).samplesPerSecond).toBe(3);
  const memory = (...args: Parameters<typeof parseCollectorSettings>): number =>
    parseCollectorSettings(...args).maxMemory / 2 ** 20;
  expect(memory({}, { file: collector })).toBe(100);
  expect(memory({}, { file: collector, env })).toBe(200);
  expect(memory({ maxMemory: '300MiB' }, { file: collector, env })).toBe(300);
});

describe('what is wrong is told with its line', () => {
  it.each([
    [
      'agent:\n  sample-per-second: 9',
      '2: agent.sample-per-second is not a setting: is samples-per-second meant?',
    ],
    ['agnt:\n  verbose: true', '1: agnt is not a setting: is agent meant?'],
    ['agent:\n  verbose: 1', '2: agent.verbose is "1": give true or false'],
    ['agent:\n  tls-ca: [a, b]', '2: agent.tls-ca has several values: give one'],
    ['agent: yes', '1: agent is not a list of settings: indent them below "agent:"'],
    ['collector:\n  child: true', expect.stringMatching(/^2: collector.child is not a setting/)],
    ['agent:\n  a: [', expect.stringMatching(/^2: this is not YAML/)],
    ['agent:\n  verbose: true\n  verbose: true', expect.stringMatching(/^3: this is not YAML/)],
    ['agent:\n  tls-ca: "a\\0b"', '2: a value has a NUL character: no setting has one'],
    ['- a', expect.stringMatching(/^1: the file is not a list of settings/)],
  ])('%j', async (text, problem) => expect(await problemsOf(text)).toEqual([problem]));

  it('all of it at once, also values', async () => {
    writeFileSync(
      PATH,
      'agent:\n  samples-per-second: fast\n  collection-agent: here\n\ncollector:\n  max-age: 1s\n',
    );
    const error: Error = await check().then(
      () => new Error('ok'),
      (reason) => reason,
    );
    expect(error.message.split('\n')).toEqual([
      `${PATH}:2: --samples-per-second or -F is "fast": give a whole number from 1 to 10000`,
      `${PATH}:6: --max-age is "1s": give a length of time such as 90m, 6h or 7d`,
    ]);
    const problems = (text: string): Promise<string> => {
      writeFileSync(PATH, text);
      return check().then(
        () => '',
        ({ message }: Error) => message,
      );
    };
    expect(await problems('agent:\n  tls-ca: /nonexist\n')).toMatch(/\/nonexist/);
    expect(await problems('agent:\n  tls-cert: /x.pem\n')).toMatch(/--tls-cert needs --tls-key/);
    expect(await problems('collector:\n  tls-cert: /x.pem\n')).toMatch(/--tls-cert needs --tls-key/);
    expect(await problems('collector:\n  token-file: /nonexist\n')).toMatch(/\/nonexist/);
    expect(await problems('collector:\n  page-listen: 0.0.0.0:11080\n')).toMatch(/give --token-file/);
    const both = await problems('agent:\n  nosuch: 1\n  samples-per-second: fast\n');
    expect(both).toMatch(/nosuch is not a setting.*\n.*"fast"/);
    writeFileSync(PATH, 'agent:\n  collection-agent: here\n');
    await expect(check()).rejects.toThrow(`${PATH}:2 is "here": give host:port`);
    writeFileSync(PATH, 'agent:\n  collection-agent: here:1\n');
    expect(await check()).toBe(`${PATH}: ok\n`);
  });

  it('whatever the bytes are', async () => {
    for (const text of [
      '\0',
      '&a [*a]',
      'a: &x {b: *x}',
      '? [1]\n: 2',
      `${'['.repeat(5000)}`,
      '%YAML 9\n---\n',
      '"',
    ])
      await expect(problemsOf(text)).resolves.toBeInstanceOf(Array);
  });
});

it('whatever the file says, it is settings or mistakes with lines', () => {
  const piece = fc.constantFrom(
    'agent:',
    'collector:',
    '\n',
    '  ',
    '- ',
    '{',
    '}',
    '[',
    ']',
    '&a',
    '*a',
    '!!x',
    '"',
    ': ',
    '${',
    '}',
    'verbose',
    'header',
    '|',
    '<<',
    '?',
    '---',
    '\t',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), (parts) => {
      try {
        const { agent } = parseConfig(parts.join(''), PATH, {});
        expect(agent.values).toBeTypeOf('object');
      } catch (error) {
        expect((error as Error).name).toBe('BadSetting');
        for (const line of (error as Error).message.split('\n')) expect(line).toMatch(/config\.yaml:\d+: /);
      }
    }),
    { numRuns: 500 },
  );
});

it('understands settings of the OpenTelemetry profiler at the top, and as the receiver of a Collector', async () => {
  const flat = await parse('samples_per_second: 19\nmap_scale_factor: 1\n');
  expect(flat.agent.values).toEqual({ samplesPerSecond: '19' });
  expect(flat.notes[0]).toContain('map-scale-factor in line 2 has no effect');
  const whole = await parse(`
receivers:
  profiling:
    samples_per_second: 19
    interpreters: {python: {disabled: true}}
exporters:
  otlp_grpc/backend:
    endpoint: backend:4317
    headers: {x_tenant: a}
    tls: {insecure: true}
processors: {batch: }
service: {pipelines: {}}
`);
  expect(whole.agent.values).toEqual({
    samplesPerSecond: '19',
    protocol: 'grpc',
    collectionAgent: ['backend:4317'],
    header: ['x-tenant=a'],
    disableTls: true,
  });
  expect(whole.notes[0]).toMatch(/receivers\.profiling\.interpreters \(line 5\), processors \(line 11\)/);
});

it('prints a file that reads as the same settings, with where they come from, and no secrets', async () => {
  const file = await parse(GOOD, { TOKEN: 's3cret' });
  const text = printSettings(file, { EVERYFRAME_MAX_CPU: '25' });
  expect(text).not.toContain('s3cret');
  expect(text).toMatch(/^ {2}samples-per-second: 97 +# .*config\.yaml:6$/m);
  expect(text).toMatch(/^ {2}max-cpu: 25 +# EVERYFRAME_MAX_CPU$/m);
  expect(text).toMatch(/^ {2}max-user-frames: 1023 +# default$/m);
  const { agent } = JSON.parse(settingsJson(file, { EVERYFRAME_MAX_CPU: '25' }));
  expect(agent['max-cpu']).toEqual({ value: '25', origin: 'EVERYFRAME_MAX_CPU' });
  expect(JSON.stringify(agent)).not.toContain('s3cret');
  const again = await parse(text);
  expect(parseAgentOptions({}, { file: again.agent })).toMatchObject({ samplesPerSecond: 97, maxCpu: 25 });
  expect(again.collector.values['maxMemory']).toBe('512MiB');
});
