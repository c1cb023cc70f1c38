/**
 * Names that were found in an earlier run, on disk: a file per executable, in a directory of this user alone. An
 * answer depends on the executable and on the files that it names for its symbols, found or missing; it is believed
 * only while all of them are the same by device, inode, size and change time. The file ID alone would not do: it
 * covers the edges of a file, and whoever crafts another one with those edges could name its functions for good.
 */

import { createHash } from 'node:crypto';
import * as v from 'valibot';
import { RangeMap } from '../../../common/base/range-map.ts';
import type { NamedRange } from '../../../common/symbols/source.ts';
import { productVersion } from '../../base/product-version.ts';
import { cachePathOf, pruneCacheFiles, readCacheFile, writeCacheFile } from '../../files/cache-directory.ts';
import { fileOpener } from '../../files/file-opener.ts';
import type { Probe } from '../../files/file-pool.ts';

const FORMAT = 'everyframe-names 5';
const ENDING = '.names';
const MAX_FILE_BYTES = 8 << 20;
const MAX_RANGES = 4096;
const MAX_PROBES = 64;
const DEFAULT_MAX_BYTES = 64 << 20;
const MIN_NEW = 4;

const frame = v.object({
  function: v.string(),
  systemName: v.string(),
  file: v.string(),
  line: v.number(),
  column: v.number(),
  inlined: v.boolean(),
});
const content = v.object({
  probes: v.array(v.object({ where: v.picklist(['host', 'root']), path: v.string(), identity: v.string() })),
  missing: v.array(v.string()),
  answers: v.array(v.tuple([v.number(), v.number(), v.array(frame), v.nullable(v.number())])),
});

type Content = v.InferOutput<typeof content>;

/** The answers for one executable. */
export class Answers {
  readonly ranges = new RangeMap<NamedRange>();
  /** Build IDs of debug information that was missing when they were found. */
  readonly missing = new Set<string>();
  /** How many are on disk. */
  saved = 0;
  #probes: Map<string, Probe> | undefined = new Map();

  /** Files that the answers depend on; undefined if these are too many, or can't be told. */
  get probes(): Probe[] | undefined {
    return this.#probes && [...this.#probes.values()];
  }

  dependOn(probes: readonly Probe[] | undefined): void {
    for (const probe of probes ?? []) this.#probes?.set(JSON.stringify(probe), probe);
    if (!probes || (this.#probes?.size ?? 0) > MAX_PROBES) this.#probes = undefined;
  }

  /** No path led to something else when the others were found. */
  agreesWith(others: readonly Probe[]): boolean {
    const own = new Map(this.probes?.map(({ where, path, identity }) => [`${where} ${path}`, identity]));
    return others.every(
      ({ where, path, identity }) => (own.get(`${where} ${path}`) ?? identity) === identity,
    );
  }

  addAll({ answers, missing, probes }: Content): void {
    for (const [start, end, frames, functionStart] of answers)
      this.add(start, { start, end, frames, ...(functionStart !== null && { functionStart }) });
    for (const buildId of missing) this.missing.add(buildId);
    this.dependOn(probes);
  }

  /** Adds the name of an address, and of all others in its range. */
  add(address: number, name: NamedRange): void {
    if (this.ranges.size < MAX_RANGES && !this.ranges.get(address)) this.ranges.set(address, name, name);
  }
}

export class AnswerCache {
  readonly #directory: string;
  readonly #maxBytes: number;
  /** With the version of the product: another one may read the same symbols in another way. */
  readonly #format: string;
  #pruned = false;

  /** Throws where the directory can't be made, or others may write to it. */
  constructor(directory: string, maxBytes = DEFAULT_MAX_BYTES) {
    this.#directory = directory;
    this.#maxBytes = maxBytes;
    this.#format = `${FORMAT} ${productVersion()}`;
    fileOpener().makeCacheDirectory(directory);
  }

  /** Loads answers of an earlier run that still hold; `identify` says what a path leads to now. */
  load(key: string, identify: (where: Probe['where'], path: string) => string): Answers {
    const answers = new Answers();
    try {
      const found = this.#read(key);
      if (!found) return answers;
      if (found.probes.some((probe) => identify(probe.where, probe.path) !== probe.identity)) return answers;
      answers.addAll(found);
      answers.saved = answers.ranges.size;
      fileOpener().touchCached(this.#pathOf(key));
    } catch {
      // what is damaged is found anew, and written over
    }
    return answers;
  }

  /** Writes them where enough is new, so that a file is written a few times while it grows and not for each straggler. */
  save(key: string, answers: Answers): void {
    const count = answers.ranges.size;
    const isFull = count === MAX_RANGES && answers.saved < count;
    if (isFull || count - answers.saved >= Math.max(MIN_NEW, answers.saved / 4)) this.#write(key, answers);
  }

  /** At the end: writes them where any are new, with those that another thread has written meanwhile. */
  saveAll(key: string, answers: Answers): void {
    if (answers.ranges.size === answers.saved) return;
    try {
      const others = this.#read(key);
      if (others && answers.agreesWith(others.probes)) answers.addAll(others);
    } catch {
      // damaged: it is written over
    }
    this.#write(key, answers);
  }

  /** Reads what is on disk, valid or not. Throws if it is damaged. */
  #read(key: string): Content | undefined {
    const body = readChecked(this.#pathOf(key), this.#format);
    return body === undefined ? undefined : v.parse(content, JSON.parse(body));
  }

  /** Writes the answers, if it is known what they depend on. */
  #write(key: string, answers: Answers): void {
    const { probes } = answers;
    const count = answers.ranges.size;
    if (!probes) return;
    const ranges = [...answers.ranges.entries()].map(([start, end, { frames, functionStart }]) => [
      start,
      end,
      frames,
      functionStart ?? null,
    ]);
    const body = JSON.stringify({ probes, missing: [...answers.missing], answers: ranges });
    if (body.length > MAX_FILE_BYTES) return;
    answers.saved = count;
    this.#prune();
    // a full disk: the next run finds names as this one did
    writeCacheFile(this.#pathOf(key), `${this.#format} ${checksum(body)}\n${body}`);
  }

  #pathOf(key: string): string {
    return cachePathOf(this.#directory, key, ENDING);
  }

  /** Once a run: what was used longest ago leaves. */
  #prune(): void {
    if (this.#pruned) return;
    this.#pruned = true;
    try {
      pruneCacheFiles(this.#directory, ENDING, { maxBytes: this.#maxBytes });
    } catch {
      // the directory is gone: nothing can be written, either
    }
  }
}

const checksum = (body: string): string => createHash('sha256').update(body).digest('hex');

/** Undefined where there is none, or one of another version, of somebody else, or damaged. */
function readChecked(path: string, format: string): string | undefined {
  const text = readCacheFile(path, MAX_FILE_BYTES + 4096)?.toString('utf8');
  if (text === undefined) return undefined;
  const end = text.indexOf('\n');
  const body = text.slice(end + 1);
  return text.slice(0, end) === `${format} ${checksum(body)}` ? body : undefined;
}
