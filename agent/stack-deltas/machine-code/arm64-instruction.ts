/**
 * Instructions of arm64: what they do to sp, x29 and x30, as far as it matters for unwinding. Each has 4 bytes; bits 25
 * to 28 say which group it belongs to. Register 31 is sp in some places and zero in others. Source: Arm Architecture
 * Reference Manual for A-profile, chapter C4, "A64 Instruction Set Encoding".
 */
import { type CodeReader, Effect } from './code-reader.ts';

export const FP = 29;
export const LINK = 30;
const SP = 31;
const REGISTERS = 32;
const INSTRUCTION_BYTES = 4;
const PAGE_BYTES = 4096;
const NOP = 0xd503201f;
const PACIASP = 0xd503233f;
const PACIBSP = 0xd503237f;

const bits = (word: number, from: number, count: number): number => (word >>> from) & ((1 << count) - 1);
const signedBits = (word: number, from: number, count: number): number =>
  (word << (32 - from - count)) >> (32 - count);

export class Arm64Reader implements CodeReader {
  readonly #view: DataView;
  /** Address of the first byte. */
  readonly #base: number;
  #pc = 0;
  /** Behind the instruction that was read last. */
  #next = -1;
  /** Value of the ADRP that wrote a register last, on this straight line; 0: something else did. */
  readonly #pages = new Float64Array(REGISTERS);

  length = INSTRUCTION_BYTES;
  effect: number = Effect.UNKNOWN;
  value = 0;
  savesRegister = false;
  beginsFunction = false;
  readonly isImported = false;
  readonly usesTable = false;
  /** An instruction of its own, which nothing runs behind. */
  readonly isZero = false;
  /** Of STACK_ACCESS: how far sp moves up before and after. */
  before = 0;
  after = 0;
  isLoad = false;
  /** Where x29 and x30 are, from sp between those moves; -1: the instruction is not about that register. */
  fpAt = -1;
  linkAt = -1;

  constructor(code: Uint8Array, base: number) {
    this.#view = new DataView(code.buffer, code.byteOffset, code.byteLength);
    this.#base = base;
  }

  read(offset: number): void {
    this.value = 0;
    this.savesRegister = false;
    this.beginsFunction = false;
    this.effect = Effect.UNKNOWN;
    if (offset % INSTRUCTION_BYTES !== 0 || offset + INSTRUCTION_BYTES > this.#view.byteLength) return;
    if (offset !== this.#next) this.#pages.fill(0);
    this.#next = offset + INSTRUCTION_BYTES;
    this.#pc = this.#base + offset;
    const word = this.#view.getUint32(offset, true);
    this.effect = Effect.NONE;
    const group = bits(word, 25, 4);
    if ((group & 0b1110) === 0b1000) this.#immediate(word);
    else if ((group & 0b1110) === 0b1010) this.#branch(word);
    else if ((group & 0b0101) === 0b0100) this.#memory(word);
    else if ((group & 0b0111) === 0b0101) this.#register(word);
    else if (group === 0b0010) this.#vectorLength(word);
    else if (group === 0) this.effect = Effect.END;
    if (this.effect === Effect.CALL || this.effect === Effect.CALL_INDIRECT) this.#pages.fill(0);
  }

  #immediate(word: number): void {
    const rd = bits(word, 0, 5);
    const page = this.#pages[bits(word, 5, 5)]!;
    this.#pages[rd] = 0;
    const kind = bits(word, 23, 3);
    if (kind < 2) {
      if (word >>> 31) {
        const pages = (signedBits(word, 5, 19) << 2) | bits(word, 29, 2);
        this.#pages[rd] = (Math.floor(this.#pc / PAGE_BYTES) + pages) * PAGE_BYTES;
      }
      this.#write(rd);
    } else if (kind === 2) this.#addImmediate(word, rd, page);
    else if (kind === 4 && bits(word, 29, 2) !== 3 && rd === SP) this.effect = Effect.LOSE_SP;
    else this.#write(rd);
  }

  /** ADD, ADDS, SUB, SUBS of 64 bits; those that set flags have no sp to write. */
  #addImmediate(word: number, rd: number, page: number): void {
    const rn = bits(word, 5, 5);
    const size = bits(word, 10, 12) * (bits(word, 22, 1) ? 4096 : 1);
    const value = bits(word, 30, 1) ? -size : size;
    const setsFlags = bits(word, 29, 1) === 1;
    if (setsFlags && rd === SP) return;
    if (rd === SP && rn === SP) this.#set(Effect.MOVE_SP, -value);
    else if (rd === SP && rn === FP) this.#set(Effect.SP_FROM_FP, value);
    else if (rd === SP) this.effect = Effect.LOSE_SP;
    else if (rd === FP && rn === SP) this.#set(Effect.SET_FP, value);
    else if (page !== 0 && value >= 0 && rd < FP) this.#set(Effect.LOAD_ADDRESS, page + value);
    else this.#write(rd);
  }

