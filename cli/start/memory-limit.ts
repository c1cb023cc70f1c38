/** The memory limit of the cgroup that this process is in, and what of it agent and collector may take. */
import { join } from 'node:path';
import type { Logger } from 'pino';
import { type CgroupMount, parseCgroupMounts } from '../../agent/processes/cgroup-mounts.ts';
import { readSmallFile } from '../../agent/processes/proc-files.ts';

export interface MemoryLimit {
  bytes: number;
  /** The file that says so: the smallest limit from the group up to the root of what is mounted. */
  file: string;
}

/** Version 2, of which `high` only slows down, and version 1. */
const LIMIT_FILES = { cgroup2: ['memory.max', 'memory.high'], cgroup: ['memory.limit_in_bytes'] };
const MAX_DEPTH = 128;
/** Version 1 writes the largest number of pages for "none". */
const NO_LIMIT = 2 ** 60;

const MIB = 2 ** 20;
/** Of the limit, for budgets: they are looked at once a second, and V8's garbage comes on top. */
const AGENT_SHARE = 0.8;
/** With a collector in the same group. */
const AGENT_SHARE_OF_BOTH = 0.4;
const COLLECTOR_SHARE_OF_BOTH = 0.5;
/** What a collector takes beside its samples. */
const COLLECTOR_BYTES = 80 * MIB;
const LEAST_STORE_BYTES = 16 * MIB;
/** What each runs in at all. */
const LEAST_AGENT_BYTES = 128 * MIB;
const LEAST_BUDGET_BYTES = 64 * MIB;

/** Undefined where nothing limits it, or /proc and /sys do not show it. */
export function readMemoryLimit(proc = '/proc'): MemoryLimit | undefined {
  const groups = (readSmallFile(join(proc, 'self/cgroup')) ?? '').split('\n');
  const mounts = parseCgroupMounts(readSmallFile(join(proc, 'self/mountinfo')) ?? '').filter(
    ({ version, options }) => version === 'cgroup2' || options.includes('memory'),
  );
  const limits = mounts.flatMap(({ version, root, path }) => {
    const group = pathOfGroup(groups, version);
    return group === undefined ? [] : limitsAbove(path, below(group, root), LIMIT_FILES[version]);
  });
  return limits.sort((a, b) => a.bytes - b.bytes)[0];
}

/** `0::/path` of version 2, `4:memory:/path` of version 1. */
function pathOfGroup(groups: readonly string[], version: CgroupMount['version']): string | undefined {
  for (const line of groups) {
    const [, id, controllers = '', path] = /^(\d+):([^:]*):(.*)$/.exec(line) ?? [];
    const isIt =
      version === 'cgroup2' ? id === '0' && controllers === '' : controllers.split(',').includes('memory');
    if (isIt) return path;
  }
  return undefined;
}

/** A group's path below the mounted one; '' where it lies elsewhere, as with a namespace of cgroups. */
function below(group: string, root: string): string {
  if (root === '/') return group.includes('/..') ? '' : group;
  return group === root || group.startsWith(`${root}/`) ? group.slice(root.length) : '';
}

function limitsAbove(mount: string, group: string, names: readonly string[]): MemoryLimit[] {
  const limits: MemoryLimit[] = [];
  const parts = group.split('/').filter((part) => part !== '');
  for (let depth = Math.min(parts.length, MAX_DEPTH); depth >= 0; depth--) {
    for (const name of names) {
      const file = join(mount, ...parts.slice(0, depth), name);
      const bytes = Number((readSmallFile(file) ?? 'max').trim());
      if (bytes > 0 && bytes < NO_LIMIT) limits.push({ bytes, file });
    }
  }
  return limits;
}

type Tell = Pick<Logger, 'info' | 'warn'>;

const mib = (bytes: number): string => `${Math.floor(bytes / MIB)} MiB`;

/** The agent's budget: what was asked for, or less to stay below the limit, which is said. */
export function agentBudget(
  asked: number,
  limit: MemoryLimit | undefined,
  log: Tell,
  { withCollector = false } = {},
): number {
  if (!limit) return asked;
  const share = Math.floor(limit.bytes * (withCollector ? AGENT_SHARE_OF_BOTH : AGENT_SHARE));
  const least = LEAST_AGENT_BYTES / AGENT_SHARE + (withCollector ? COLLECTOR_BYTES + LEAST_STORE_BYTES : 0);
  if (limit.bytes < least)
    warnSmall(limit, least, withCollector ? 'agent and collector need' : 'the agent needs', log);
  if (asked <= share) return asked;
  const budget = Math.max(share, LEAST_BUDGET_BYTES);
  log.info(`${describe(limit)}: the agent keeps to ${mib(budget)} in place of ${mib(asked)}`);
  return budget;
}

/** What a collector may keep in memory: what was asked for, or less, which is said. */
export function storeBudget(
  asked: number,
  limit: MemoryLimit | undefined,
  log: Tell,
  { withAgent = false } = {},
): number {
  if (!limit) return asked;
  const share = limit.bytes * (withAgent ? COLLECTOR_SHARE_OF_BOTH : AGENT_SHARE) - COLLECTOR_BYTES;
  const least = (COLLECTOR_BYTES + LEAST_STORE_BYTES) / AGENT_SHARE;
  if (!withAgent && limit.bytes < least) warnSmall(limit, least, 'a collector needs', log);
  const budget = Math.max(LEAST_STORE_BYTES, Math.floor(share));
  if (asked <= budget) return asked;
  log.info(`${describe(limit)}: samples take up to ${mib(budget)} in place of ${mib(asked)}`);
  return budget;
}

const describe = ({ bytes, file }: MemoryLimit): string => `${mib(bytes)} are the limit (${file})`;

const warnSmall = (limit: MemoryLimit, least: number, who: string, log: Tell): void =>
  log.warn(`${describe(limit)}, and ${who} ${mib(least)}: the kernel may end it; give the group more`);
