/**
 * Instructions of x86-64: how long they are and what they do to rsp and rbp, as far as it matters for unwinding.
 * Crash course: prefixes, REX (0x40–0x4f), opcode (one byte, or behind 0f, 0f38, 0f3a, VEX, EVEX), ModR/M with SIB and
 * displacement, immediate. Source: Intel's manual, volume 2, chapter 2 and appendix A.
 */
import { type CodeReader, Effect } from './code-reader.ts';

/** Bytes; more are refused by the processor. */
export const LONGEST_INSTRUCTION = 15;
const SP = 4;
const FP = 5;

/** One bit for each of 256 opcodes, from ranges. */
function opcodes(...ranges: readonly (readonly [number, number] | number)[]): Uint8Array {
  const set = new Uint8Array(256);
  for (const range of ranges) {
    const [from, to] = typeof range === 'number' ? [range, range] : range;
    set.fill(1, from, to + 1);
  }
  return set;
}

const arithmetic = (offset: number): number[] => [0, 8, 16, 24, 32, 40, 48, 56].map((base) => base + offset);

const HAS_MODRM = opcodes(
  ...[0, 1, 2, 3].flatMap(arithmetic),
  ...[0x63, 0x69, 0x6b, 0x80, 0x81, [0x83, 0x8f] as const, 0xc0, 0xc1, 0xc6, 0xc7],
  ...([[0xd0, 0xd3], [0xd8, 0xdf], 0xf6, 0xf7, 0xfe, 0xff] as const),
);
const HAS_IMM8 = opcodes(
  ...arithmetic(4),
  ...([0x6a, 0x6b, [0x70, 0x7f], 0x80, 0x83, 0xa8, [0xb0, 0xb7], 0xc0, 0xc1, 0xc6, 0xcd] as const),
  ...([[0xe0, 0xe7], 0xeb] as const),
);
/** 16 bits behind prefix 66. */
const HAS_IMM32 = opcodes(...arithmetic(5), 0x68, 0x69, 0x81, 0xa9, [0xb8, 0xbf], 0xc7);
const IS_INVALID = opcodes(
  ...[0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e, 0x1f, 0x27, 0x2f, 0x37, 0x3f],
  ...([0x60, 0x61, 0x82, 0x9a, 0xc8, 0xca, 0xcb, 0xce, 0xcf, 0xd4, 0xd5, 0xd6, 0xea] as const),
);
/** Those that write the register that the ModR/M's reg field names; of 8 bits there are others under these numbers. */
const WRITES_REG = opcodes(...arithmetic(3).filter((op) => op < 0x38), 0x63, 0x69, 0x6b, 0x8b, 0x8d);
const READS_RM = opcodes(
  ...[0, 1].flatMap(arithmetic).filter((op) => op >= 0x38),
  ...[2, 3].flatMap(arithmetic),
  ...([0x63, 0x69, 0x6b, 0x84, 0x85, 0x8a, 0x8b, 0x8d, 0x8e, [0xd8, 0xdf]] as const),
);
const IS_PREFIX = opcodes(0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3);

const HAS_NO_MODRM_0F = opcodes(
  [0x05, 0x09],
  0x0b,
  0x0e,
  [0x30, 0x37],
  0x77,
  [0x80, 0x8f],
  [0xa0, 0xa2],
  [0xa8, 0xaa],
  [0xc8, 0xcf],
);
const HAS_IMM8_0F = opcodes(0x0f, [0x70, 0x73], 0xa4, 0xac, 0xba, 0xc2, [0xc4, 0xc6]);
const WRITES_REG_0F = opcodes([0x40, 0x4f], 0xaf, [0xb6, 0xb8], [0xbc, 0xbf]);

/** From the load of a distance in a table to the jump by it: an addition, and what a compiler puts in between. */
const TABLE_JUMP_BYTES = 32;

/** Reads one after the other; nothing is allocated for each. */
export class InstructionReader implements CodeReader {
  readonly #view: DataView;
  /** Address of the first byte. */
  readonly #base: number;
  #at = 0;
  #rex = 0;
  #is16 = false;
  #mod = 0;
  #reg = 0;
  #rm = 0;
  #hasIndex = false;
  #base3 = 0;
  #displacement = 0;
  #isRipRelative = false;

