import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { AGENT_FLAG_NAMES, addAgentFlags, normaliseDashes, splitAgentFlags } from './agent-flags.ts';

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
  });

  it("reads Go's way of setting switches", () => {
    expect(normalise('-disable-tls=true', '-send-idle-frames=false')).toEqual(['--disable-tls']);
    expect(normalise('-samples-per-second=97')).toEqual(['--samples-per-second=97']);
  });

  it('leaves the profiled command alone', () => {
    expect(normalise('record', '--', 'prog', '-disable-tls')).toEqual([
      'record',
      '--',
      'prog',
      '-disable-tls',
    ]);
  });
});

it('tells the settings from the flags that have no meaning here', () => {
  const command = addAgentFlags(new Command('agent')).exitOverride();
  const argv = normalise('-samples-per-second', '97', '-t', 'all', '-map-scale-factor', '2');
  command.parse(argv, { from: 'user' });
  const { settings, ignored } = splitAgentFlags(command.opts());
  expect(settings).toEqual({ samplesPerSecond: '97' });
  expect(ignored).toHaveLength(2);
});
