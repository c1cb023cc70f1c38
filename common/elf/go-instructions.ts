/** What instructions of Go's runtime say of where it keeps what. Facts: runtime/{asm,tls}_{amd64,arm64}.s of Go 1.16 to 1.27. */
import { Cursor } from '../base/cursor.ts';
import type { Machine } from './elf.ts';

/** mov %fs:N, %rN; in position-independent programs mov $N, %rcx; mov %fs:(%rcx), %rN */
const LOADS_G = ['64488b[0-3][4c]25(.{8})', '48c7c1(.{8})64488b[0-3][19]'];

/** Where in code, in bytes, the instructions end, and the digits that the pattern has asked for. */
export function findInstructions(
  code: Uint8Array,
  pattern: string,
): { end: number; digits: string | undefined } | undefined {
  const hex = Buffer.from(code).toString('hex');
  const found = new RegExp(`^(?:..)*?${pattern}`).exec(hex);
  return found ? { end: found[0].length / 2, digits: found[1] } : undefined;
}

/** Of the code of runtime.morestack on amd64: how far behind the thread pointer its g is. */
export function findThreadOffset(code: Uint8Array): number | undefined {
  for (const pattern of LOADS_G) {
    const digits = findInstructions(code, pattern)?.digits;
    if (digits !== undefined) return Buffer.from(digits, 'hex').readInt32LE();
  }
  return undefined;
}

/** In libraries: mov N(%rip), %rcx; mov %fs:(%rcx), %rN. The second has 4 bytes. */
const LOADS_G_BY_SLOT = '488b0d(.{8})64488b[0-3][19]';
const SECOND_BYTES = 4;

/** Of the code of runtime.morestack on amd64, which begins there: ELF address of what the loader puts that offset into. */
export function findThreadOffsetSlot(code: Uint8Array, start: number): number | undefined {
  const found = findInstructions(code, LOADS_G_BY_SLOT);
  if (found?.digits === undefined) return undefined;
  return start + found.end - SECOND_BYTES + Buffer.from(found.digits, 'hex').readInt32LE();
}

/** Those bits of an instruction under that mask. */
const is = (word: number, [bits, mask]: readonly [number, number]): boolean => (word & mask) >>> 0 === bits;

/** mov %rax, N(%rN) */
const SETS_LABELS = '4[89]898[0-7](.{8})';
/** str x0, [xN, #N] with N below 32 KiB, in words; not to the stack, which is register 31 */
const STORE_X0 = [0xf900_0000, 0xffc0_001f] as const;
const REGISTER = (word: number): number => (word >>> 5) & 31;
const STACK = 31;

/** Of the code of runtime/pprof.runtime_setProfLabel: where in g the labels are. */
export function findLabels(code: Uint8Array, machine: Machine): number | undefined {
  if (machine === 'x86_64') {
    const digits = findInstructions(code, SETS_LABELS)?.digits;
    return digits === undefined ? undefined : Buffer.from(digits, 'hex').readInt32LE();
  }
  // the collector's list of old values is written to at its beginning
  return instructions(code)
    .filter((word) => is(word, STORE_X0) && REGISTER(word) !== STACK)
    .map((word) => ((word >>> 10) & 0xfff) * 8)
    .find((offset) => offset > 0);
}

function instructions(code: Uint8Array): number[] {
  const cursor = new Cursor(code);
  return Array.from({ length: Math.floor(code.length / 4) }, () => cursor.u32());
}

/** Of runtime.load_g on arm64, all about x27: adrp; ldrsb x0, [x27, #N]; movz; movk; ldr x27, [x27, #N]; mrs x0, tpidr_el0. */
const ADRP = [0x9000_001b, 0x9f00_001f] as const;
const LOAD_BYTE = [0x3980_0360, 0xffc0_03ff] as const;
const MOVE = [0xd280_001b, 0xdf80_001f] as const;
const LOAD_WORD = [0xf940_037b, 0xffc0_03ff] as const;
const THREAD_POINTER = 0xd53b_d040;

export interface ArmGoroutine {
  /** ELF address of the byte that says whether the program has C; without, g is in x28 alone. */
  hasC: number;
  /** How far behind the thread pointer g is, or the address of what the loader puts that into. */
  offset: number | undefined;
  slot: number | undefined;
}

/** Of the code of runtime.load_g on arm64, which begins there. */
export function readLoadG(code: Uint8Array, start: number): ArmGoroutine | undefined {
  let page = 0;
  let hasC: number | undefined;
  let offset: number | undefined;
  let slot: number | undefined;
  let isBehind = false;
  for (const [i, word] of instructions(code).entries()) {
    if (is(word, ADRP)) page = pageOf(word, start + i * 4);
    else if (is(word, LOAD_BYTE)) hasC ??= page + ((word >>> 10) & 0xfff);
    else if (word === THREAD_POINTER) isBehind = true;
    else if (isBehind && is(word, MOVE)) offset = (offset ?? 0) + moved(word);
    else if (isBehind && is(word, LOAD_WORD)) slot = page + ((word >>> 10) & 0xfff) * 8;
  }
  return hasC === undefined ? undefined : { hasC, offset, slot };
}

/** 21 bits, signed, of pages of 4 KiB. */
function pageOf(word: number, address: number): number {
  const pages = (((word >>> 5) & 0x7_ffff) << 2) | ((word >>> 29) & 3);
  return (Math.floor(address / 4096) + ((pages << 11) >> 11)) * 4096;
}

/** 16 bits, of which word of four. */
const moved = (word: number): number => ((word >>> 5) & 0xffff) * 2 ** (((word >>> 21) & 3) * 16);
