/** The processes below others, by what /proc says of parents: those that were there before anything was attached. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Pid, toPid } from '../../common/base/brand.ts';
import { parseStat, readSmallFile } from './proc-files.ts';

/** A machine with more has its other processes left out; 15 microseconds each. */
const MAX_PROCESSES = 131_072;
/** Looks at /proc; a second one finds what was forked during the first. */
const MAX_LOOKS = 4;

interface Entry {
  parentPid: number;
  startTicks: bigint;
}

export interface TargetMap {
  /** False where there is no room for more. */
  addTarget(pid: Pid): boolean;
  removeTarget(pid: Pid): void;
}

/**
 * Adds processes and all that descend from them. Forks have to be followed by then: a child of a process that is
 * added is either seen in /proc afterwards, or its fork was.
 */
export function addWithDescendants(
  roots: readonly Pid[],
  map: TargetMap,
  proc = '/proc',
): { added: number; leftOut: number } {
  const added = new Set<Pid>();
  let leftOut = 0;
  for (const pid of roots) if (addAlive(pid, map, proc)) added.add(pid);
  for (let look = 0; look < MAX_LOOKS; look++) {
    const before = added.size;
    leftOut = 0;
    for (const pid of descendantsOf(roots, proc)) {
      if (added.has(pid)) continue;
      if (addAlive(pid, map, proc)) added.add(pid);
      else if (startOf(pid, proc) !== undefined) leftOut++;
    }
    if (added.size === before) break;
  }
  return { added: added.size, leftOut };
}

/** Parents first; without the roots, this process and what it has started: to record a shell is not to record the recorder. */
export function descendantsOf(roots: readonly Pid[], proc = '/proc'): Pid[] {
  const children = new Map<number, Pid[]>();
  for (const pid of pidsOf(proc)) {
    if (pid === process.pid) continue;
    const parent = entryOf(pid, proc)?.parentPid;
    if (parent === undefined) continue;
    const siblings = children.get(parent);
    if (siblings) siblings.push(pid);
    else children.set(parent, [pid]);
  }
  const found = new Set<Pid>(roots);
  // a set is walked in the order in which it grows
  for (const pid of found) for (const child of children.get(pid) ?? []) found.add(child);
  return [...found].slice(new Set(roots).size);
}

/** False where there is no room, or the process has ended: its number is taken out again, since another process will get it. */
export function addAlive(pid: Pid, map: TargetMap, proc = '/proc'): boolean {
  const before = startOf(pid, proc);
  if (before === undefined || !map.addTarget(pid)) return false;
  if (startOf(pid, proc) === before) return true;
  map.removeTarget(pid);
  return false;
}

const startOf = (pid: Pid, proc: string): bigint | undefined => entryOf(pid, proc)?.startTicks;

function entryOf(pid: Pid, proc: string): Entry | undefined {
  const text = readSmallFile(join(proc, `${pid}/stat`));
  return text === undefined ? undefined : parseStat(text);
}

const pidsOf = (proc: string): Pid[] =>
  readdirSync(proc)
    .map(Number)
    .filter((pid) => pid > 0)
    .slice(0, MAX_PROCESSES)
    .map(toPid);
