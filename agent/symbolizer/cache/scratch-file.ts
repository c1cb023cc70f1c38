/**
 * Tables that were made of a file, in a file without a name: it is gone when it is closed, also after a crash. Those that
 * have a name themselves are handed on before, for later runs.
 */
import { closeSync, readSync, statfsSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { type ByteSource, bufferSource, OutOfBounds } from '../../../common/base/byte-source.ts';
import type { Scratch } from '../../../common/symbols/scratch.ts';
import { fileOpener } from '../../files/file-opener.ts';
import type { KeptTables } from './kept-tables.ts';

const MAX_BYTES = 512 << 20;
const TMPFS_MAGIC = 0x01021994;

/** Bytes that all scratch files together may still take. */
export interface ScratchRoom {
  directory: string;
  left: number;
}

/** Room on a disk; undefined where none of the directories is on one and can be written to. */
export function findScratchRoom(directories: readonly (string | undefined)[]): ScratchRoom | undefined {
  for (const directory of new Set([...directories, '/var/tmp', tmpdir()])) {
    if (directory === undefined || !isOnDisk(directory)) continue;
    try {
      closeSync(fileOpener().openScratch(directory));
      return scratchRoomIn(directory);
    } catch {
      // the next one
    }
  }
  return undefined;
}

/** Room in a directory that is known to be on a disk. */
export const scratchRoomIn = (directory: string): ScratchRoom => ({ directory, left: MAX_BYTES });

export class ScratchFile implements Scratch {
  readonly #room: ScratchRoom;
  readonly #kept: KeptTables | undefined;
  readonly #named = new Map<string, ByteSource>();
  #fd: number | undefined;
  #size = 0;
  #isFull = false;

  /** `kept`: those of earlier runs; they stay the caller's until this is closed. */
  constructor(room: ScratchRoom, kept?: KeptTables) {
    this.#room = room;
    this.#kept = kept;
  }

  get isOutside(): boolean {
    return !this.#isFull;
  }

  find(name: string): ByteSource | undefined {
    return this.#named.get(name) ?? this.#kept?.find(name);
  }

  store(bytes: Uint8Array, name?: string): ByteSource {
    const stored = this.#store(bytes);
    if (name !== undefined && this.#kept && !this.#isFull) this.#named.set(name, stored);
    return stored;
  }

  #store(bytes: Uint8Array): ByteSource {
    if (bytes.length > this.#room.left) this.#isFull = true;
    if (this.#isFull) return bufferSource(bytes);
    const at = this.#size;
    try {
      this.#fd ??= fileOpener().openScratch(this.#room.directory);
      for (let done = 0; done < bytes.length; )
        done += writeSync(this.#fd, bytes, done, bytes.length - done, at + done);
    } catch {
      // no disk left: what comes from now on stays in memory, as it would without the file
      this.#isFull = true;
      return bufferSource(bytes);
    }
    this.#size += bytes.length;
    this.#room.left -= bytes.length;
    return this.#part(at, bytes.length);
  }

  /** Not where the bytes are in scope: they would live as long as the part does. */
  #part(at: number, size: number): ByteSource {
    return { size, read: (offset, length) => this.#read(at, size, offset, length) };
  }

  close(): void {
    this.#kept?.close(this.#named);
    this.#named.clear();
    this.#room.left += this.#size;
    this.#size = 0;
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }

  #read(at: number, size: number, offset: number, length: number): Uint8Array {
    if (this.#fd === undefined || !(offset >= 0 && length >= 0 && offset + length <= size))
      throw new OutOfBounds(`${length} bytes at ${offset} of ${size}`);
    const bytes = new Uint8Array(length);
    for (let done = 0; done < length; ) {
      const n = readSync(this.#fd, bytes, done, length - done, at + offset + done);
      if (n === 0) throw new OutOfBounds(`${length} bytes at ${offset}: the scratch file ends`);
      done += n;
    }
    return bytes;
  }
}

function isOnDisk(directory: string): boolean {
  try {
    return statfsSync(directory).type !== TMPFS_MAGIC;
  } catch {
    return false;
  }
}
