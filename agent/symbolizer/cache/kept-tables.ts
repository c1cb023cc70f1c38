/**
 * Tables of symbols and units of DWARF that earlier runs made, on disk: a file per executable, in a directory of this
 * user alone. Its key is what tells the executable from all others; each part is named by who made it. What is damaged is
 * made anew.
 *
 * A line of text (format, product version, SHA-256 of key and index, bytes of the index), the index as JSON (name, size
 * and CRC-32 of each part), the parts one behind the other.
 */
import { createHash } from 'node:crypto';
import { closeSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import * as v from 'valibot';
import { type ByteSource, partOf } from '../../../common/base/byte-source.ts';
import { productVersion } from '../../base/product-version.ts';
import { cachePathOf, openCacheFile, pruneCacheFiles, writeCacheFile } from '../../files/cache-directory.ts';
import { fdSource } from '../../files/fd-source.ts';
import { fileOpener } from '../../files/file-opener.ts';

const FORMAT = 'everyframe-symbols 1';
const ENDING = '.symbols';
const MAX_LINE_BYTES = 256;
const MAX_INDEX_BYTES = 1 << 20;
/** Limit for one executable. */
const MAX_FILE_BYTES = 64 << 20;
const MAX_PARTS = 8192;
/** Written again for whatever is new, a larger one once an eighth is. */
const SMALL_BYTES = 4 << 20;
const DEFAULT_MAX_BYTES = 256 << 20;

const index = v.array(v.tuple([v.string(), v.number(), v.number()]));

interface Part {
  at: number;
  size: number;
  crc: number;
}

/** Open, with what is in it by name. */
interface KeptFile {
  fd: number;
  parts: ReadonlyMap<string, Part>;
}

export class TableStore {
  readonly #directory: string;
  readonly #maxBytes: number;
  /** With the version of the product: another one may make other tables. */
  readonly #format: string;
  #isPruned = false;

  /** Keeps them in a folder of `directory`. Throws where that can't be made, or others may write to it. */
  constructor(directory: string, maxBytes = DEFAULT_MAX_BYTES) {
    this.#directory = join(directory, 'symbols');
    this.#maxBytes = maxBytes;
    this.#format = `${FORMAT} ${productVersion()}`;
    fileOpener().makeCacheDirectory(this.#directory);
  }

  /** Opens the tables of an executable; none if there are none yet, or they are damaged. Never throws. */
  open(key: string): KeptTables {
    const save = (all: ReadonlyMap<string, ByteSource>): void => this.#save(key, all);
    const fd = openCacheFile(this.#pathOf(key), MAX_FILE_BYTES + MAX_INDEX_BYTES + MAX_LINE_BYTES);
    if (fd === undefined) return new KeptTables(save);
    const parts = this.#readIndex(fd, key);
    if (parts) return new KeptTables(save, { fd, parts });
    closeSync(fd);
    return new KeptTables(save);
  }

  #readIndex(fd: number, key: string): Map<string, Part> | undefined {
    try {
      const file = fdSource(fd);
      const head = Buffer.from(file.read(0, Math.min(file.size, MAX_LINE_BYTES)));
      const end = head.indexOf('\n');
      const [, bytes] = / (\d+)$/.exec(head.toString('latin1', 0, end)) ?? [];
      const body = Buffer.from(file.read(end + 1, Math.min(Number(bytes), MAX_INDEX_BYTES)));
      if (head.toString('latin1', 0, end + 1) !== this.#line(key, body)) return undefined;
      const parts = new Map<string, Part>();
      let at = end + 1 + body.length;
      for (const [name, size, crc] of v.parse(index, JSON.parse(body.toString()))) {
        parts.set(name, { at, size, crc });
        at += size;
      }
      fileOpener().touchCached(this.#pathOf(key));
      return parts;
    } catch {
      return undefined;
    }
  }

  /** Saves tables; those that exceed the room of a file are left out. */
  #save(key: string, all: ReadonlyMap<string, ByteSource>): void {
    const parts: [string, ByteSource, number][] = [];
    let left = MAX_FILE_BYTES;
    for (const [name, part] of all) {
      if (part.size > left || parts.length === MAX_PARTS) continue;
      left -= part.size;
      parts.push([name, part, crc32(part.read(0, part.size))]);
    }
    const body = Buffer.from(JSON.stringify(parts.map(([name, { size }, crc]) => [name, size, crc])));
    if (body.length > MAX_INDEX_BYTES) return;
    this.#prune();
    const line = this.#line(key, body);
    // one in memory at a time
    writeCacheFile(
      this.#pathOf(key),
      (function* () {
        yield line;
        yield body;
        for (const [, part] of parts) yield part.read(0, part.size);
      })(),
    );
  }

  #line(key: string, body: Buffer): string {
    const checksum = createHash('sha256').update(key).update('\0').update(body).digest('hex');
    return `${this.#format} ${checksum} ${body.length}\n`;
  }

  #pathOf(key: string): string {
    return cachePathOf(this.#directory, key, ENDING);
  }

  /** Once a run: what was used longest ago leaves. */
  #prune(): void {
    if (this.#isPruned) return;
    this.#isPruned = true;
    try {
      pruneCacheFiles(this.#directory, ENDING, { maxBytes: this.#maxBytes });
    } catch {
      // the directory is gone: nothing can be written, either
    }
  }
}

/** Tables of one executable. */
export class KeptTables {
  readonly #save: (all: ReadonlyMap<string, ByteSource>) => void;
  readonly #file: KeptFile | undefined;
  /** That were read whole and found right. */
  readonly #checked = new Map<string, ByteSource>();

  constructor(save: (all: ReadonlyMap<string, ByteSource>) => void, file?: KeptFile) {
    this.#save = save;
    this.#file = file;
  }

  /** Undefined where it is damaged, too. */
  find(name: string): ByteSource | undefined {
    return this.#checked.get(name) ?? this.#check(name);
  }

  /**
   * Writes them with those that are new, where these are worth writing all of them again. `added` are not read
   * afterwards. Never throws.
   */
  close(added: ReadonlyMap<string, ByteSource>): void {
    try {
      if (this.#isWorth(added)) this.#save(new Map([...added, ...this.#known(added)]));
    } catch {
      // a disk that fails: the next run makes them as this one did
    } finally {
      if (this.#file) closeSync(this.#file.fd);
    }
  }

  #isWorth(added: ReadonlyMap<string, ByteSource>): boolean {
    const known = this.#file ? bytesOf(this.#file.parts) : 0;
    return added.size > 0 && (known < SMALL_BYTES || bytesOf(added) * 8 >= known);
  }

  *#known(added: ReadonlyMap<string, ByteSource>): Generator<[string, ByteSource]> {
    for (const name of this.#file?.parts.keys() ?? []) {
      const part = added.has(name) ? undefined : this.find(name);
      if (part) yield [name, part];
    }
  }

  #check(name: string): ByteSource | undefined {
    const part = this.#file?.parts.get(name);
    if (!part) return undefined;
    const source = partOf(fdSource(this.#file!.fd), part.at, part.size);
    try {
      if (crc32(source.read(0, part.size)) !== part.crc) return undefined;
    } catch {
      return undefined;
    }
    this.#checked.set(name, source);
    return source;
  }
}

function bytesOf(parts: ReadonlyMap<string, { size: number }>): number {
  let bytes = 0;
  for (const { size } of parts.values()) bytes += size;
  return bytes;
}
