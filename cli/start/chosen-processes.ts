/** `-p PID`, `--cgroup` and `--exclude-cgroup` of record, run and top. */
import { InvalidArgumentError } from 'commander';
import { hasCgroup, processesOfCgroups } from '../../agent/processes/cgroup-targets.ts';
import { descendantsOf } from '../../agent/processes/descendants.ts';
import { ForeignReader } from '../../agent/processes/foreign-reader.ts';
import { mappedExecutables } from '../../agent/processes/mapped-files.ts';
import { readSmallFile } from '../../agent/processes/proc-files.ts';
import { BadSetting } from '../../common/base/bad-setting.ts';
import { type Pid, toPid } from '../../common/base/brand.ts';

export const PID_HELP = 'only this process and all that descend from it; repeatable, or a list: 12,34';

/** The kernel's PID_MAX_LIMIT on 64 bits. */
const MAX_PID = 4_194_304;
/** Most run the same files. */
const MAX_PROCESSES_READ = 256;
const LOOK_FOR_TARGETS_MS = 500;

/** A PID or a list of them as pgrep prints it, with commas or a line each. */
export const collectPid = (text: string, previous: Pid[] | undefined): Pid[] => [
  ...(previous ?? []),
  ...text
    .trim()
    .split(/[\s,]+/)
    .map(parsePid),
];

function parsePid(text: string): Pid {
  const pid = Number(text);
  if (/^\d+$/.test(text) && pid >= 1 && pid <= MAX_PID) return toPid(pid);
  const isName = /^[A-Za-z][\w.-]*$/.test(text);
  throw new InvalidArgumentError(`not a valid PID${isName ? `: -p $(pgrep -d, ${text})?` : '.'}`);
}

/** Throws with a sentence where it is gone, or a thread's ID. */
export function requireProcess(pid: Pid, proc = '/proc'): void {
  const group = /^Tgid:\s*(\d+)$/m.exec(readSmallFile(`${proc}/${pid}/status`) ?? '')?.[1];
  if (group === undefined) throw new Error(`-p ${pid}: there is no such process`);
  if (Number(group) !== pid)
    throw new Error(
      `-p ${pid}: it is a thread of process ${group}: give -p ${group}, which takes all of its threads`,
    );
}

/** What a person chose; nothing: everything. */
export interface Chosen {
  pid?: Pid[];
  cgroup?: string[];
  excludeCgroup?: string[];
}

/** The flags that were given, of which one has a meaning at a time; --exclude-cgroup goes with --cgroup. */
export const choicesOf = ({ pid, cgroup, excludeCgroup }: Chosen): string[] => [
  ...(pid ? ['-p PID'] : []),
  ...(cgroup ? ['--cgroup'] : []),
  ...(excludeCgroup && !cgroup ? ['--exclude-cgroup'] : []),
];

/** Throws BadSetting where two were given that have a meaning at a time. */
export function requireOneChoice(chosen: Chosen): void {
  const choices = choicesOf(chosen);
  if (choices.length > 1) throw new BadSetting(`${choices.join(' and ')} were given: give one of them`);
}

/** Throws with a sentence where one is not there. */
export function requireChosen({ pid = [], cgroup = [], excludeCgroup = [] }: Chosen): void {
  for (const one of pid) requireProcess(one);
  for (const one of cgroup) requireCgroup('--cgroup', one);
  for (const one of excludeCgroup) requireCgroup('--exclude-cgroup', one);
}

/** Resolves when no process that was chosen is left, of those who are sampled. */
export const untilGone = (sampling: { readonly hasTargets: boolean }): Promise<void> =>
  new Promise((resolve) => {
    const look = setInterval(() => {
      if (sampling.hasTargets) return;
      clearInterval(look);
      resolve();
    }, LOOK_FOR_TARGETS_MS).unref();
  });

/** As {@link filesOfProcesses}, of those that were chosen. */
export const filesOfChosen = ({ pid = [], cgroup, excludeCgroup = [] }: Chosen): string[] =>
  filesOfProcesses(cgroup ? processesOfCgroups({ groups: cgroup, except: excludeCgroup }) : pid);

function requireCgroup(flag: string, pattern: string): void {
  if (!hasCgroup(pattern))
    throw new Error(`${flag} ${pattern}: there is no such cgroup: /proc/PID/cgroup has those of a process`);
}

/** Links to what they and their descendants have mapped to execute. */
function filesOfProcesses(pids: readonly Pid[]): string[] {
  const all = [...pids, ...(pids.length > 0 ? descendantsOf(pids) : [])].slice(0, MAX_PROCESSES_READ);
  const links = new Map<string, string>();
  const reader = new ForeignReader();
  for (const pid of all) for (const { path, link } of mappedExecutables(pid, reader)) links.set(path, link);
  reader.close();
  return [...links.values()];
}
