/** What Ruby's machine code says about places that stripped builds have no symbols for: machine-code-amd64.ts, machine-code-arm64.ts. */
import type { CodeRange } from '../../../common/elf/function-ranges.ts';

export interface Code {
  /** ELF virtual address. */
  address: number;
  bytes: Uint8Array;
}

/** Where a thread keeps its execution context. */
export type ContextAccess =
  | { kind: 'global'; address: number }
  | { kind: 'offset'; offset: number }
  | { kind: 'module'; slot: number; add: number }
  /** The same on arm64: the second word at `got` is its distance from the thread pointer, or leads to both numbers. */
  | { kind: 'descriptor'; got: number; add: number };

/** An instruction that leads to another function. */
export type Branch = 'call' | 'jump';

/** Offsets: of the object space in rb_vm_t, and of the flags in that. */
export interface CollectorPlace {
  space: number;
  flags: number;
}

/** How the code of a processor is read; each gives undefined, or nothing, where the code has no shape that is known. */
export interface Decoder {
  /** The first thread-local variable that the function reads. */
  firstThreadLocal(code: Code): ContextAccess | undefined;
  /** Where calls and jumps lead to, outside of the function; of amd64 also bytes that look like one. */
  targetsOf(code: Code, branches: readonly Branch[]): number[];
  /** The place that a 32-bit register is compared with. */
  firstCompared(code: Code): number | undefined;
  /** What `rb_during_gc` reads. */
  readsCollector(code: Code): CollectorPlace | undefined;
}

const MIN_SPACE = 0x100;
const MAX_SPACE = 0x1_0000;

/** Is it far enough in rb_vm_t for the pointer to the object space? */
export const mayBeSpace = (offset: number): boolean => offset >= MIN_SPACE && offset < MAX_SPACE;

export const sizeOf = ({ start, end }: CodeRange): number => end - start;