  #branch(word: number): void {
    if (bits(word, 26, 5) === 0b00101)
      this.#relative(word >>> 31 ? Effect.CALL : Effect.JUMP, signedBits(word, 0, 26));
    else if (bits(word, 25, 6) === 0b011010) this.#relative(Effect.BRANCH, signedBits(word, 5, 19));
    else if (bits(word, 25, 6) === 0b011011) this.#relative(Effect.BRANCH, signedBits(word, 5, 14));
    else if (word >>> 25 === 0b0101010) this.#relative(Effect.BRANCH, signedBits(word, 5, 19));
    else if (word >>> 25 === 0b1101011) this.#branchToRegister(word);
    else if (word >>> 24 === 0xd4) this.#exception(word);
    else if (word === NOP) this.effect = Effect.PADDING;
    else this.beginsFunction = word === PACIASP || word === PACIBSP;
  }

  #branchToRegister(word: number): void {
    const kind = bits(word, 21, 4) & 0b0111;
    if (kind === 0) this.effect = Effect.JUMP_INDIRECT;
    else if (kind === 1) this.effect = Effect.CALL_INDIRECT;
    // the signed kind names no register
    else if (kind === 2 && (bits(word, 5, 5) === LINK || bits(word, 10, 2) !== 0))
      this.effect = Effect.RETURN;
    else this.effect = Effect.UNKNOWN;
  }

  /** SVC comes back; BRK, HLT and the like don't. */
  #exception(word: number): void {
    if (bits(word, 21, 3) !== 0) this.effect = Effect.END;
  }

  #memory(word: number): void {
    const isVector = bits(word, 26, 1) === 1;
    const kind = bits(word, 27, 3);
    if ((kind & 0b111) === 0b101) this.#pair(word, isVector);
    else if ((kind & 0b111) === 0b111) this.#single(word, isVector);
    else if (bits(word, 22, 1) === 1 && !isVector) this.#writeLoaded(bits(word, 0, 5));
    // of vectors, with a register or a constant added behind the access
    else if (isVector && bits(word, 23, 1) === 1 && bits(word, 5, 5) === SP) this.effect = Effect.LOSE_SP;
  }

  /** LDP, STP: behind (1), signed offset (2), before (3), or without a hint of reuse (0). */
  #pair(word: number, isVector: boolean): void {
    const isLoad = bits(word, 22, 1) === 1;
    const first = bits(word, 0, 5);
    const second = bits(word, 10, 5);
    const mode = bits(word, 23, 2);
    const size = isVector ? 4 << bits(word, 30, 2) : bits(word, 30, 2) === 2 ? 8 : 4;
    const offset = signedBits(word, 15, 7) * size;
    if (bits(word, 5, 5) !== SP) {
      if (isLoad && !isVector) this.#writeLoaded(first, second);
      this.#writeBase(word, mode);
      return;
    }
    this.#access(isLoad, mode, offset);
    if (isVector || size !== 8) return;
    const at = mode === 2 || mode === 0 ? offset : 0;
    if (first === FP) this.fpAt = at;
    else if (second === FP) this.fpAt = at + 8;
    if (first === LINK) this.linkAt = at;
    else if (second === LINK) this.linkAt = at + 8;
    this.savesRegister = !isLoad && mode === 3 && this.linkAt >= 0;
    this.beginsFunction = this.savesRegister && this.fpAt >= 0;
    if (isLoad) this.#forget(first, second);
  }

  /** LDR, STR of one register: with an unsigned offset, or behind (1) or before (3) one of 9 bits. */
  #single(word: number, isVector: boolean): void {
    const opc = bits(word, 22, 2);
    const isLoad = isVector ? (opc & 1) === 1 : opc !== 0;
    const register = bits(word, 0, 5);
    const size = bits(word, 30, 2);
    const isUnsigned = bits(word, 24, 1) === 1;
    const isRegisterOffset = !isUnsigned && bits(word, 21, 1) === 1;
    const mode = isUnsigned || isRegisterOffset ? 2 : bits(word, 10, 2) === 0 ? 2 : bits(word, 10, 2);
    if (bits(word, 5, 5) !== SP || isRegisterOffset) {
      if (isLoad && !isVector) this.#writeLoaded(register);
      if (!isRegisterOffset) this.#writeBase(word, mode);
      return;
    }
    const offset = isUnsigned ? bits(word, 10, 12) << size : signedBits(word, 12, 9);
    this.#access(isLoad, mode, offset);
    if (isVector || size !== 3) return;
    const at = mode === 2 ? offset : 0;
    if (register === FP) this.fpAt = at;
    if (register === LINK) this.linkAt = at;
    this.savesRegister = !isLoad && mode === 3 && this.linkAt >= 0;
    if (isLoad) this.#forget(register);
  }

  #access(isLoad: boolean, mode: number, offset: number): void {
    this.effect = Effect.STACK_ACCESS;
    this.isLoad = isLoad;
    this.before = mode === 3 ? offset : 0;
    this.after = mode === 1 ? offset : 0;
    this.fpAt = -1;
    this.linkAt = -1;
  }

  #forget(...registers: number[]): void {
    for (const register of registers) this.#pages[register] = 0;
  }

  #writeLoaded(...registers: number[]): void {
    this.#forget(...registers);
    if (registers.includes(FP)) this.effect = Effect.LOSE_FP;
    else if (registers.includes(LINK)) this.effect = Effect.LOSE_LINK;
  }

  /** The register that an address counts from may move. */
  #writeBase(word: number, mode: number): void {
    if ((mode === 1 || mode === 3) && this.effect === Effect.NONE) this.#write(bits(word, 5, 5));
  }

  /** Here 31 is zero, except for ADD and SUB of an extended register. */
  #register(word: number): void {
    const rd = bits(word, 0, 5);
    const isExtended = bits(word, 24, 5) === 0b01011 && bits(word, 21, 1) === 1;
    this.#forget(rd);
    if (isExtended && rd === SP && bits(word, 29, 1) === 0) this.effect = Effect.LOSE_SP;
    else this.#write(rd);
  }

  /** ADDVL and ADDPL: room for vectors whose size is known to the processor alone. */
  #vectorLength(word: number): void {
    if ((word & 0xffa0f800) >>> 0 === 0x04205000 && bits(word, 0, 5) === SP) this.effect = Effect.LOSE_SP;
  }

  #write(register: number): void {
    if (register === FP) this.effect = Effect.LOSE_FP;
    else if (register === LINK) this.effect = Effect.LOSE_LINK;
  }

  #relative(effect: number, instructions: number): void {
    this.#set(effect, this.#pc + instructions * INSTRUCTION_BYTES);
  }

  #set(effect: number, value: number): void {
    this.effect = effect;
    this.value = value;
  }
}
