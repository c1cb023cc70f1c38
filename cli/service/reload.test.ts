import { describe, expect, it } from 'vitest';
import { destinationOptions } from '../../agent/reporter/options.ts';
import { type AgentOptions, parseAgentOptions } from '../../agent/settings/options.ts';
import { parseCollectorSettings } from '../../collector/settings/options.ts';
import { reloadAgent } from './reload-agent.ts';
import { reloadCollector } from './reload-collector.ts';

function logged() {
  const lines: string[] = [];
  const at = (level: string) => (text: unknown) => void lines.push(`${level}: ${text}`);
  return { lines, log: { info: at('info'), warn: at('warn'), error: at('error') } };
}

describe('reloadAgent', () => {
  const optionsOf = (flags: Record<string, unknown>): AgentOptions =>
    parseAgentOptions({ collectionAgent: 'a:1', ...flags });
  const reload = async (before: Record<string, unknown>, after: Record<string, unknown> | Error) => {
    const { lines, log } = logged();
    const changed: AgentOptions[] = [];
    const read = async () => {
      if (after instanceof Error) throw after;
      const options = optionsOf(after);
      return { options, transport: destinationOptions(options, {}), notes: [] };
    };
    const agent = { change: (options: AgentOptions) => void changed.push(options) };
    const now = await reloadAgent(optionsOf(before), read, agent, log as never);
    return { lines, changed, now };
  };

  it('applies what can change, and names what waits for a restart, each time', async () => {
    const after = { reporterInterval: '1s', header: ['a=b'], samplesPerSecond: '97' };
    const { lines, changed, now } = await reload({}, after);
    expect(changed).toHaveLength(1);
    expect(lines).toEqual([
      'info: settings were read again: --header, --reporter-interval changed',
      'warn: --samples-per-second: restart for what changed there',
    ]);
    expect(now).toMatchObject({ samplesPerSecond: 20, reporterInterval: 1000 });
  });

  it('leaves everything as it was where the new settings are wrong', async () => {
    const { lines, changed, now } = await reload({ maxCpu: '7' }, new Error('f:1: no'));
    expect(changed).toEqual([]);
    expect(now.maxCpu).toBe(7);
    expect(lines).toEqual(['error: settings stay as they were: f:1: no']);
  });
});

describe('reloadCollector', () => {
  const settings = (flags: Record<string, unknown>) => parseCollectorSettings(flags);

  it('renews the token, and names what waits for a restart', async () => {
    const { lines, log } = logged();
    const renewed: unknown[] = [];
    const collector = { renewAccess: (files: object) => renewed.push(files) > 0 };
    const after = settings({ tokenFile: 'new', maxMemory: '100MiB' });
    await reloadCollector(
      settings({ tokenFile: 'old' }),
      async () => ({ settings: after, notes: [] }),
      collector,
      log as never,
    );
    expect(renewed).toEqual([{ tlsCert: undefined, tlsKey: undefined, tokenFile: 'new', tenant: [] }]);
    expect(lines).toEqual([
      'info: settings were read again: --token-file hold for new connections',
      'warn: --max-memory: restart for what changed there',
    ]);
  });
});
