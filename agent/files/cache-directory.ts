/** Files that later runs believe: in a directory of this user alone, written whole or not at all, and bounded. */
import { createHash } from 'node:crypto';
import { closeSync, fstatSync, readFileSync, type Stats, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileOpener } from './file-opener.ts';

type Environment = Record<string, string | undefined>;

/** Cache directory of a user, as opposed to a service. XDG_CACHE_HOME counts as unset where it is empty, as XDG's specification has it. */
export const userCacheDirectory = (env: Environment): string =>
  env['XDG_CACHE_HOME'] || join(homedir(), '.cache');

/** CACHE_DIRECTORY is what systemd sets for a unit with CacheDirectory=. */
export function defaultCacheDirectory(env: Environment): string {
  const own = process.getuid?.() === 0 ? '/var/cache' : userCacheDirectory(env);
  return env['CACHE_DIRECTORY']?.split(':')[0] || join(own, 'everyframe');
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
  const fd = openCacheFile(path, maxBytes);
  if (fd === undefined) return undefined;
  try {
    return readFileSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Its descriptor, to read it in parts; undefined as for {@link readCacheFile}. */
export function openCacheFile(path: string, maxBytes: number): number | undefined {
  let fd: number;
  try {
    fd = fileOpener().openCached(path);
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
    const fd = fileOpener().createCached(partial);
    try {
      for (const part of parts) writeFileSync(fd, part);
    } finally {
      closeSync(fd);
    }
    fileOpener().renameCached(partial, path);
    return true;
  } catch {
    removePartial(partial);
    return false;
  }
}

function removePartial(path: string): void {
  try {
    fileOpener().removeCached(path);
  } catch {
    // it was not made
  }
}

/** Evicts the least recently used files with an ending, and half-written ones. */
export function pruneCacheFiles(
  directory: string,
  ending: string,
  { maxBytes, maxFiles = 4096 }: { maxBytes: number; maxFiles?: number },
): void {
  fileOpener().pruneCached(directory, ending, { maxBytes, maxFiles });
}
