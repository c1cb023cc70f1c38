/**
 * The DWARF expressions that compilers and linkers write into unwind information. There are few shapes, so they
 * are recognised, not evaluated: sums (linear-expression.ts), and the linkers' expression for the procedure linkage
 * table. Opcodes: DWARF 5, section 7.7.1.
 */
import type { Cursor } from '../../../common/base/cursor.ts';
import { RuleKind, ValueKind } from '../../records/records.gen.ts';
import { CFA_UNSUPPORTED, type CfiState, type Registers } from '../rules/cfi-state.ts';
import { readLinear } from './linear-expression.ts';

const DW_OP_AND = 0x1a;
const DW_OP_PLUS = 0x22;
const DW_OP_SHL = 0x24;
const DW_OP_GE = 0x2a;
const DW_OP_LIT0 = 0x30;
const DW_OP_LIT31 = 0x4f;
const DW_OP_BREG0 = 0x70;
const RIP = 16;

const isLit = (op: number): boolean => op >= DW_OP_LIT0 && op <= DW_OP_LIT31;

/** rsp + 8 + ((rip & 15) >= N ? 8 : 0): the N-th byte of a PLT entry is behind its push. */
function readPlt(cursor: Cursor, registers: Registers): { offset: number; threshold: number } | undefined {
  if (cursor.left === 0 || cursor.u8() !== DW_OP_BREG0 + registers.sp) return undefined;
  const offset = cursor.sleb();
  if (cursor.left < 8 || cursor.u8() !== DW_OP_BREG0 + RIP || cursor.sleb() !== 0) return undefined;
  if (cursor.u8() !== DW_OP_LIT0 + 15 || cursor.u8() !== DW_OP_AND) return undefined;
  const lit = cursor.u8();
  if (!isLit(lit) || cursor.u8() !== DW_OP_GE) return undefined;
  if (cursor.u8() !== DW_OP_LIT0 + 3 || cursor.u8() !== DW_OP_SHL || cursor.u8() !== DW_OP_PLUS)
    return undefined;
  return cursor.left === 0 ? { offset, threshold: lit - DW_OP_LIT0 } : undefined;
}

const fits16 = (value: number): boolean => value >= -32_768 && value <= 32_767;

function applyLoadedTwice(state: CfiState, register: number, at: number, againAt: number, constant: number) {
  if (!fits16(againAt) || !fits16(constant)) return;
  state.setCfaExpression(RuleKind.CFA_DEREF_TWICE, register, at, (constant << 16) | (againAt & 0xffff));
}

/** DW_CFA_def_cfa_expression; the cursor spans the expression. */
export function applyCfaExpression(state: CfiState, cursor: Cursor, registers: Registers): void {
  const start = cursor.at;
  state.setCfaExpression(CFA_UNSUPPORTED, 0, 0, 0);
  const plt = readPlt(cursor, registers);
  if (plt) {
    state.setCfaExpression(RuleKind.PLT, registers.sp, plt.offset, plt.threshold);
    return;
  }
  cursor.at = start;
  const { register, loadedAt, againAt, granules, constant } = readLinear(cursor, registers.vg) ?? {};
  if (register === undefined || granules === undefined || constant === undefined) return;
  if (granules === 0 && loadedAt === undefined) state.setCfaExpression(RuleKind.CFA, register, constant, 0);
  else if (againAt !== undefined) applyLoadedTwice(state, register, loadedAt!, againAt, constant);
  else if (granules === 0) state.setCfaExpression(RuleKind.CFA_DEREF, register, loadedAt!, constant);
  else if (loadedAt === undefined) state.setCfaExpression(RuleKind.CFA_VG, register, constant, granules);
}

/**
 * DW_CFA_expression: where a register is saved, if that is at a distance from the frame or stack pointer.
 *
 * @param isValue DW_CFA_val_expression: what the expression loads is what was saved there
 */
export function readSavedPlace(
  cursor: Cursor,
  registers: Registers,
  isValue: boolean,
): { kind: number; offset: number } | undefined {
  const value = readLinear(cursor, registers.vg);
  if (value?.granules !== 0 || value.againAt !== undefined) return undefined;
  const { register, loadedAt, constant } = value;
  if ((loadedAt !== undefined) !== isValue || (isValue && constant !== 0)) return undefined;
  const offset = loadedAt ?? constant;
  if (register === registers.fp) return { kind: ValueKind.FRAME, offset };
  return register === registers.sp ? { kind: ValueKind.STACK, offset } : undefined;
}
