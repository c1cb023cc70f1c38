/**
 * Finds and opens the files in which a process says of its JIT code, as it sees them itself: below its own root and
 * under its PID in its innermost namespace. Whoever may write to that /tmp could put something else there, so that nothing
 * is opened but a regular file, through no link, and it is believed only if it is the process's user's.
 */
import { constants } from 'node:fs';
import type { Pid } from '../../common/base/brand.ts';
import type { NativeFile } from '../base/native.ts';
import { closeFile, type ForeignFiles } from '../processes/foreign-files.ts';
import { parseStat, readSmallFile } from '../processes/proc-files.ts';
import type { ProcessIdentity } from '../records/records.ts';

const TICK_NS = 10_000_000n;
/** Some 40,000 mappings. */
const MAX_MAPS_BYTES = 4 << 20;
/** A process may have created the file before we think that it started. */
const CLOCK_SLACK_MS = 2000;
const ELOOP = -40;

export type JitRefusal =
  /** Of another user than the process, or others can change it. */
  | 'notOwned'
  /** A link, directory, device, pipe or socket. */
  | 'notRegular'
  /** Last written before the process started: that of an earlier one of the same PID. */
  | 'outdated';

export interface JitOwner {
  /** As the process itself sees it. */
  innerPid: number;
  uid: number;
}

/** Undefined where the process is gone, or its PID is another's by now. */
export function readOwner(proc: string, { pid, startBoottimeNs }: ProcessIdentity): JitOwner | undefined {
  const status = readSmallFile(`${proc}/${pid}/status`) ?? '';
  const uid = /^Uid:\t\d+\t(\d+)\t/m.exec(status)?.[1];
  const inner = /^NSpid:(?:\t\d+)*\t(\d+)$/m.exec(status)?.[1];
  const stat = parseStat(readSmallFile(`${proc}/${pid}/stat`) ?? '');
  if (uid === undefined || stat?.startTicks !== startBoottimeNs / TICK_NS) return undefined;
  return { innerPid: Number(inner ?? pid), uid: Number(uid) };
}

/** Undefined where there is none. `startedMs`: when the process did, Unix time. */
export async function openPerfMap(
  files: ForeignFiles,
  pid: Pid,
  owner: JitOwner,
  startedMs: number,
): Promise<number | JitRefusal | undefined> {
  const found = await files.openBelowRoot(pid, `tmp/perf-${owner.innerPid}.map`);
  // a link could lead anywhere
  if (found === ELOOP) return 'notRegular';
  return check(found, owner, ({ mtimeNs }) => Number(mtimeNs / 1_000_000n) + CLOCK_SLACK_MS >= startedMs);
}

/** Undefined where the process has none mapped, which is how a jitdump is announced. */
export async function openJitDump(
  files: ForeignFiles,
  proc: string,
  pid: Pid,
  owner: JitOwner,
): Promise<number | JitRefusal | undefined> {
  const maps = await files.readProcFile(pid, 'maps', MAX_MAPS_BYTES);
  const range = typeof maps === 'number' ? undefined : findMapping(maps, `/jit-${owner.innerPid}.dump\n`);
  if (range === undefined) return undefined;
  // the link leads to the mapped file itself, wherever it is by now
  const found = await files.lookAt(`${proc}/${pid}/map_files/${range}`, true, { pid, device: 0 });
  return check(found, owner, () => true);
}

/** The descriptor, or why it is not believed. */
function check(
  found: NativeFile | number,
  { uid }: JitOwner,
  isCurrent: (file: NativeFile) => boolean,
): number | JitRefusal | undefined {
  if (typeof found === 'number') return undefined;
  const isRegular = (found.mode & constants.S_IFMT) === constants.S_IFREG;
  const isOwned = found.uid === uid && !isOthers(found);
  if (isRegular && isOwned && isCurrent(found)) return found.fd;
  closeFile(found);
  if (!isRegular) return 'notRegular';
  return isOwned ? 'outdated' : 'notOwned';
}

/** Root's group is nobody else's; those of users often have no other member, and their files its rights (umask 002). */
const isOthers = ({ uid, gid, mode, links }: NativeFile): boolean =>
  // a file of the process's user that somebody linked to from there
  links > 1 || (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && uid === 0 && gid !== 0);

/** The range of the mapping of a file whose path ends so, as map_files/ has it. */
function findMapping(maps: Buffer, ending: string): string | undefined {
  const at = maps.indexOf(ending, 0, 'latin1');
  if (at < 0) return undefined;
  const line = maps.toString('latin1', maps.lastIndexOf('\n', at) + 1, at);
  return line.slice(0, line.indexOf(' ')).replace(/\b0+(?=[0-9a-f])/g, '');
}
