/** Files that later runs believe: in a directory of this user alone, written whole or not at all, and bounded. */
import { createHash } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

type Environment = Record<string, string | undefined>;

/** Of one who is no service. XDG_CACHE_HOME counts as unset where it is empty, as XDG's specification has it. */
export const userCacheDirectory = (env: Environment): string =>
  env['XDG_CACHE_HOME'] || join(homedir(), '.cache');

/** CACHE_DIRECTORY is what systemd sets for a unit with CacheDirectory=. */
export function defaultCacheDirectory(env: Environment): string {
  const own = process.getuid?.() === 0 ? '/var/cache' : userCacheDirectory(env);
  return env['CACHE_DIRECTORY']?.split(':')[0] || join(own, 'everyframe');
}

/** Makes it if need be. Throws where it can't be made, or others may write to it. */
export function makeCacheDirectory(path: string): void {
  makeDirectory(path);
  const { uid, mode } = lstatSync(path);
  if (uid !== process.getuid?.() || (mode & 0o022) !== 0)
    throw new Error(
      `${path} belongs to somebody else, or others may write to it: what is in it can't be trusted`,
    );
}

/** With its parents. Node's own way never ends below /proc, where what it is told to make does not come to be. */
export function makeDirectory(path: string): void {
  const whole = resolve(path);
  if (statSync(whole, { throwIfNoEntry: false })?.isDirectory()) return;
  if (dirname(whole) !== whole) makeDirectory(dirname(whole));
  try {
    mkdirSync(whole, { mode: 0o700 });
  } catch (error) {
    // somebody else was first
    if (!statSync(whole, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}

/** Undefined where there is none, or it throws: refused or full. What would be in it is made anew then. */
export function openCache<T>(directory: string | undefined, open: (directory: string) => T): T | undefined {
  try {
    return directory === undefined ? undefined : open(directory);
  } catch {
    return undefined;
  }
}

export const cachePathOf = (directory: string, key: string, ending: string): string =>
  join(directory, createHash('sha256').update(key).digest('hex').slice(0, 40) + ending);

/** Undefined where there is none, or one of somebody else, or a larger one. */
export function readCacheFile(path: string, maxBytes: number): Buffer | undefined {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats && isOwn(stats) && stats.size <= maxBytes ? readFileSync(path) : undefined;
}

/** Its descriptor, to read it in parts; undefined as for {@link readCacheFile}. */
export function openCacheFile(path: string, maxBytes: number): number | undefined {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
  const stats = fstatSync(fd);
  if (isOwn(stats) && stats.size <= maxBytes) return fd;
  closeSync(fd);
  return undefined;
}

const isOwn = (stats: Stats): boolean =>
  stats.isFile() && stats.uid === process.getuid?.() && (stats.mode & 0o022) === 0;

/** Whoever reads it meanwhile sees the old one, or none. False where the disk is full, or not to be written to. */
export function writeCacheFile(
  path: string,
  content: string | Uint8Array | Iterable<string | Uint8Array>,
): boolean {
  const parts = typeof content === 'string' || content instanceof Uint8Array ? [content] : content;
  const partial = `${path}.${process.pid}`;
  try {
    const fd = openSync(partial, 'wx', 0o600);
    try {
      for (const part of parts) writeFileSync(fd, part);
    } finally {
      closeSync(fd);
    }
    // to rename it over the old one would wait for the disk on ext4, for seconds where that is busy
    rmSync(path, { force: true });
    renameSync(partial, path);
    return true;
  } catch {
    rmSync(partial, { force: true });
    return false;
  }
}

/**
 * Of the files in a directory, those that were used longest ago leave. Those of other kinds are left alone. To look at
 * each takes time too: their number is bounded as well.
 */
export function pruneCacheFiles(
  directory: string,
  kind: RegExp,
  { maxBytes, maxFiles = 4096 }: { maxBytes: number; maxFiles?: number },
): void {
  const files = readdirSync(directory)
    .filter((name) => kind.test(name))
    .map((name) => join(directory, name))
    .map((path) => ({ path, stats: lstatSync(path, { throwIfNoEntry: false }) }))
    .sort((a, b) => (b.stats?.mtimeMs ?? 0) - (a.stats?.mtimeMs ?? 0));
  let total = 0;
  for (const [i, { path, stats }] of files.entries()) {
    total += stats?.size ?? 0;
    if (total > maxBytes || i >= maxFiles) rmSync(path, { force: true });
  }
}
