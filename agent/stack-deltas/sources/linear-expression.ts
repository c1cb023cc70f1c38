/**
 * DWARF expressions whose value is a sum: a register, or what it points to, plus a constant, plus so many vector lengths.
 * Nothing is read or executed: each entry of the expression's stack is such a sum, in numbers. Opcodes: DWARF 5,
 * section 7.7.1.
 */
import type { Cursor } from '../../../common/base/cursor.ts';

export interface LinearValue {
  /** DWARF number of the register; undefined: there is none in it. */
  register: number | undefined;
  /** The register's value is not it, but the 8 bytes at it and this offset. */
  loadedAt: number | undefined;
  /** And not those either, but the 8 bytes at them and this offset. */
  againAt: number | undefined;
  /** How often VG is added. */
  granules: number;
  constant: number;
}

const DW_OP_DEREF = 0x06;
const DW_OP_CONST1U = 0x08;
const DW_OP_CONST8S = 0x0f;
const DW_OP_CONSTU = 0x10;
const DW_OP_CONSTS = 0x11;
const DW_OP_MINUS = 0x1c;
const DW_OP_MUL = 0x1e;
const DW_OP_PLUS = 0x22;
const DW_OP_PLUS_UCONST = 0x23;
const DW_OP_SHL = 0x24;
const DW_OP_LIT0 = 0x30;
const DW_OP_LIT31 = 0x4f;
const DW_OP_BREG0 = 0x70;
const DW_OP_BREG31 = 0x8f;
const DW_OP_BREGX = 0x92;

const MAX_STACK = 8;
const MAX_SHIFT = 31;

const constantOf = (constant: number): LinearValue => ({
  register: undefined,
  loadedAt: undefined,
  againAt: undefined,
  granules: 0,
  constant,
});
const isConstant = ({ register, granules }: LinearValue): boolean => register === undefined && granules === 0;

/** The value of the expression that the cursor spans; undefined where it is another one. `vg`: number of the register VG. */
export function readLinear(cursor: Cursor, vg: number | undefined): LinearValue | undefined {
  const stack: LinearValue[] = [];
  while (cursor.left > 0) {
    const op = cursor.u8();
    const value = readOperand(op, cursor, vg) ?? applyOperator(op, cursor, stack);
    if (!value || stack.length === MAX_STACK) return undefined;
    stack.push(value);
  }
  const [value] = stack;
  if (!value || stack.length > 1) return undefined;
  return Number.isSafeInteger(value.constant) && Number.isSafeInteger(value.granules) ? value : undefined;
}

/** What the instruction pushes without looking at the stack. */
function readOperand(op: number, cursor: Cursor, vg: number | undefined): LinearValue | undefined {
  if (op >= DW_OP_LIT0 && op <= DW_OP_LIT31) return constantOf(op - DW_OP_LIT0);
  if (op >= DW_OP_CONST1U && op <= DW_OP_CONST8S) return constantOf(readFixed(op, cursor));
  if (op === DW_OP_CONSTU) return constantOf(cursor.uleb());
  if (op === DW_OP_CONSTS) return constantOf(cursor.sleb());
  const isShort = op >= DW_OP_BREG0 && op <= DW_OP_BREG31;
  if (!isShort && op !== DW_OP_BREGX) return undefined;
  const register = isShort ? op - DW_OP_BREG0 : cursor.uleb();
  const value = constantOf(cursor.sleb());
  return register === vg ? { ...value, granules: 1 } : { ...value, register };
}

/** const1u, const1s, const2u, … const8s. */
function readFixed(op: number, cursor: Cursor): number {
  const readers = [
    cursor.u8,
    cursor.i8,
    cursor.u16,
    cursor.i16,
    cursor.u32,
    cursor.i32,
    cursor.u64,
    cursor.i64,
  ];
  return readers[op - DW_OP_CONST1U]!.call(cursor);
}

/** What the instruction makes of the uppermost values, which it takes. */
function applyOperator(op: number, cursor: Cursor, stack: LinearValue[]): LinearValue | undefined {
  const right = stack.pop();
  if (!right) return undefined;
  if (op === DW_OP_PLUS_UCONST) return add(right, constantOf(cursor.uleb()));
  if (op === DW_OP_DEREF) return load(right);
  const left = stack.pop();
  if (!left) return undefined;
  switch (op) {
    case DW_OP_PLUS:
      return add(left, right);
    case DW_OP_MINUS:
      return right.register === undefined ? add(left, multiply(right, -1)) : undefined;
    case DW_OP_MUL:
      if (isConstant(left)) return multiply(right, left.constant);
      return isConstant(right) ? multiply(left, right.constant) : undefined;
    case DW_OP_SHL:
      return isConstant(right) && right.constant <= MAX_SHIFT
        ? multiply(left, 2 ** right.constant)
        : undefined;
    default:
      return undefined;
  }
}

function add(left: LinearValue, right: LinearValue | undefined): LinearValue | undefined {
  if (!right) return undefined;
  if (left.register !== undefined && right.register !== undefined) return undefined;
  const { register, loadedAt, againAt } = left.register === undefined ? right : left;
  return {
    register,
    loadedAt,
    againAt,
    granules: left.granules + right.granules,
    constant: left.constant + right.constant,
  };
}

function multiply(value: LinearValue, factor: number): LinearValue | undefined {
  if (value.register !== undefined) return undefined;
  return { ...value, granules: value.granules * factor, constant: value.constant * factor };
}

function load({ register, loadedAt, againAt, granules, constant }: LinearValue): LinearValue | undefined {
  if (register === undefined || againAt !== undefined || granules !== 0) return undefined;
  if (loadedAt === undefined) return { register, loadedAt: constant, againAt, granules: 0, constant: 0 };
  return { register, loadedAt, againAt: constant, granules: 0, constant: 0 };
}
