import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { parseAgentOptions } from '../../agent/settings/options.ts';
import { addAgentFlags, splitAgentFlags } from './agent-flags.ts';
import { AGENT_FLAG_NAMES, asDropIn, normaliseDashes, tellIgnored } from './drop-in.ts';

const normalise = (...argv: string[]): string[] => normaliseDashes(argv, AGENT_FLAG_NAMES);

describe('normaliseDashes', () => {
  it('doubles the dash of known flags only', () => {
    expect(normalise('agent', '-collection-agent', 'h:1', '-disable-tls')).toEqual([
      'agent',
      '--collection-agent',
      'h:1',
      '--disable-tls',
    ]);
    expect(normalise('-p', '12', '-unknown', '-v')).toEqual(['-p', '12', '-unknown', '-v']);
    expect(normalise('-version')).toEqual(['--version']);
  });

  it("reads Go's way of setting switches", () => {
    expect(normalise('-disable-tls=true', '-send-idle-frames=false')).toEqual(['--disable-tls']);
    expect(normalise('-samples-per-second=97')).toEqual(['--samples-per-second=97']);
    expect(normalise('-v=false', '-v=1', '--v', '-t=all')).toEqual([
      '--verbose',
      '--verbose',
      '--tracers=all',
    ]);
  });

  it('leaves the profiled command alone', () => {
    const line = ['record', '--', 'prog', '-disable-tls'];
    expect(normalise(...line)).toEqual(line);
  });
});

it.each([
  [['-collection-agent=h:1', '-disable-tls'], {}, 'agent'],
  [['-disable-tls', '--collection-agent', 'h:1'], {}, 'agent'],
  [[], { OTEL_PROFILING_AGENT_COLLECTION_AGENT: 'h:1' }, 'agent'],
  [['-samples-per-second=97'], {}, undefined],
  [['--version'], { OTEL_PROFILING_AGENT_COLLECTION_AGENT: 'h:1' }, undefined],
  [['record', '--collection-agent', 'h:1'], {}, undefined],
  [['--', 'x', '--collection-agent=h:1'], {}, undefined],
])('%j with %j is the command %s', (argv, env, command) => {
  const normal = normalise(...argv);
  expect(asDropIn(normal, env)).toEqual(command === undefined ? normal : [command, ...normal]);
});

/** Every flag of the OpenTelemetry profiler's command line (opentelemetry-ebpf-profiler, cli_flags.go, August 2026). */
const THEIRS = [
  '-bpf-log-level=1 -bpffs-root=/sys/fs/bpf -clock-sync-interval=3m0s -collection-agent=c:4317 -disable-tls',
  '-env-vars=A,B -filter-min-process-age=1s -frame-cache-size=16384 -map-scale-factor=1 -monitor-interval=5s',
  '-no-kernel-version-check -obi-process-ctx -off-cpu-threshold=0 -pin-cpu-ids=0-3 -pprof=localhost:6060',
  '-probabilistic-interval=1m0s -probabilistic-threshold=100 -probe-link=kprobe:a -probe-link=kprobe:b',
  '-reporter-interval=5.0s -reporter-jitter=0.2 -samples-per-second=20 -send-error-frames -send-idle-frames',
  '-tracers=all -t python,perl -v -verbose=false',
].flatMap((line) => line.split(' '));

it('takes every flag of theirs, and names those without a meaning in one line', () => {
  const command = addAgentFlags(new Command('agent')).exitOverride();
  command.parse(normalise(...THEIRS), { from: 'user' });
  const { settings, ignored } = splitAgentFlags(command.opts());
  const options = parseAgentOptions(settings);
  expect(options).toMatchObject({ collectionAgent: ['c:4317'], disableTls: true, verbose: true });
  expect(ignored).toHaveLength(1);
  for (const flag of ['--env-vars', '--no-kernel-version-check', '--pprof', '--probe-link', '-t'])
    expect(ignored[0]).toContain(`${flag} (`);
});

it('takes their probes in user code as events beside CPU time', () => {
  const command = addAgentFlags(new Command('agent')).exitOverride();
  const probes = ['-probe-link=uprobe:libc:malloc', '-probe-link', 'URETPROBE:/bin/app:main.work'];
  command.parse(normalise('-collection-agent=c:4317', ...probes), { from: 'user' });
  const { settings, ignored } = splitAgentFlags(command.opts());
  expect(settings['event']).toEqual(['cpu-clock', 'uprobe:libc:malloc', 'uretprobe:/bin/app:main.work']);
  expect(ignored).toEqual([]);
});

it('names their variables without a meaning', () => {
  expect(
    tellIgnored([], { OTEL_PROFILING_AGENT_MAP_SCALE_FACTOR: '2', OTEL_PROFILING_AGENT_TRACERS: '' }),
  ).toEqual([expect.stringMatching(/^no effect here: OTEL_PROFILING_AGENT_MAP_SCALE_FACTOR \(/)]);
  expect(tellIgnored([], {})).toEqual([]);
});
