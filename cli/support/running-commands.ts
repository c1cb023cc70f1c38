/** The services that run here, in this container or on this host: what their flags say is in no file of settings. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readSmallFile } from '../../agent/processes/proc-files.ts';
import { FILE_SETTINGS } from '../config/config-file.ts';

export interface RunningCommand {
  pid: string;
  command: 'agent' | 'collector';
  flags: string[];
}

const MAIN = /(?:^|\/)cli\/(?:main\.js|sampling\.cjs)$/;

/** Those whose root directory is this process's own: with the node's PIDs an agent sees other pods' too. */
export function runningCommands(proc = '/proc'): RunningCommand[] {
  const here = statSync('/');
  return readdirSync(proc).flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return [];
    const words = (readSmallFile(join(proc, pid, 'cmdline')) ?? '').split('\0').slice(0, -1);
    const at = words.findIndex((word) => MAIN.test(word));
    const command = words[at + 1];
    if (at < 0 || (command !== 'agent' && command !== 'collector')) return [];
    return isRoot(join(proc, pid, 'root'), here) ? [{ pid, command, flags: words.slice(at + 2) }] : [];
  });
}

function isRoot(path: string, { dev, ino }: { dev: number; ino: number }): boolean {
  try {
    const stats = statSync(path);
    return stats.dev === dev && stats.ino === ino;
  } catch {
    return false; // gone, or somebody else's
  }
}

/** Of the first command that has the flag, given as `--flag=value` or `--flag value`. */
export function flagOf(commands: readonly RunningCommand[], flag: string): string | undefined {
  for (const { flags } of commands) {
    const at = flags.findIndex((word) => word === `--${flag}` || word.startsWith(`--${flag}=`));
    if (at >= 0) return flags[at]!.includes('=') ? flags[at]!.slice(flag.length + 3) : flags[at + 1];
  }
  return undefined;
}

/** A line each, without the values that nobody else may see. */
export const describeCommands = (commands: readonly RunningCommand[]): string =>
  commands
    .map(({ pid, command, flags }) => `${pid} ${[command, ...hideSecrets(command, flags)].join(' ')}\n`)
    .join('') || 'no agent or collector runs here\n';

function hideSecrets(command: RunningCommand['command'], flags: readonly string[]): string[] {
  const secret = FILE_SETTINGS[command].filter(({ isSecret }) => isSecret).map(({ flag }) => `--${flag}`);
  return flags.map((word, i) => {
    if (secret.includes(flags[i - 1] ?? '')) return '(secret)';
    const name = word.slice(0, word.indexOf('='));
    return secret.includes(name) ? `${name}=(secret)` : word;
  });
}