  length = 0;
  effect: number = Effect.UNKNOWN;
  value = 0;
  savesRegister = false;
  /** Functions begin at round addresses, which says more. */
  readonly beginsFunction = false;
  isImported = false;
  usesTable = false;
  isZero = false;
  /** Behind the movslq that was read last. */
  #behindMovslq = -1;

  constructor(code: Uint8Array, base: number) {
    this.#view = new DataView(code.buffer, code.byteOffset, code.byteLength);
    this.#base = base;
  }

  /** Of the instruction at `offset`: sets length, effect and value. */
  read(offset: number): void {
    this.#at = offset;
    this.#rex = 0;
    this.#is16 = false;
    this.effect = Effect.NONE;
    this.value = 0;
    this.savesRegister = false;
    this.isImported = false;
    this.usesTable = false;
    this.isZero = this.#view.byteLength > offset && this.#view.getUint8(offset) === 0;
    try {
      this.#instruction();
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.effect = Effect.UNKNOWN;
    }
    this.length = this.#at - offset;
    if (this.length > LONGEST_INSTRUCTION) this.effect = Effect.UNKNOWN;
  }

  #u8(): number {
    return this.#view.getUint8(this.#at++);
  }

  #i8(): number {
    return this.#view.getInt8(this.#at++);
  }

  #i32(): number {
    this.#at += 4;
    return this.#view.getInt32(this.#at - 4, true);
  }

  #instruction(): void {
    const end = this.#at + LONGEST_INSTRUCTION;
    let op = this.#u8();
    let isAddress32 = false;
    while (IS_PREFIX[op] === 1 && this.#at <= end) {
      if (op === 0x66) this.#is16 = true;
      if (op === 0x67) isAddress32 = true;
      op = this.#u8();
    }
    if ((op & 0xf0) === 0x40) {
      this.#rex = op;
      op = this.#u8();
    }
    if (op === 0x0f) this.#twoBytes();
    else if (op === 0xc5 || op === 0xc4 || op === 0x62) this.#vector(op);
    else if (IS_INVALID[op] === 1) this.effect = Effect.UNKNOWN;
    else if (HAS_MODRM[op] === 1) this.#withModRm(op);
    else this.#plain(op, isAddress32);
  }

  /** VEX and EVEX: none of these writes rsp or rbp in compiled code. */
  #vector(first: number): void {
    let map = 1;
    if (first === 0xc5) this.#at += 1;
    else {
      map = this.#u8() & (first === 0x62 ? 7 : 0x1f);
      this.#at += first === 0x62 ? 2 : 1;
    }
    const op = this.#u8();
    if (map === 0 || map > 6) this.effect = Effect.UNKNOWN;
    if (first !== 0x62 && map === 1 && op === 0x77) return; // vzeroupper
    this.#modRm();
    if (map === 3 || (map === 1 && HAS_IMM8_0F[op] === 1 && op !== 0x0f)) this.#at += 1;
  }

  #twoBytes(): void {
    const op = this.#u8();
    if (op === 0x38 || op === 0x3a) {
      this.#at += 1;
      this.#modRm();
      if (op === 0x3a) this.#at += 1;
      return;
    }
    if (op >= 0x80 && op <= 0x8f) {
      this.#relative(Effect.BRANCH, this.#i32());
      return;
    }
    if (HAS_NO_MODRM_0F[op] === 1) {
      if (op === 0x0b)
        this.effect = Effect.END; // ud2
      else if (op === 0xa0 || op === 0xa8) this.#move(8);
      else if (op === 0xa1 || op === 0xa9) this.#move(-8);
      return;
    }
    this.#modRm();
    if (HAS_IMM8_0F[op] === 1) this.#at += 1;
    if (op === 0xff || op === 0xb9)
      this.effect = Effect.END; // ud0, ud1
    else if (op === 0x1f) this.effect = Effect.PADDING;
    else if (WRITES_REG_0F[op] === 1) this.#write(this.#reg);
  }

  #modRm(): void {
    const modrm = this.#u8();
    this.#mod = modrm >> 6;
    this.#reg = ((modrm >> 3) & 7) | ((this.#rex & 4) << 1);
    this.#rm = (modrm & 7) | ((this.#rex & 1) << 3);
    this.#hasIndex = false;
    this.#isRipRelative = false;
    this.#displacement = 0;
    this.#base3 = this.#rm;
    if (this.#mod === 3) return;
    let low = modrm & 7;
    if (low === 4) {
      const sib = this.#u8();
      this.#hasIndex = (sib & 0x38) !== 0x20 || (this.#rex & 2) !== 0;
      low = sib & 7;
      this.#base3 = low | ((this.#rex & 1) << 3);
      if (low === 5 && this.#mod === 0) {
        this.#hasIndex = true;
        this.#at += 4;
        return;
      }
    } else if (low === 5 && this.#mod === 0) this.#isRipRelative = true;
    if (this.#isRipRelative || this.#mod === 2) this.#displacement = this.#i32();
    else if (this.#mod === 1) this.#displacement = this.#i8();
  }

  #plain(op: number, isAddress32: boolean): void {
    const group = op & 0xf8;
    const register = (op & 7) | ((this.#rex & 1) << 3);
    if (group === 0x50) {
      this.savesRegister = register === 3 || register === FP || register >= 12;
      if (register === FP) this.effect = Effect.PUSH_FP;
      else this.#move(8);
    } else if (group === 0x58) {
      if (register === FP) this.effect = Effect.POP_FP;
      else if (register === SP) this.effect = Effect.LOSE_SP;
      else this.#move(-8);
    } else if (op >= 0xa0 && op <= 0xa3) this.#at += isAddress32 ? 4 : 8;
    else if (op >= 0x70 && op <= 0x7f) this.#relative(Effect.BRANCH, this.#i8());
    else if (op >= 0xe0 && op <= 0xe3) this.#relative(Effect.BRANCH, this.#i8());
    else if (op === 0xe8) this.#relative(Effect.CALL, this.#i32());
    else if (op === 0xe9) this.#relative(Effect.JUMP, this.#i32());
    else if (op === 0xeb) this.#relative(Effect.JUMP, this.#i8());
    else if (op === 0xc2 || op === 0xc3) {
      if (op === 0xc2) this.#at += 2;
      this.effect = op === 0xc3 ? Effect.RETURN : Effect.UNKNOWN;
    } else if (op === 0xc9) this.effect = Effect.LEAVE;
    else if (op === 0xcc || op === 0xf4) this.effect = Effect.END;
    else if (op === 0x90) this.effect = Effect.PADDING;
    else this.#withImmediate(op, register);
  }

  #withImmediate(op: number, register: number): void {
    if (op >= 0xb8 && op <= 0xbf) {
      this.#write(register);
      if (this.#rex & 8) this.#at += 8;
      else if (this.#is16) this.#at += 2;
      else this.#loadAddress(this.#i32() >>> 0);
      return;
    }
    if (op === 0x9c || op === 0x6a || op === 0x68) this.#move(8);
    else if (op === 0x9d) this.#move(-8);
    if (op > 0x90 && op <= 0x97) this.#write(register);
    this.#skipImmediate(op);
  }

  #skipImmediate(op: number): void {
    if (HAS_IMM8[op] === 1) this.#at += 1;
    else if (HAS_IMM32[op] === 1) this.#at += this.#is16 ? 2 : 4;
  }

  #withModRm(op: number): void {
    this.#modRm();
    const isRegister = this.#mod === 3;
    const immediateAt = this.#at;
    this.#skipImmediate(op);
    if ((op === 0xf6 || op === 0xf7) && (this.#reg & 7) < 2) this.#at += op === 0xf6 ? 1 : this.#is16 ? 2 : 4;
    if (op === 0x63) this.#behindMovslq = this.#at;
    if (op === 0xff) this.#group5(isRegister);
    else if (op === 0x8f) this.#popTo(isRegister);
    else if (op === 0x8d) this.#lea();
    else if (isRegister && (op === 0x89 || op === 0x8b)) this.#moveRegister(op);
    else if (isRegister && this.#rm === SP && (op === 0x81 || op === 0x83)) this.#adjust(op, immediateAt);
    else {
      if (op === 0xc7 && isRegister && this.#rex & 8)
        this.#loadAddress(this.#view.getInt32(immediateAt, true));
      if (WRITES_REG[op] === 1) this.#write(this.#reg);
      else if (isRegister && op & 1 && READS_RM[op] === 0 && !this.#isCompareOrTest(op))
        this.#write(this.#rm);
    }
  }

  #isCompareOrTest(op: number): boolean {
    const sub = this.#reg & 7;
    if (op === 0x80 || op === 0x81 || op === 0x83) return sub === 7;
    return (op === 0xf6 || op === 0xf7) && sub !== 2 && sub !== 3;
  }

  /** inc, dec, call, jmp, push. */
  #group5(isRegister: boolean): void {
    const sub = this.#reg & 7;
    if (sub === 4) {
      this.effect = Effect.JUMP_INDIRECT;
      this.isImported = this.#isRipRelative;
      const sinceMovslq = this.#at - this.#behindMovslq;
      this.usesTable =
        isRegister && this.#behindMovslq >= 0 && sinceMovslq > 0 && sinceMovslq <= TABLE_JUMP_BYTES;
    } else if (sub === 6) this.#move(8);
    else if (sub === 3 || sub === 5 || sub === 7) this.effect = Effect.UNKNOWN;
    else if (sub < 2 && isRegister) this.#write(this.#rm);
  }

  #popTo(isRegister: boolean): void {
    if (isRegister && this.#rm === SP) this.effect = Effect.LOSE_SP;
    else if (isRegister && this.#rm === FP) this.effect = Effect.POP_FP;
    else this.#move(-8);
  }

  #lea(): void {
    const isFromSp = this.#base3 === SP && !this.#hasIndex && !this.#isRipRelative;
    const isFromFp = this.#base3 === FP && !this.#hasIndex && !this.#isRipRelative;
    if (this.#isRipRelative) this.#loadAddress(this.#base + this.#at + this.#displacement);
    if (this.#reg === SP && isFromSp) this.#move(-this.#displacement);
    else if (this.#reg === SP && isFromFp) this.#set(Effect.SP_FROM_FP, this.#displacement);
    else if (this.#reg === FP && isFromSp) this.#set(Effect.SET_FP, this.#displacement);
    else this.#write(this.#reg);
  }

  #moveRegister(op: number): void {
    const [to, from] = op === 0x89 ? [this.#rm, this.#reg] : [this.#reg, this.#rm];
    if (to === FP && from === SP) this.effect = Effect.SET_FP;
    else if (to === SP && from === FP) this.effect = Effect.SP_FROM_FP;
    else this.#write(to);
  }

  /** add, sub, and, … of a constant to rsp. */
  #adjust(op: number, immediateAt: number): void {
    const value = op === 0x83 ? this.#view.getInt8(immediateAt) : this.#view.getInt32(immediateAt, true);
    const sub = this.#reg & 7;
    if (sub === 0) this.#move(-value);
    else if (sub === 5) this.#move(value);
    else if (sub !== 7) this.effect = Effect.LOSE_SP;
  }

  #write(register: number): void {
    if (register === SP) this.effect = Effect.LOSE_SP;
    else if (register === FP) this.effect = Effect.LOSE_FP;
  }

  #loadAddress(address: number): void {
    if (this.effect === Effect.NONE) this.#set(Effect.LOAD_ADDRESS, address);
  }

  #move(bytes: number): void {
    this.#set(Effect.MOVE_SP, bytes);
  }

  #relative(effect: number, distance: number): void {
    this.#set(effect, this.#base + this.#at + distance);
  }

  #set(effect: number, value: number): void {
    this.effect = effect;
    this.value = value;
  }
}
