/**
 * Where hand-written functions end, by their own code: symbols of nasm and perlasm often have no size, and there is no
 * call frame information. Only what is surely of the same function counts: what runs straight on, and where branches
 * lead that may not be taken. Other jumps may be tail calls of a neighbour.
 */

import { OutOfBounds } from '../../../common/base/byte-source.ts';
import type { ElfFile } from '../../../common/elf/elf.ts';
import type { FollowCode } from '../../../common/symbols/elf-symbols.ts';
import { PROCESSORS } from '../../stack-deltas/machine-code/add-code.ts';
import { type CodeReader, Effect } from '../../stack-deltas/machine-code/code-reader.ts';

/** The longest of OpenSSL's are some 20 KiB. */
const MAX_BYTES = 64 << 10;
/** Limit for one file. */
const MAX_INSTRUCTIONS = 400_000;
const CALLS: ReadonlySet<number> = new Set([Effect.CALL, Effect.CALL_INDIRECT]);
const ENDS: ReadonlySet<number> = new Set([
  Effect.JUMP,
  Effect.JUMP_INDIRECT,
  Effect.RETURN,
  Effect.END,
  Effect.UNKNOWN,
]);

export function codeFollower(elf: ElfFile): FollowCode {
  let left = MAX_INSTRUCTIONS;
  return (start, limit) => {
    const bytes = readCode(elf, start, limit);
    if (!bytes) return undefined;
    const reach = new CodeReach(PROCESSORS[elf.machine].newReader(bytes, start), start, bytes.length, left);
    const size = reach.follow();
    left = reach.left;
    return size === 0 ? undefined : start + size;
  };
}

function readCode(elf: ElfFile, start: number, limit: number): Uint8Array | undefined {
  const offset = elf.addressToFileOffset(start);
  if (offset === undefined) return undefined;
  try {
    return elf.source.read(offset, Math.min(limit - start, MAX_BYTES, elf.source.size - offset));
  } catch (error) {
    if (!(error instanceof OutOfBounds)) throw error;
    return undefined;
  }
}

class CodeReach {
  readonly #reader: CodeReader;
  readonly #start: number;
  readonly #size: number;
  readonly #seen = new Set<number>();
  /** Instructions that may still be read. */
  left: number;
  #end = 0;

  constructor(reader: CodeReader, start: number, size: number, left: number) {
    this.#reader = reader;
    this.#start = start;
    this.#size = size;
    this.left = left;
  }

  /** Bytes of the function; 0 where not even its first instruction is understood. */
  follow(): number {
    const todo = [0];
    for (let at = todo.pop(); at !== undefined; at = todo.pop()) {
      for (let last: number = Effect.NONE; this.#isNew(at); ) {
        this.#seen.add(at);
        const { effect, value, length } = this.#read(at);
        // padding behind a call: it never returns
        if (effect === Effect.UNKNOWN || (effect === Effect.PADDING && CALLS.has(last))) break;
        if (effect === Effect.BRANCH && this.#isInside(value)) todo.push(value - this.#start);
        at += length;
        if (effect !== Effect.PADDING) this.#end = Math.max(this.#end, at);
        if (ENDS.has(effect)) break;
        last = effect;
      }
    }
    return this.#end;
  }

  #isNew(at: number): boolean {
    return at < this.#size && !this.#seen.has(at) && this.left-- > 0;
  }

  #read(at: number): CodeReader {
    this.#reader.read(at);
    return this.#reader;
  }

  #isInside(address: number): boolean {
    return address >= this.#start && address < this.#start + this.#size;
  }
}
