/**
 * Finds and opens the files in which a process tells of its JIT code, as it sees them itself: below its own root and
 * under its PID in its innermost namespace. Whoever may write to that /tmp could put something else there, so a file is
 * looked at by name only (O_PATH) before it is opened, and believed only if it is the process's user's.
 */
import { close, constants, fstat, open, read, type Stats } from 'node:fs';
import { promisify } from 'node:util';
import { parseStat, readSmallFile } from '../processes/proc-files.ts';
import type { ProcessIdentity } from '../tracer/records.ts';

export const openAsync = promisify(open);
export const closeAsync = promisify(close);
export const fstatAsync = promisify(fstat) as (fd: number) => Promise<Stats>;
const readAsync = promisify(read);

/** From open(2) of Linux; Node has no name for it. */
const O_PATH = 0o10000000;
const READ = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
const NAME = O_PATH | constants.O_NOFOLLOW;
const TICK_NS = 10_000_000n;
/** Some 40,000 mappings. */
const MAX_MAPS_BYTES = 4 << 20;
const PIECE_BYTES = 64 * 1024;
/** A process may have created the file before we think that it started. */
const CLOCK_SLACK_MS = 2000;

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
  proc: string,
  pid: number,
  owner: JitOwner,
  startedMs: number,
): Promise<number | JitRefusal | undefined> {
  // not through a link: it would be followed from our root, not from the process's
  const folder = await openAsync(`${proc}/${pid}/root/tmp`, NAME | constants.O_DIRECTORY).catch(
    () => undefined,
  );
  if (folder === undefined) return undefined;
  try {
    const path = `/proc/self/fd/${folder}/perf-${owner.innerPid}.map`;
    return await openOwned(path, NAME, owner, (stats) => stats.mtimeMs + CLOCK_SLACK_MS >= startedMs);
  } finally {
    await closeAsync(folder);
  }
}

/** Undefined where the process has none mapped, which is how a jitdump is announced. */
export async function openJitDump(
  proc: string,
  pid: number,
  owner: JitOwner,
): Promise<number | JitRefusal | undefined> {
  const range = await findMapping(`${proc}/${pid}/maps`, `/jit-${owner.innerPid}.dump`);
  // the link leads to the mapped file itself, wherever it is by now
  return range === undefined
    ? undefined
    : openOwned(`${proc}/${pid}/map_files/${range}`, O_PATH, owner, () => true);
}

async function openOwned(
  path: string,
  flags: number,
  { uid }: JitOwner,
  isCurrent: (stats: Stats) => boolean,
): Promise<number | JitRefusal | undefined> {
  const name = await openAsync(path, flags).catch(() => undefined);
  if (name === undefined) return undefined;
  try {
    const stats = await fstatAsync(name);
    if (!stats.isFile()) return 'notRegular';
    if (stats.uid !== uid || isOthers(stats)) return 'notOwned';
    if (!isCurrent(stats)) return 'outdated';
    return await openAsync(`/proc/self/fd/${name}`, READ).catch(() => undefined);
  } finally {
    await closeAsync(name);
  }
}

/** Root's group is nobody else's; those of users often have no other member, and their files its rights (umask 002). */
const isOthers = ({ uid, gid, mode, nlink }: Stats): boolean =>
  // a file of the process's user that somebody linked to from there
  nlink > 1 || (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && uid === 0 && gid !== 0);

/** The range of the mapping of a file whose path ends so, as map_files/ has it. */
async function findMapping(path: string, ending: string): Promise<string | undefined> {
  const fd = await openAsync(path, READ).catch(() => undefined);
  if (fd === undefined) return undefined;
  try {
    let rest = '';
    for (let left = MAX_MAPS_BYTES; left > 0; ) {
      const piece = await readAt(fd, null, PIECE_BYTES);
      if (piece.length === 0) return undefined;
      left -= piece.length;
      const lines = (rest + piece.toString('latin1')).split('\n');
      rest = lines.pop()!;
      const line = lines.find((text) => text.endsWith(ending));
      if (line) return line.slice(0, line.indexOf(' ')).replace(/\b0+(?=[0-9a-f])/g, '');
    }
    return undefined;
  } finally {
    await closeAsync(fd);
  }
}

/** Up to `length` bytes, none where the file can't be read; `offset` null: where the last read ended. */
export async function readAt(fd: number, offset: number | null, length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(length);
  try {
    const { bytesRead } = await readAsync(fd, buffer, 0, length, offset);
    return buffer.subarray(0, bytesRead);
  } catch {
    return buffer.subarray(0, 0);
  }
}
