/**
 * Separate debug information from debuginfod servers, by build ID. It tells a server which programs run here, so a
 * person has to switch it on. Protocol: debuginfod(8), "WEBAPI": GET /buildid/BUILDID/debuginfo.
 *
 * Files stay in a directory that only this user may write: found ones until the directory is too large, the least
 * recently used first; for what no server has an empty file, for an hour. What a server sends is not trusted: it is
 * read like any foreign file, in the symbol worker, and believed only if it has that build ID.
 */
import { lstat, open, readdir, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeDirectory } from '../../files/own-directory.ts';

export interface DebuginfodOptions {
  /** Asked in this order, without a slash at the end. */
  urls: readonly string[];
  /** Directory of the cache; it is made, with its parents. */
  cache: string;
  /** Limit for one file; a larger one counts as absent. */
  maxFileBytes: number;
  maxCacheBytes: number;
  /** For one file. */
  timeoutMs: number;
  /** Without a byte from the server. */
  idleMs: number;
  /** For so long a server is not asked again for what it does not have. */
  absentMs: number;
}

export const DEBUGINFOD_DEFAULTS = {
  maxFileBytes: 1 << 30,
  maxCacheBytes: 4 * 2 ** 30,
  timeoutMs: 600_000,
  idleMs: 30_000,
  absentMs: 3_600_000,
};

const MAX_AT_ONCE = 2;
const MAX_WAITING = 256;
/** A server that can't be reached is left alone for a while. */
const DOWN_MS = 60_000;
const MAX_CACHE_ENTRIES = 16_384;
const PARTIAL = '.part';
const ABSENT = '.absent';

/** The server sends more than it may. */
class TooLarge extends Error {
  override readonly name = 'TooLarge';
}

export class Debuginfod {
  readonly stats = {
    asked: 0,
    /** In the cache, from this run or an earlier one. */
    cached: 0,
    fetched: 0,
    fetchedBytes: 0,
    /** No server has it, or it exceeds the limit. */
    absent: 0,
    /** Servers that can't be reached, that stall or fail. */
    failed: 0,
    /** Not asked for, since too many wait. */
    dropped: 0,
  };
  readonly #options: DebuginfodOptions;
  readonly #warn: (message: string) => void;
  readonly #finding = new Map<string, Promise<string | undefined>>();
  readonly #downUntil = new Map<string, number>();
  readonly #waiting: (() => void)[] = [];
  readonly #stopped = new AbortController();
  #running = 0;

  /** `warn` is told when a server fails, in a sentence. */
  constructor(options: DebuginfodOptions, warn: (message: string) => void = () => {}) {
    this.#options = options;
    this.#warn = warn;
  }

