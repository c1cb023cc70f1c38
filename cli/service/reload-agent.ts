/** Settings that are read again while the agent samples. */
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { type AgentOptions, LIVE_SETTINGS } from '../../agent/settings/options.ts';
import { flagOf } from '../../common/base/setting.ts';
import type { RunningAgent, Transport } from '../start/run-agent.ts';

/** What flags, environment and file say at a time. */
export interface ReadSettings {
  options: AgentOptions;
  transport: Transport | 'dry run';
  notes: readonly string[];
}

/** What holds from now on. Where the new settings are wrong the old ones stay. */
export async function reloadAgent(
  current: AgentOptions,
  read: () => Promise<ReadSettings>,
  agent: Pick<RunningAgent, 'change'>,
  log: Pick<Logger, 'info' | 'warn' | 'error'>,
): Promise<AgentOptions> {
  try {
    const { options, transport, notes } = await read();
    for (const note of notes) log.warn(note);
    const { live, later } = changesOf(current, options);
    agent.change(options, transport);
    log.info(
      `settings were read again: ${live.length > 0 ? `${live.join(', ')} changed` : 'none changed that can while it runs'}`,
    );
    if (later.length > 0) log.warn(`${later.join(', ')}: restart for what changed there`);
    // a change that waits for the restart is told each time
    return { ...options, ...Object.fromEntries(later.map((flag) => pairOf(current, flag))) };
  } catch (error) {
    log.error(`settings stay as they were: ${(error as Error).message}`);
    return current;
  }
}

const NO_SETTINGS = new Set(['origins', 'notes']);

/** Flags of settings that differ. */
export function changesOf(before: AgentOptions, after: AgentOptions): { live: string[]; later: string[] } {
  const names = Object.keys({ ...before, ...after }).filter(
    (name) =>
      !NO_SETTINGS.has(name) &&
      !isDeepStrictEqual(before[name as keyof AgentOptions], after[name as keyof AgentOptions]),
  );
  return {
    live: names.filter((name) => LIVE_SETTINGS.has(name)).map(flagOf),
    later: names.filter((name) => !LIVE_SETTINGS.has(name)).map(flagOf),
  };
}

function pairOf(options: AgentOptions, flag: string): [string, unknown] {
  const name = Object.keys(options).find((each) => flagOf(each) === flag) ?? flag;
  return [name, options[name as keyof AgentOptions]];
}
