/**
 * What the machine code of PHP's virtual machine says about how it was built. `zend_vm_kind` returns a constant; in the kind
 * "hybrid" (gcc), in which alone the JIT jumps into functions, `execute_ex` begins by jumping to the first instruction through
 * the register that holds it, and code of the JIT runs in its native frame from there on. Encodings: Intel SDM volume 2; Arm
 * Architecture Reference Manual, C6.2 (MOVZ, RET, BR).
 */
import type { Machine } from '../../../common/elf/elf.ts';

/** Zend/zend_vm_opcodes.h: ZEND_VM_KIND_HYBRID. */
export const HYBRID = 4;

/** Undefined where the function does something else than to return a small number. */
export const returnedConstant = (machine: Machine, code: Uint8Array): number | undefined =>
  machine === 'x86_64' ? returnedByX86(code) : returnedByArm64(code);

/** Offset of what stands behind the first jump through a register or pointer; undefined where there is none. */
export const behindFirstJump = (machine: Machine, code: Uint8Array): number | undefined =>
  machine === 'x86_64' ? behindX86Jump(code) : behindArm64Jump(code);

/** ELF virtual address of the first variable of 32 bits that the function at `address` reads; undefined where it reads none. */
export const firstLoaded = (machine: Machine, code: Uint8Array, address: number): number | undefined =>
  machine === 'x86_64' ? loadedByX86(code, address) : loadedByArm64(code, address);

function returnedByX86(code: Uint8Array): number | undefined {
  // endbr64
  const at = code[0] === 0xf3 && code[1] === 0x0f && code[2] === 0x1e && code[3] === 0xfa ? 4 : 0;
  const isConstant = code[at] === 0xb8 && code[at + 5] === 0xc3;
  return isConstant ? code[at + 1]! | (code[at + 2]! << 8) : undefined;
}

/** jmp *(%r15), also with the prefix notrack. */
function behindX86Jump(code: Uint8Array): number | undefined {
  for (let at = 0; at + 3 <= code.length; at++)
    if (code[at] === 0x41 && code[at + 1] === 0xff && code[at + 2] === 0x27) return at + 3;
  return undefined;
}

/** mov distance(%rip),%edi, or %eax where nothing is optimized. */
function loadedByX86(code: Uint8Array, address: number): number | undefined {
  const view = new DataView(code.buffer, code.byteOffset, code.byteLength);
  for (let at = 0; at + 6 <= code.length; at++)
    if (code[at] === 0x8b && (code[at + 1] === 0x3d || code[at + 1] === 0x05))
      return address + at + 6 + view.getInt32(at + 2, true);
  return undefined;
}

const words = (code: Uint8Array): DataView =>
  new DataView(code.buffer, code.byteOffset, code.byteLength & ~3);

function returnedByArm64(code: Uint8Array): number | undefined {
  const view = words(code);
  // bti c
  const at = view.byteLength >= 4 && view.getUint32(0, true) === 0xd503245f ? 4 : 0;
  if (view.byteLength < at + 8 || view.getUint32(at + 4, true) !== 0xd65f03c0) return undefined;
  const move = view.getUint32(at, true);
  return (move & 0xffe0001f) >>> 0 === 0x52800000 ? (move >>> 5) & 0xffff : undefined;
}

function behindArm64Jump(code: Uint8Array): number | undefined {
  const view = words(code);
  for (let at = 0; at < view.byteLength; at += 4)
    if ((view.getUint32(at, true) & 0xfffffc1f) >>> 0 === 0xd61f0000) return at + 4;
  return undefined;
}

/** adrp register, page; ldr w0, [register, #distance] */
function loadedByArm64(code: Uint8Array, address: number): number | undefined {
  const view = words(code);
  const pages: (number | undefined)[] = [];
  for (let at = 0; at < view.byteLength; at += 4) {
    const word = view.getUint32(at, true);
    const base = pages[(word >>> 5) & 31];
    if (word >>> 22 === 0x2e5 && base !== undefined) return base + ((word >>> 10) & 0xfff) * 4;
    if ((word & 0x9f000000) >>> 0 !== 0x90000000) continue;
    const distance = ((word << 8) >> 13) * 4 + ((word >>> 29) & 3);
    pages[word & 31] = address + at - ((address + at) % 4096) + distance * 4096;
  }
  return undefined;
}
