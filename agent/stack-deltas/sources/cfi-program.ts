/** Runs call frame instructions (DWARF 5, section 6.4.2, and GNU's extensions): one state, rows as it moves. */

import { OutOfBounds } from '../../../common/base/byte-source.ts';
import type { Cursor } from '../../../common/base/cursor.ts';
import { CalleeSaved, ValueKind } from '../../records/records.gen.ts';
import { CfiState, type Registers, VALUE_UNSUPPORTED } from '../rules/cfi-state.ts';
import { applyCfaExpression, readSavedPlace } from './expressions.ts';

/** A frame program that cannot be run; it costs its own function only. */
export class BadFrame extends Error {
  override readonly name = 'BadFrame';
}

export interface ProgramContext {
  codeAlign: number;
  dataAlign: number;
  registers: Registers;
  /** State after the CIE's own instructions; what DW_CFA_restore goes back to. */
  initial: CfiState;
  /** Reads an address in the encoding of DW_CFA_set_loc. */
  readAddress(cursor: Cursor): number;
}

/** Nested DW_CFA_remember_state. */
const MAX_REMEMBERED = 64;
/** Programs are bounded by their bytes; so many instructions in one function are not a program of a compiler. */
const MAX_INSTRUCTIONS = 1 << 20;

function calleeSavedOf(kind: number, offset: number): number {
  if (kind === ValueKind.SAME) return CalleeSaved.SAME;
  return kind === ValueKind.CFA && offset < 0 ? offset : CalleeSaved.UNKNOWN;
}

/** Never minus zero: V8 would take the fields that it comes into for fractions from then on, and all code that it made anew. */
const factored = (offset: number, dataAlign: number): number => offset * dataAlign + 0;

export class CfiProgram {
  readonly state = new CfiState();
  readonly #remembered: CfiState[] = [];
  #depth = 0;

  /** Runs `cursor` to its end. `emit(location)` is called for the state at each location before it moves on. */
  run(
    cursor: Cursor,
    context: ProgramContext,
    start: number,
    emit: ((location: number) => void) | undefined,
  ): void {
    let location = start;
    this.#depth = 0;
    for (let n = 0; cursor.at < cursor.end; n++) {
      if (n > MAX_INSTRUCTIONS) throw new BadFrame(`more than ${MAX_INSTRUCTIONS} instructions`);
      const op = cursor.u8();
      const low = op & 0x3f;
      switch (op >> 6) {
        case 1:
          emit?.(location);
          location += low * context.codeAlign;
          break;
        case 2:
          this.#saveAt(low, factored(cursor.uleb(), context.dataAlign), context.registers);
          break;
        case 3:
          this.#restore(low, context);
          break;
        default: {
          const next = this.#location(op, cursor, context, location);
          if (next === undefined) {
            if (!this.#usual(op, cursor)) this.#rare(op, cursor, context);
          } else {
            emit?.(location);
            location = next;
          }
        }
      }
    }
    emit?.(location);
  }

  /** Where the instruction moves to, undefined if it is not a move. */
  #location(op: number, cursor: Cursor, context: ProgramContext, location: number): number | undefined {
    switch (op) {
      case 0x01: {
        const next = context.readAddress(cursor);
        if (next < location) throw new BadFrame('DW_CFA_set_loc moves backwards');
        return next;
      }
      case 0x02:
        return location + cursor.u8() * context.codeAlign;
      case 0x03:
        return location + cursor.u16() * context.codeAlign;
      case 0x04:
        return location + cursor.u32() * context.codeAlign;
      case 0x1d:
        return location + cursor.u64() * context.codeAlign;
      default:
        return undefined;
    }
  }

