/** A perf map or jitdump that is read as it grows. */
import type { Pid } from '../../common/base/brand.ts';
import { CHUNK_BYTES, type JitCode, type JitName, type ReadAt } from '../../common/jit/jit-code.ts';
import { closeFile, type ForeignFiles, fileReader } from '../processes/foreign-files.ts';

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
  readonly #files: ForeignFiles;
  readonly #pid: Pid;
  readonly #fd: number;
  readonly #make: () => JitCode;
  #code: JitCode;
  /** Next byte to read; -1: no more. */
  #offset = 0;
  /** At the last look; the offset lies behind it where a record is not written to its end. */
  #size = 0;
  #left = MAX_BYTES;
  #wasUnlinked = false;

  /** Takes the descriptor over. `make`: a parser for a file that was not read yet. */
  constructor({ files, pid, fd }: { files: ForeignFiles; pid: Pid; fd: number }, make: () => JitCode) {
    this.#files = files;
    this.#pid = pid;
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
    const stats = await this.#files.stat(this.#pid, this.#fd);
    if (typeof stats === 'number') return 'same';
    this.#wasUnlinked = stats.links === 0;
    const size = Number(stats.size);
    const isShorter = size < this.#size;
    if (isShorter) this.forget();
    this.#size = size;
    const from = this.#offset;
    if (!(await this.#readUntil(size))) return 'too-long';
    if (isShorter) return 'replaced';
    return this.#offset === from ? 'same' : 'grown';
  }

  /** To be read again from the start. */
  forget(): void {
    this.#code = this.#make();
    this.#offset = 0;
  }

  close(): void {
    closeFile({ fd: this.#fd });
  }

  readonly #read: ReadAt = async (offset, length) => {
    const bytes = Buffer.allocUnsafe(length);
    const count = await fileReader(this.#files, this.#pid, this.#fd)(offset, bytes);
    return bytes.subarray(0, count);
  };

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