  /** Path of the debug information in the cache; undefined if it can't be had now. Never rejects. */
  find(buildId: string): Promise<string | undefined> {
    if (!/^[0-9a-f]{8,128}$/.test(buildId)) return Promise.resolve(undefined);
    let finding = this.#finding.get(buildId);
    if (!finding) {
      if (this.#finding.size >= MAX_WAITING) {
        this.stats.dropped++;
        return Promise.resolve(undefined);
      }
      this.stats.asked++;
      finding = this.#find(buildId)
        .catch(() => {
          this.stats.failed++;
          return undefined;
        })
        .finally(() => this.#finding.delete(buildId));
      this.#finding.set(buildId, finding);
    }
    return finding;
  }

  /** Breaks off what is under way. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    for (const start of this.#waiting.splice(0)) start();
    await Promise.all(this.#finding.values());
  }

  async #find(buildId: string): Promise<string | undefined> {
    const path = join(this.#options.cache, buildId);
    const known = await this.#lookUp(path);
    if (known !== 'unknown') return known === 'found' ? path : undefined;
    await this.#begin();
    try {
      return (await this.#fetch(buildId, path)) ? path : undefined;
    } finally {
      this.#running--;
      this.#waiting.shift()?.();
    }
  }

  async #lookUp(path: string): Promise<'found' | 'absent' | 'unknown'> {
    if (await isOwnFile(path)) {
      this.stats.cached++;
      const now = new Date();
      await utimes(path, now, now);
      return 'found';
    }
    const absent = await lstat(path + ABSENT).catch(() => undefined);
    if (!absent || Date.now() - absent.mtimeMs > this.#options.absentMs) return 'unknown';
    this.stats.absent++;
    return 'absent';
  }

  async #begin(): Promise<void> {
    if (this.#running >= MAX_AT_ONCE) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#running++;
    this.#stopped.signal.throwIfAborted();
  }

  /** False where no server has it. */
  async #fetch(buildId: string, path: string): Promise<boolean> {
    makeDirectory(this.#options.cache);
    let failure: unknown;
    for (const url of this.#options.urls) {
      if ((this.#downUntil.get(url) ?? 0) > Date.now()) {
        failure ??= new Error(`${url} was not reachable`);
        continue;
      }
      try {
        const bytes = await this.#download(`${url}/buildid/${buildId}/debuginfo`, path);
        if (bytes === undefined) continue;
        this.stats.fetched++;
        this.stats.fetchedBytes += bytes;
        await this.#prune(path);
        return true;
      } catch (error) {
        if (error instanceof TooLarge) continue;
        failure = error;
        if (this.#stopped.signal.aborted) break;
        this.#warn(`debuginfod: ${describe(url, error as Error)}; it is not asked for ${DOWN_MS / 1000} s`);
        this.#downUntil.set(url, Date.now() + DOWN_MS);
      }
    }
    // a server that failed may have it
    if (failure) throw failure;
    this.stats.absent++;
    await writeFile(path + ABSENT, '', { mode: 0o600 });
    return false;
  }

  /** Bytes of the file that is in the cache now; undefined where the server doesn't have it. */
  async #download(url: string, path: string): Promise<number | undefined> {
    const { timeoutMs, idleMs, maxFileBytes } = this.#options;
    const idle = new AbortController();
    const timer = setTimeout(() => idle.abort(), idleMs);
    const signal = AbortSignal.any([this.#stopped.signal, idle.signal, AbortSignal.timeout(timeoutMs)]);
    const partial = `${path}.${process.pid}${PARTIAL}`;
    try {
      const response = await fetch(url, { signal, headers: { 'user-agent': 'everyframe' } });
      if (response.status === 404 || !response.body) {
        await response.body?.cancel();
        return undefined;
      }
      if (!response.ok) throw new Error(`${url} answers ${response.status}`);
      await rm(partial, { force: true });
      // before the first byte, and closed before it is removed: nothing is left of what breaks off
      const file = await open(partial, 'wx', 0o600);
      let size = 0;
      try {
        for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
          timer.refresh();
          size += chunk.length;
          if (size > maxFileBytes) throw new TooLarge(`${url} sends more than ${maxFileBytes} bytes`);
          await file.writeFile(chunk);
        }
      } finally {
        await file.close();
      }
      await rename(partial, path);
      return size;
    } finally {
      clearTimeout(timer);
      await rm(partial, { force: true });
    }
  }

  /** Makes room; `newest` stays whatever its size. */
  async #prune(newest: string): Promise<void> {
    const { cache, maxCacheBytes, absentMs, timeoutMs } = this.#options;
    const files: { path: string; size: number; usedAt: number }[] = [];
    for (const name of (await readdir(cache)).slice(0, MAX_CACHE_ENTRIES)) {
      const path = join(cache, name);
      const stats = await lstat(path).catch(() => undefined);
      if (!stats?.isFile()) continue;
      const lifeMs = name.endsWith(ABSENT) ? absentMs : name.endsWith(PARTIAL) ? timeoutMs : Infinity;
      if (Date.now() - stats.mtimeMs > lifeMs) await rm(path, { force: true });
      else files.push({ path, size: stats.size, usedAt: stats.mtimeMs });
    }
    files.sort((a, b) => b.usedAt - a.usedAt);
    let total = 0;
    for (const { path, size } of files) {
      total += size;
      if (total > maxCacheBytes && path !== newest && size > 0) await rm(path, { force: true });
    }
  }
}

/** The reason why fetch failed stands in the cause of its error. */
function describe(url: string, { message, cause }: Error): string {
  const reason = cause instanceof Error ? cause.message : message;
  return reason.includes(url) ? reason : `${url}: ${reason}`;
}

/** Nobody else could have put it there. */
async function isOwnFile(path: string): Promise<boolean> {
  const stats = await lstat(path).catch(() => undefined);
  if (!stats?.isFile()) return false;
  return stats.uid === process.getuid?.() && (stats.mode & 0o022) === 0;
}
