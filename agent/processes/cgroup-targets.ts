/**
 * The processes of cgroups that are chosen, or excluded. Which these are is looked up again and again: groups and processes
 * come, go and move. In between the kernel follows the children of those that are known, as it does for -p.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Pid, toPid } from '../../common/base/brand.ts';
import { type CgroupMount, parseCgroupMounts } from './cgroup-mounts.ts';
import { containerIdOf } from './cgroup-owner.ts';
import { addAlive, type TargetMap } from './descendants.ts';
import { readSmallFile } from './proc-files.ts';

export interface CgroupPatterns {
  groups: readonly string[];
  /** Whose processes are left out, wherever they are in those groups. */
  except?: readonly string[] | undefined;
}

export interface CgroupTargetMap extends TargetMap {
  /** All that are in it, also children that the kernel has added. */
  targets(): Pid[];
}

/** A machine with more has its other groups left out. */
const MAX_GROUPS = 50_000;
const MAX_DEPTH = 64;
const MIN_WAIT_MS = 500;
const MAX_WAIT_MS = 30_000;
/** A look may take a hundredth of the time at most. */
const WAIT_FACTOR = 100;
const LEAST_ID_DIGITS = 6;
/** Tried in place of PID 1. */
const MAX_VIEWERS = 200;
/** As kubectl prints them. */
const POD_UID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const RUNTIME_PREFIX = /^[a-z-]+:\/\/(?=[0-9a-f]+$)/;

export class CgroupTargets {
  readonly stats = {
    /** Groups whose processes are in the map, and looks for them. */
    cgroups: 0,
    looks: 0,
    /** Groups that were not looked at, and processes that the map had no room for, at the last look. */
    groupsLeftOut: 0,
    processesLeftOut: 0,
  };
  readonly #patterns: CgroupPatterns;
  readonly #map: CgroupTargetMap;
  readonly #proc: string;
  /** In the map, and in no such group at the last look: just forked, or moved away. */
  #strays = new Set<Pid>();
  #timer: NodeJS.Timeout | undefined;

  constructor(patterns: CgroupPatterns, map: CgroupTargetMap, proc = '/proc') {
    this.#patterns = patterns;
    this.#map = map;
    this.#proc = proc;
  }

