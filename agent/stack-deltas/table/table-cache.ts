/**
 * Tables that were made in an earlier run, on disk: a file per executable, in a directory of this user alone. A table
 * is believed for the very file that it was made of: by file ID, device, inode, size and change time. The file ID
 * alone would not do, since it covers the edges of a file only. What is read is checked as if it came from a stranger,
 * and what is damaged is made anew.
 *
 * A line of text (format, product version, SHA-256 of key and rest), the numbers below, the image.
 */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Machine } from '../../../common/elf/elf.ts';
import { productVersion } from '../../base/product-version.ts';
import { cachePathOf, pruneCacheFiles, readCacheFile, writeCacheFile } from '../../files/cache-directory.ts';
import { fileOpener } from '../../files/file-opener.ts';
import { MAX_IMAGE_BYTES } from '../rules/table-limits.ts';
import type { UnwindTable } from './build-table.ts';
import { checkTable } from './check-table.ts';
import type { PackedTable } from './pack.ts';

export type CachedTable = { kind: 'found'; unwind: UnwindTable } | { kind: 'missing' } | { kind: 'damaged' };

const FORMAT = 'everyframe-table 10';
const ENDING = '.table';
const NUMBERS = ['firstPage', 'pageCount', 'rulesAt', 'rowsAt', 'rowCount', 'ruleCount'] as const;
const NUMBER_BYTES = 4 * (NUMBERS.length + 1);
const MAX_LINE_BYTES = 256;
const DEFAULT_MAX_BYTES = 256 << 20;

export class TableCache {
  readonly #directory: string;
  readonly #maxBytes: number;
  readonly #format: string;
  /** Since it was looked how much there is. */
  #written = Number.POSITIVE_INFINITY;

  /** Keeps them in a folder of `directory`. Throws where that can't be made, or others may write to it. */
  constructor(directory: string, maxBytes = DEFAULT_MAX_BYTES) {
    this.#directory = join(directory, 'tables');
    this.#maxBytes = maxBytes;
    this.#format = `${FORMAT} ${productVersion()}`;
    fileOpener().makeCacheDirectory(this.#directory);
  }

  /** Never throws. */
  load(key: string, machine: Machine): CachedTable {
    const path = this.#pathOf(key);
    try {
      const bytes = readCacheFile(path, MAX_IMAGE_BYTES + NUMBER_BYTES + MAX_LINE_BYTES);
      if (!bytes) return { kind: 'missing' };
      const end = bytes.subarray(0, MAX_LINE_BYTES).indexOf('\n');
      const body = bytes.subarray(end + 1);
      const line = bytes.toString('latin1', 0, end);
      // of another version: written over soon
      if (end < 0 || !line.startsWith(`${this.#format} `)) return { kind: 'missing' };
      if (line !== `${this.#format} ${checksum(key, body)}` || body.length < NUMBER_BYTES)
        return { kind: 'damaged' };
      const unwind = readBody(body);
      if (checkTable(unwind.table, machine) !== '') return { kind: 'damaged' };
      fileOpener().touchCached(path);
      return { kind: 'found', unwind };
    } catch {
      return { kind: 'missing' };
    }
  }

  /** Whether it was written; what has no table, or rules of other files, is not worth it, or not to be trusted. */
  save(key: string, { table, badFdes, usesSeparate }: UnwindTable): boolean {
    if (!table || usesSeparate) return false;
    const head = Buffer.alloc(NUMBER_BYTES);
    for (const [i, name] of NUMBERS.entries()) head.writeUInt32LE(table[name], i * 4);
    head.writeUInt32LE(badFdes, NUMBERS.length * 4);
    const body = Buffer.concat([head, table.image]);
    try {
      this.#prune(body.length);
    } catch {
      return false;
    }
    const line = Buffer.from(`${this.#format} ${checksum(key, body)}\n`);
    return writeCacheFile(this.#pathOf(key), Buffer.concat([line, body]));
  }

  #pathOf(key: string): string {
    return cachePathOf(this.#directory, key, ENDING);
  }

  /** What was used longest ago leaves, down to seven eighths, so that it is not looked at each time. */
  #prune(bytes: number): void {
    this.#written += bytes;
    const room = this.#maxBytes / 8;
    if (this.#written <= room) return;
    pruneCacheFiles(this.#directory, ENDING, { maxBytes: this.#maxBytes - room - bytes });
    this.#written = bytes;
  }
}

const checksum = (key: string, body: Uint8Array): string =>
  createHash('sha256').update(key).update('\0').update(body).digest('hex');

function readBody(body: Buffer): UnwindTable & { table: PackedTable } {
  const number = (i: number): number => body.readUInt32LE(i * 4);
  const [firstPage, pageCount, rulesAt, rowsAt, rowCount, ruleCount] = NUMBERS.map((_, i) => number(i)) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  // a copy of its own: it is handed over to another thread
  const image = new Uint8Array(body.subarray(NUMBER_BYTES));
  const table = { image, firstPage, pageCount, rulesAt, rowsAt, rowCount, ruleCount };
  return { table, badFdes: number(NUMBERS.length), usesSeparate: false };
}