  /**
   * What nearly all programs are made of; false for the rest. Apart, because V8 gives up code that it made before it met
   * a case for the first time.
   */
  #usual(op: number, cursor: Cursor): boolean {
    const { state } = this;
    switch (op) {
      case 0x00: // nop
        return true;
      case 0x0a:
        this.#remember();
        return true;
      case 0x0b:
        if (this.#depth === 0) throw new BadFrame('DW_CFA_restore_state without a remembered state');
        state.copyFrom(this.#remembered[--this.#depth]!);
        return true;
      case 0x0c: // def_cfa
        state.setCfa(cursor.uleb(), cursor.uleb());
        return true;
      case 0x0d: // def_cfa_register
        state.setCfaRegister(cursor.uleb());
        return true;
      case 0x0e: // def_cfa_offset
        state.setCfaOffset(cursor.uleb());
        return true;
      default:
        return false;
    }
  }

  #rare(op: number, cursor: Cursor, context: ProgramContext): void {
    const { state } = this;
    const { registers, dataAlign } = context;
    switch (op) {
      case 0x2c: // arm64: negate_ra_state_with_pc
      case 0x2d: // GNU_window_save; arm64: negate_ra_state
        break;
      case 0x05: // offset_extended
        this.#saveAt(cursor.uleb(), factored(cursor.uleb(), dataAlign), registers);
        break;
      case 0x06: // restore_extended
        this.#restore(cursor.uleb(), context);
        break;
      case 0x07: // undefined
        this.#set(cursor.uleb(), ValueKind.UNDEFINED, 0, registers);
        break;
      case 0x08: // same_value
        this.#set(cursor.uleb(), ValueKind.SAME, 0, registers);
        break;
      case 0x09: // register
        this.#saveIn(cursor.uleb(), cursor.uleb(), registers);
        break;
      case 0x0f: // def_cfa_expression
        this.#block(cursor, (block) => applyCfaExpression(state, block, registers));
        break;
      case 0x10: // expression
        this.#saveByExpression(cursor, registers, false);
        break;
      case 0x11: // offset_extended_sf
        this.#saveAt(cursor.uleb(), factored(cursor.sleb(), dataAlign), registers);
        break;
      case 0x12: // def_cfa_sf
        state.setCfa(cursor.uleb(), factored(cursor.sleb(), dataAlign));
        break;
      case 0x13: // def_cfa_offset_sf
        state.setCfaOffset(factored(cursor.sleb(), dataAlign));
        break;
      case 0x14: // val_offset
        this.#setValue(cursor.uleb(), cursor.uleb(), registers);
        break;
      case 0x15: // val_offset_sf
        this.#setValue(cursor.uleb(), cursor.sleb(), registers);
        break;
      case 0x16: // val_expression
        this.#saveByExpression(cursor, registers, true);
        break;
      case 0x2e: // GNU_args_size
        cursor.uleb();
        break;
      case 0x2f: // GNU_negative_offset_extended
        this.#saveAt(cursor.uleb(), factored(-cursor.uleb(), dataAlign), registers);
        break;
      default:
        throw new BadFrame(`unknown call frame instruction 0x${op.toString(16)}`);
    }
  }

  #saveAt(reg: number, offset: number, registers: Registers): void {
    this.#set(reg, ValueKind.CFA, offset, registers);
  }

  #saveByExpression(cursor: Cursor, registers: Registers, isValue: boolean): void {
    const reg = cursor.uleb();
    this.#set(reg, VALUE_UNSUPPORTED, 0, registers);
    this.#block(cursor, (block) => {
      const place = readSavedPlace(block, registers, isValue);
      if (place) this.#set(reg, place.kind, place.offset, registers);
    });
  }

  #saveIn(reg: number, holder: number, registers: Registers): void {
    if (reg === registers.ra) this.#set(reg, ValueKind.REGISTER, holder, registers);
    else this.#set(reg, VALUE_UNSUPPORTED, 0, registers);
  }

  /** The value itself is CFA + offset: that is what the stack pointer is in any case. */
  #setValue(reg: number, offset: number, registers: Registers): void {
    if (reg === registers.sp && offset === 0) this.state.spMoved = false;
    else this.#set(reg, VALUE_UNSUPPORTED, 0, registers);
  }

  #set(reg: number, kind: number, offset: number, registers: Registers): void {
    if (reg === registers.fp) {
      this.state.fpKind = kind;
      this.state.fpOffset = offset;
    } else if (reg === registers.ra) {
      this.state.raKind = kind;
      this.state.raOffset = offset;
    } else if (reg === registers.sp) {
      this.state.spMoved = kind !== ValueKind.SAME && kind !== ValueKind.UNDEFINED;
    } else if (reg === registers.calleeSaved) {
      this.state.calleeSaved = calleeSavedOf(kind, offset);
    }
  }

  #restore(reg: number, { initial, registers }: ProgramContext): void {
    if (reg === registers.fp) this.#set(reg, initial.fpKind, initial.fpOffset, registers);
    else if (reg === registers.ra) this.#set(reg, initial.raKind, initial.raOffset, registers);
    else if (reg === registers.sp) this.state.spMoved = initial.spMoved;
    else if (reg === registers.calleeSaved) this.state.calleeSaved = initial.calleeSaved;
  }

  #remember(): void {
    if (this.#depth >= MAX_REMEMBERED)
      throw new BadFrame(`more than ${MAX_REMEMBERED} nested remember_state`);
    this.#remembered[this.#depth] ??= new CfiState();
    this.#remembered[this.#depth++]!.copyFrom(this.state);
  }

  /** Narrows the cursor to a block of an expression and moves behind it. */
  #block(cursor: Cursor, apply: (block: Cursor) => void): void {
    const size = cursor.uleb();
    const start = cursor.skip(size);
    const { end } = cursor;
    cursor.at = start;
    cursor.end = start + size;
    try {
      apply(cursor);
    } catch (error) {
      // it ends in the middle of an operand: one more expression that is not understood
      if (!(error instanceof OutOfBounds)) throw error;
    } finally {
      cursor.end = end;
      cursor.at = start + size;
    }
  }
}
