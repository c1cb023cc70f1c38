/**
 * Names of JIT-compiled code out of a file that the process writes while it runs: a perf map or a jitdump. Both are
 * read as they grow, and keep only where in the file each function stands: names are read for sampled addresses.
 */
import type { SymbolFrame } from '../symbols/source.ts';

/** Up to `length` bytes of the file from `offset` on; fewer at its end. */
export type ReadAt = (offset: number, length: number) => Promise<Uint8Array>;

export interface JitCode {
  readonly byteLength: number;
  /**
   * Takes bytes of the file from `offset` on, at least {@link CHUNK_BYTES} unless the file ends before. Returns where
   * to go on: `offset` itself where the rest has to be written first, -1 where reading on makes no sense.
   */
  push(chunk: Uint8Array, offset: number): number;
  /** What covers an address of the process by now: the same number as long as nothing newer does. */
  find(address: number): number | undefined;
  /** The function at a place that {@link find} gave for the address. Rejects as `read` does. */
  describe(place: number, address: number, read: ReadAt): Promise<JitName>;
}

/** `replaced`: the file was written anew under us, and has to be read from its start. */
export type JitName = SymbolFrame | 'replaced';

export interface JitCodeStats {
  /** Functions taken in. */
  functions: number;
  /** Lines or records that make no sense. */
  malformed: number;
  /** Functions left out because there are too many. */
  dropped: number;
}

export const noJitCodeStats = (): JitCodeStats => ({ functions: 0, malformed: 0, dropped: 0 });

export const CHUNK_BYTES = 64 * 1024;
/** Longer names are cut. */
export const MAX_NAME_BYTES = 512;
/** No process has code beyond it, and a number holds it exactly. */
export const MAX_ADDRESS = 2 ** 52;

/** Text as a process wrote it: cut, without control characters, invalid UTF-8 replaced. */
export function readName(bytes: Uint8Array): string {
  const text = Buffer.from(bytes.subarray(0, MAX_NAME_BYTES)).toString('utf8');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it is those that must go
  return text.replace(/[\x00-\x1f\x7f]/g, ' ').trim();
}
