/**
 * The DWARF expressions that compilers and linkers write into unwind information. There are few shapes, so they
 * are recognised, not evaluated: register + offset, what that points to (plus a constant), and the linkers'
 * expression for the procedure linkage table. Opcodes: DWARF 5, section 7.7.1.
 */
import type { Cursor } from '../../common/base/cursor.ts';
import { RuleKind, ValueKind } from '../tracer/records.gen.ts';
import { CFA_UNSUPPORTED, type CfiState, type Registers, VALUE_UNSUPPORTED } from './cfi-state.ts';

const DW_OP_DEREF = 0x06;
const DW_OP_AND = 0x1a;
const DW_OP_PLUS = 0x22;
const DW_OP_PLUS_UCONST = 0x23;
const DW_OP_SHL = 0x24;
const DW_OP_GE = 0x2a;
const DW_OP_LIT0 = 0x30;
const DW_OP_LIT31 = 0x4f;
const DW_OP_BREG0 = 0x70;
const DW_OP_BREG31 = 0x8f;
const RIP = 16;

const isLit = (op: number): boolean => op >= DW_OP_LIT0 && op <= DW_OP_LIT31;

/** rsp + 8 + ((rip & 15) >= N ? 8 : 0): the N-th byte of a PLT entry is behind its push. */
function readPlt(cursor: Cursor, registers: Registers): { offset: number; threshold: number } | undefined {
  if (cursor.u8() !== DW_OP_BREG0 + registers.sp) return undefined;
  const offset = cursor.sleb();
  if (cursor.left < 8 || cursor.u8() !== DW_OP_BREG0 + RIP || cursor.sleb() !== 0) return undefined;
  if (cursor.u8() !== DW_OP_LIT0 + 15 || cursor.u8() !== DW_OP_AND) return undefined;
  const lit = cursor.u8();
  if (!isLit(lit) || cursor.u8() !== DW_OP_GE) return undefined;
  if (cursor.u8() !== DW_OP_LIT0 + 3 || cursor.u8() !== DW_OP_SHL || cursor.u8() !== DW_OP_PLUS)
    return undefined;
  return cursor.left === 0 ? { offset, threshold: lit - DW_OP_LIT0 } : undefined;
}

/** DW_CFA_def_cfa_expression; the cursor spans the expression. */
export function applyCfaExpression(state: CfiState, cursor: Cursor, registers: Registers): void {
  const start = cursor.at;
  state.setCfaExpression(CFA_UNSUPPORTED, 0, 0, 0);
  if (cursor.left === 0) return;
  const op = cursor.u8();
  if (op < DW_OP_BREG0 || op > DW_OP_BREG31) return;
  const reg = op - DW_OP_BREG0;
  const offset = cursor.sleb();
  if (cursor.left === 0) {
    state.setCfaExpression(RuleKind.CFA, reg, offset, 0);
    return;
  }
  if (cursor.u8() === DW_OP_DEREF) {
    const constant = readConstant(cursor);
    if (constant === undefined) return;
    state.setCfaExpression(RuleKind.CFA_DEREF, reg, offset, constant);
    return;
  }
  cursor.at = start;
  const plt = readPlt(cursor, registers);
  if (plt) state.setCfaExpression(RuleKind.PLT, registers.sp, plt.offset, plt.threshold);
}

/** Nothing (0), `plus_uconst n`, or `lit n; plus`, up to the end. */
function readConstant(cursor: Cursor): number | undefined {
  if (cursor.left === 0) return 0;
  const op = cursor.u8();
  if (op === DW_OP_PLUS_UCONST) {
    const constant = cursor.uleb();
    return cursor.left === 0 ? constant : undefined;
  }
  if (isLit(op) && cursor.left === 1 && cursor.u8() === DW_OP_PLUS) return op - DW_OP_LIT0;
  return undefined;
}

/** DW_CFA_expression of the frame pointer: saved at fp + offset, as functions that realign their stack do. */
export function applyFpExpression(state: CfiState, cursor: Cursor, registers: Registers): void {
  state.fpKind = VALUE_UNSUPPORTED;
  if (cursor.left === 0 || cursor.u8() !== DW_OP_BREG0 + registers.fp) return;
  const offset = cursor.sleb();
  if (cursor.left > 0) return;
  state.fpKind = ValueKind.FRAME;
  state.fpOffset = offset;
}