  /** Looks now, and from then on by itself. */
  start(): void {
    // what was forked while the first look read its parent's group is in the files by then, and in the map since
    if (!this.#timer) this.look();
    const before = performance.now();
    this.look();
    const waitMs = Math.min(MAX_WAIT_MS, Math.max(MIN_WAIT_MS, (performance.now() - before) * WAIT_FACTOR));
    this.#timer = setTimeout(() => this.start(), waitMs).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  look(): void {
    const { groups, leftOut, processes: chosen } = findProcesses(this.#patterns, this.#proc);
    const known = new Set(this.#map.targets());
    const strays = [...known].filter((pid) => !chosen.has(pid));
    let processesLeftOut = 0;
    for (const pid of chosen)
      if (!known.has(pid) && !addAlive(pid, this.#map, this.#proc) && isThere(this.#proc, `${pid}`))
        processesLeftOut++;
    for (const pid of strays) if (this.#strays.has(pid)) this.#map.removeTarget(pid);
    this.#strays = new Set(strays);
    Object.assign(this.stats, { cgroups: groups.length, groupsLeftOut: leftOut, processesLeftOut });
    this.stats.looks++;
  }
}

/** The processes that are in them now. */
export const processesOfCgroups = (patterns: CgroupPatterns, proc = '/proc'): Pid[] => [
  ...findProcesses(patterns, proc).processes,
];

function findProcesses({ groups: chosen, except = [] }: CgroupPatterns, proc: string) {
  const { groups, leftOut } = findGroups(cgroupMatcher(chosen), proc);
  const processes = new Set(groups.flatMap(processesOf));
  // not by their folders: with version 1 another hierarchy may be the one that has the group
  const excluded = except.length > 0 ? findGroups(cgroupMatcher(except), proc) : { groups: [], leftOut: 0 };
  for (const pid of excluded.groups.flatMap(processesOf)) processes.delete(pid);
  return { groups, processes, leftOut: leftOut + excluded.leftOut };
}

/** Whether there is such a group now. */
export const hasCgroup = (pattern: string, proc = '/proc'): boolean =>
  findGroups(cgroupMatcher([pattern]), proc).groups.length > 0;

/**
 * A pattern with a slash in front is a whole path, as /proc/PID/cgroup or the file system has it; any other one is a name in
 * it, the first digits of a container's ID, or a pod's UID. `*` stands for any characters but a slash.
 */
function cgroupMatcher(patterns: readonly string[]): (path: string, mount: CgroupMount) => boolean {
  const matchers = patterns.map((pattern) => {
    const text = pattern.length > 1 ? pattern.replace(RUNTIME_PREFIX, '').replace(/\/+$/, '') : pattern;
    const expression = POD_UID.test(text)
      ? new RegExp(`(?:^|-)pod${text.replaceAll('-', '[-_]')}(?:\\.slice)?$`)
      : new RegExp(`^${text.split('*').map(literally).join('[^/]*')}$`);
    if (text === '/') return (path: string) => path === '';
    if (text.startsWith('/'))
      return (path: string, mount: CgroupMount) =>
        path !== '' &&
        (expression.test(path) || (text.startsWith(mount.path) && expression.test(mount.path + path)));
    const isId = text.length >= LEAST_ID_DIGITS && /^[0-9a-f]+$/.test(text);
    return (path: string) => {
      const [parent = '', name = ''] = path.split('/').slice(-2);
      return expression.test(name) || (isId && containerIdOf(name, parent).startsWith(text));
    };
  });
  return (path, mount) => matchers.some((matches) => matches(path, mount));
}

const literally = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

/**
 * A process that sees the hierarchies as the machine has them: in a container the agent's own view is cut. Some machines
 * keep that of PID 1 from everybody: then the first one, mostly the kernel's, with the same mounts.
 */
function findViewer(proc: string): string {
  if (isThere(proc, '1/root/')) return '1';
  const mounts = readSmallFile(join(proc, '1/mountinfo'));
  if (mounts === undefined) return 'self';
  const pids = readdirSync(proc)
    .filter((name) => /^\d+$/.test(name))
    .sort((a, b) => Number(a) - Number(b))
    .slice(0, MAX_VIEWERS);
  const isAlike = (pid: string) =>
    isThere(proc, `${pid}/root/`) && readSmallFile(join(proc, pid, 'mountinfo')) === mounts;
  return pids.find(isAlike) ?? 'self';
}

/** Folders of the groups that are chosen and of all below them. */
function findGroups(
  isChosen: (path: string, mount: CgroupMount) => boolean,
  proc: string,
): { groups: string[]; leftOut: number } {
  const viewer = join(proc, findViewer(proc));
  const groups: string[] = [];
  let [visited, leftOut] = [0, 0];
  const visit = (mount: CgroupMount, path: string, depth: number, isBelow: boolean): void => {
    if (++visited > MAX_GROUPS || depth > MAX_DEPTH) {
      leftOut++;
      return;
    }
    const folder = join(viewer, 'root', mount.path, path);
    const isOne = isBelow || isChosen(path, mount);
    if (isOne) groups.push(folder);
    for (const name of subfolders(folder)) visit(mount, `${path}/${name}`, depth + 1, isOne);
  };
  // a large table of mounts is cut: groups come early in it
  const mounts = parseCgroupMounts(readSmallFile(join(viewer, 'mountinfo')) ?? '');
  const hierarchies = new Map(mounts.toReversed().map((mount) => [mount.device, mount]));
  for (const mount of hierarchies.values()) visit(mount, '', 0, false);
  return { groups, leftOut };
}

/** Two links and one for each folder in it, which spares most groups, that have none, the reading of their files. */
function subfolders(folder: string): string[] {
  try {
    if (statSync(folder).nlink === 2) return [];
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? [entry.name] : [],
    );
  } catch {
    return []; // gone
  }
}

function processesOf(folder: string): Pid[] {
  try {
    const text = readFileSync(join(folder, 'cgroup.procs'), 'latin1');
    return text
      .split('\n')
      .map(Number)
      .filter((pid) => pid > 0)
      .map(toPid);
  } catch {
    return []; // gone, or a group of threads, whose processes are those of one above it
  }
}

function isThere(proc: string, path: string): boolean {
  try {
    return statSync(join(proc, path), { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}
