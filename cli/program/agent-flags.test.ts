import { Command } from 'commander';
import { expect, it } from 'vitest';
import { addAgentFlags, splitAgentFlags } from './agent-flags.ts';
import { AGENT_FLAG_NAMES, normaliseDashes } from './drop-in.ts';

const normalise = (...argv: string[]): string[] => normaliseDashes(argv, AGENT_FLAG_NAMES);

it('tells the settings from the flags that have no meaning here', () => {
  const command = addAgentFlags(new Command('agent')).exitOverride();
  const argv = normalise('-samples-per-second', '97', '-t', 'all', '-map-scale-factor', '2');
  command.parse(argv, { from: 'user' });
  const { settings, ignored } = splitAgentFlags(command.opts());
  expect(settings).toEqual({ samplesPerSecond: '97' });
  expect(ignored).toHaveLength(1);
  expect(ignored[0]).toMatch(/^no effect here: -t \(.*; --map-scale-factor \(/);
});
