/**
 * What registers hold while code of arm64 runs, as far as that is known: an address in the file, the thread pointer, what stands
 * at one of the two. An address takes two or three instructions there, in any registers, so code is not compared with shapes
 * but followed from its first instruction on. Encodings: Arm Architecture Reference Manual, C4.1 and C6.2.
 */

/** `offset` counts from what `base` names. */
export interface Value {
  /** `pointer`: the address that stands in the global offset table. `descriptor`: of a variable of the thread. */
  base: 'file' | 'pointer' | 'thread' | 'descriptor';
  offset: number;
  /** Not the address itself but what stands there. */
  isLoaded: boolean;
  /** Of a descriptor: its two words. */
  got: number;
}

export type Registers = (Value | undefined)[];
export type End = 'call' | 'return';

/** Code and its ELF address. */
export interface Code {
  address: number;
  bytes: Uint8Array;
}

/** Where a variable of the thread is. */
export type ThreadLocal =
  | { kind: 'offset'; offset: number }
  /** The second word at `got` is its distance from the thread pointer, or leads to module ID and offset; `add` is added. */
  | { kind: 'descriptor'; got: number; add: number };

const MAX_BYTES = 96;
const CALLER_SAVED = 18;

export const isReturn = (word: number): boolean => word === 0xd65f03c0;
/** b, which may be the end of a function. */
export const isJump = (word: number): boolean => word >>> 26 === 0x05;
export const isCall = (word: number): boolean => word >>> 26 === 0x25;
/** Where b or bl at `pc` leads to. */
export const targetOf = (word: number, pc: number): number => pc + ((word << 6) >> 6) * 4;

export const viewOf = ({ bytes }: Code): DataView =>
  new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength & ~3);

/** Of a variable that was loaded. */
export function threadLocal(value: Value | undefined): ThreadLocal | undefined {
  if (!value?.isLoaded) return undefined;
  const { base, offset, got } = value;
  if (base === 'thread') return { kind: 'offset', offset };
  return base === 'descriptor' ? { kind: 'descriptor', got, add: offset } : undefined;
}

/**
 * Follows a short function until it calls another one or returns, and asks `judge` there. Branches are not taken: what they
 * skip is the case in which there is nothing to be found.
 */
export function follow<T>(
  code: Code,
  judge: (x0: Value | undefined, end: End) => T | undefined,
): T | undefined {
  const view = viewOf(code);
  const registers: Registers = [];
  for (let at = 0; at + 4 <= Math.min(view.byteLength, MAX_BYTES); at += 4) {
    const word = view.getUint32(at, true);
    if (isReturn(word)) return judge(registers[0], 'return');
    if (isJump(word) || isCall(word)) {
      const found = judge(registers[0], 'call');
      if (found || isJump(word)) return found;
    }
    step(word, code.address + at, registers);
  }
  return undefined;
}

/** Brings the registers behind the instruction. */
export function step(word: number, pc: number, registers: Registers): void {
  if (isCall(word)) registers.fill(undefined, 0, CALLER_SAVED + 1);
  else if (word >>> 10 === 0x358fc0) callDescriptor(registers);
  // cbz and b change none
  else if (word >>> 24 !== 0x34 && word >>> 24 !== 0xb4 && !isJump(word))
    registers[word & 31] = execute(word, pc, registers);
}

/** blr to the function of a descriptor: x0 becomes the distance of the variable from the thread pointer, nothing else changes. */
function callDescriptor(registers: Registers): void {
  const x0 = registers[0];
  const isDescriptor = x0?.base === 'file' && !x0.isLoaded;
  if (!isDescriptor) return void registers.fill(undefined, 0, CALLER_SAVED + 1);
  registers[0] = { base: 'descriptor', offset: 0, isLoaded: false, got: x0.offset };
}

/** What the instruction's destination then holds; undefined where that is not known. */
function execute(word: number, pc: number, registers: Registers): Value | undefined {
  const [first, second] = [registers[(word >>> 5) & 31], registers[(word >>> 16) & 31]];
  const immediate = (word >>> 10) & 0xfff;
  // mrs x, tpidr_el0
  if (word >>> 5 === 0x6a9de82) return { base: 'thread', offset: 0, isLoaded: false, got: 0 };
  // adrp
  if ((word & 0x9f000000) >>> 0 === 0x90000000) {
    const pages = ((word << 8) >> 13) * 4 + ((word >>> 29) & 3);
    return { base: 'file', offset: pc - (pc % 4096) + pages * 4096, isLoaded: false, got: 0 };
  }
  // add x, x, #immediate [, lsl #12]
  if (word >>> 23 === 0x122) return moved(first, immediate * ((word >>> 22) & 1 ? 4096 : 1));
  // add x, x, x
  if ((word & 0xffe0fc00) >>> 0 === 0x8b000000) return sum(first, second);
  // mov x, x
  if ((word & 0xffe0ffe0) >>> 0 === 0xaa0003e0) return second;
  // ldr x, [x, #immediate]; ldr w, [x, #immediate]
  if (word >>> 22 === 0x3e5) return loaded(moved(first, immediate * 8));
  if (word >>> 22 === 0x2e5) return loaded(moved(first, immediate * 4));
  // ldr x, [x, x]
  if ((word & 0xffe0fc00) >>> 0 === 0xf8606800) return loaded(sum(first, second));
  return undefined;
}

/** A word of the file that is counted on from is an address in the global offset table. */
function moved(value: Value | undefined, by: number): Value | undefined {
  if (!value?.isLoaded) return value && { ...value, offset: value.offset + by };
  return value.base === 'file' ? { base: 'pointer', offset: by, isLoaded: false, got: 0 } : undefined;
}

const loaded = (value: Value | undefined): Value | undefined => value && { ...value, isLoaded: true };

/** Of the thread pointer and a descriptor. */
function sum(a: Value | undefined, b: Value | undefined): Value | undefined {
  const [thread, other] = a?.base === 'thread' ? [a, b] : [b, a];
  if (thread?.base !== 'thread' || thread.isLoaded || other?.base !== 'descriptor') return undefined;
  return { ...other, offset: other.offset + thread.offset };
}
