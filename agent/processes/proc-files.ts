/**
 * What /proc says about a process, for whatever BPF did not. The process can end, or become another one, between
 * two reads: `undefined` is an expected answer everywhere here.
 */
import { closeSync, existsSync, openSync, readlinkSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { parseProcCgroup } from './cgroup-owner.ts';

export interface ProcProcess {
  comm: string;
  parentPid: number;
  /** '' for a kernel thread, and where the link may not be read. */
  executablePath: string;
  cgroupPath: string;
}

export interface ProcStat {
  comm: string;
  parentPid: number;
  /** Clock ticks after boot. */
  startTicks: bigint;
}

/** sysconf(_SC_CLK_TCK): the USER_HZ of the kernel's interface, 100 on every architecture that this runs on. */
const TICK_NS = 10_000_000n;
const MAX_FILE_BYTES = 16 * 1024;
const DELETED = ' (deleted)';

/** Reads /proc/PID/stat; its name field may hold spaces and brackets, so fields count from the last bracket. */
export function parseStat(text: string): ProcStat | undefined {
  const open = text.indexOf('(');
  const close = text.lastIndexOf(')');
  if (open < 0 || close < open) return undefined;
  const fields = text.slice(close + 2).split(' ');
  const parentPid = Number(fields[1]);
  const start = fields[19];
  if (!Number.isInteger(parentPid) || start === undefined || !/^\d{1,19}$/.test(start)) return undefined;
  return { comm: text.slice(open + 1, close), parentPid, startTicks: BigInt(start) };
}

/**
 * Facts about the process that has this PID and started at this time; undefined where it is gone. The start time
 * is compared before and after, so that the facts are of one process.
 */
export function readProcProcess(proc: string, pid: number, startBoottimeNs: bigint): ProcProcess | undefined {
  const directory = join(proc, String(pid));
  const before = readStat(directory);
  if (!before || before.startTicks !== startBoottimeNs / TICK_NS) return undefined;
  const executablePath = readExecutablePath(directory);
  const cgroupPath = parseProcCgroup(readSmallFile(join(directory, 'cgroup')) ?? '');
  const after = readStat(directory);
  if (!after || after.startTicks !== before.startTicks) return undefined;
  return { comm: after.comm, parentPid: after.parentPid, executablePath, cgroupPath };
}

/** False where the process that had this PID and started at this time is surely gone. */
export function mayRun(proc: string, pid: number, startBoottimeNs: bigint): boolean {
  const directory = join(proc, String(pid));
  if (!existsSync(directory)) return false;
  const stat = readStat(directory);
  return !stat || stat.startTicks === startBoottimeNs / TICK_NS;
}

/** How long a thread has been on a CPU, by the scheduler's count, nanoseconds; undefined where there is none, or no such file. */
export function readOnCpuNs(proc: string, tid: number): bigint | undefined {
  const ns = /^(\d{1,20}) /.exec(readSmallFile(join(proc, String(tid), 'schedstat')) ?? '')?.[1];
  return ns === undefined ? undefined : BigInt(ns);
}

function readStat(directory: string): ProcStat | undefined {
  const text = readSmallFile(join(directory, 'stat'));
  return text === undefined ? undefined : parseStat(text);
}

function readExecutablePath(directory: string): string {
  try {
    const path = readlinkSync(join(directory, 'exe'));
    return path.endsWith(DELETED) ? path.slice(0, -DELETED.length) : path;
  } catch {
    return '';
  }
}

/** Reading is synchronous, and what was read is made a text at once. */
const buffer = Buffer.alloc(MAX_FILE_BYTES);

/** The first 16 KiB of a file as text, undefined if it can't be read. */
export function readSmallFile(path: string): string | undefined {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch {
    return undefined;
  }
  try {
    let used = 0;
    while (used < buffer.length) {
      const n = readSync(fd, buffer, used, buffer.length - used, null);
      if (n === 0) break;
      used += n;
    }
    return buffer.toString('utf8', 0, used);
  } catch {
    // ESRCH: the process ended after its file was opened
    return undefined;
  } finally {
    closeSync(fd);
  }
}
