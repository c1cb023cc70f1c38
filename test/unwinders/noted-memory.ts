import { openSync, readSync } from 'node:fs';
import type { ProcessMemory } from '../../agent/interpreters/contract.ts';

/** What is kept around each read, in bytes: code that changes may read a little more. */
const GRAIN = 64;

interface Piece {
  start: number;
  bytes: Buffer;
}

/** Memory of a stopped process, which notes what was read of it. */
export class NotedMemory implements ProcessMemory {
  readonly #fd: number;
  readonly #grains = new Set<number>();

  constructor(pid: number) {
    this.#fd = openSync(`/proc/${pid}/mem`, 'r');
  }

  read(address: number, length: number): Uint8Array | undefined {
    try {
      const bytes = new Uint8Array(length);
      const count = readSync(this.#fd, bytes, 0, length, address);
      this.note(address, count);
      return count > 0 ? bytes.subarray(0, count) : undefined;
    } catch {
      // not mapped
      return undefined;
    }
  }

  note(address: number, length: number): void {
    for (let at = Math.floor(address / GRAIN); at * GRAIN < address + length; at++) this.#grains.add(at);
  }

  /** Of all that was noted. */
  forEachWord(visit: (word: number) => void): void {
    for (const { bytes } of this.pieces())
      for (let at = 0; at < bytes.length; at += 8) visit(Number(bytes.readBigUInt64LE(at)));
  }

  /** What was noted, in order and apart from one another. */
  pieces(): Piece[] {
    const grains = [...this.#grains].sort((a, b) => a - b);
    const pieces: Piece[] = [];
    for (let i = 0; i < grains.length; ) {
      const from = i;
      while (i + 1 < grains.length && grains[i + 1] === grains[i]! + 1) i++;
      i++;
      const bytes = Buffer.alloc((i - from) * GRAIN);
      readSync(this.#fd, bytes, 0, bytes.length, grains[from]! * GRAIN);
      pieces.push({ start: grains[from]! * GRAIN, bytes });
    }
    return pieces;
  }
}
