/** A perf map or jitdump that is read as it grows. */
import { CHUNK_BYTES, type JitCode, type JitName, type ReadAt } from '../../common/jit/jit-code.ts';
import { closeAsync, fstatAsync, readAt } from './open-jit-file.ts';

/** In one go, so that one process's file can't hold up the others'. */
const MAX_STEP_BYTES = 8 << 20;
/** In all: a process that writes more has its later functions unnamed. */
const MAX_BYTES = 256 << 20;

export type Growth =
  | 'same'
  | 'grown'
  /** Something else stands there: what was read is forgotten. */
  | 'replaced'
  /** It is longer than is read. */
  | 'too-long';

export class FollowedFile {
  readonly #make: () => JitCode;
  readonly #fd: number;
  #code: JitCode;
  /** Next byte to read; -1: no more. */
  #offset = 0;
  /** At the last look; the offset lies behind it where a record is not written to its end. */
  #size = 0;
  #left = MAX_BYTES;
  #wasUnlinked = false;

  /** Takes the descriptor over. `make`: a parser for a file that was not read yet. */
  constructor(fd: number, make: () => JitCode) {
    this.#fd = fd;
    this.#make = make;
    this.#code = make();
  }

  /** Another object after the file was written anew. */
  get code(): JitCode {
    return this.#code;
  }

  /** It has no name any more; the process may have made another. */
  get wasUnlinked(): boolean {
    return this.#wasUnlinked;
  }

  describe(place: number, address: number): Promise<JitName> {
    return this.#code.describe(place, address, this.#read);
  }

  /** Reads what has come since the last time. */
  async follow(): Promise<Growth> {
    const stats = await fstatAsync(this.#fd).catch(() => undefined);
    if (!stats) return 'same';
    this.#wasUnlinked = stats.nlink === 0;
    const isShorter = stats.size < this.#size;
    if (isShorter) this.forget();
    this.#size = stats.size;
    const from = this.#offset;
    if (!(await this.#readUntil(stats.size))) return 'too-long';
    if (isShorter) return 'replaced';
    return this.#offset === from ? 'same' : 'grown';
  }

  /** To be read again from the start. */
  forget(): void {
    this.#code = this.#make();
    this.#offset = 0;
  }

  close(): Promise<void> {
    return closeAsync(this.#fd);
  }

  readonly #read: ReadAt = (offset, length) => readAt(this.#fd, offset, length);

  async #readUntil(size: number): Promise<boolean> {
    for (let step = MAX_STEP_BYTES; step > 0 && this.#offset >= 0 && this.#offset < size; ) {
      if (this.#left <= 0) {
        this.#offset = -1;
        return false;
      }
      const chunk = await this.#read(this.#offset, CHUNK_BYTES);
      const next = chunk.length === 0 ? this.#offset : this.#code.push(chunk, this.#offset);
      if (next === this.#offset) break;
      step -= chunk.length;
      this.#left -= chunk.length;
      this.#offset = next;
    }
    return true;
  }
}
