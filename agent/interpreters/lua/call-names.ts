/**
 * What a function of Lua is called. Functions have no names, variables have: as in Lua's own tracebacks, the name is that by which the
 * instruction that called it found it.
 */
import type { LuaLayout } from './layout.ts';
import type { Proto } from './protos.ts';

/** How far back what has set a register is looked for. */
const MAX_BACK = 256;
/** Operands of 9 bits that are constants. */
const CONSTANT = 256;
const SETS_NOTHING = new Set(
  'SETGLOBAL SETUPVAL SETTABUP SETTABLE SETI SETFIELD MMBIN MMBINI MMBINK CLOSE TBC JMP EQ LT LE EQK EQI LTI LEI GTI GEI TEST RETURN RETURN0 RETURN1 TFORPREP SETLIST EXTRAARG'.split(
    ' ',
  ),
);
/** ltm.h of 5.4: what MMBIN calls. */
const EVENTS =
  'index newindex gc mode len eq add sub mul mod pow div idiv band bor bxor shl shr unm bnot lt le concat call close'.split(
    ' ',
  );
const METAMETHODS: Readonly<Record<string, string>> = {
  ...{
    SELF: 'index',
    GETGLOBAL: 'index',
    GETTABUP: 'index',
    GETTABLE: 'index',
    GETI: 'index',
    GETFIELD: 'index',
  },
  ...{
    SETGLOBAL: 'newindex',
    SETTABUP: 'newindex',
    SETTABLE: 'newindex',
    SETI: 'newindex',
    SETFIELD: 'newindex',
  },
  ...{ LTI: 'lt', GTI: 'lt', LEI: 'le', GEI: 'le', RETURN: 'close', CLOSE: 'close' },
  ...Object.fromEntries(
    'ADD SUB MUL DIV MOD POW IDIV BAND BOR BXOR SHL SHR UNM BNOT LEN CONCAT EQ LT LE'
      .split(' ')
      .map((name) => [name, name.toLowerCase()]),
  ),
};

interface Instruction {
  name: string;
  a: number;
  b: number;
  c: number;
  bx: number;
}

interface Found {
  kind: 'variable' | 'upvalue' | 'global' | 'field';
  name: string;
  /** The table that has a field: its register, and before which instruction. */
  table?: { register: number; position: number };
}

/**
 * `argument`: 0 for what the instruction at `position` calls, else which argument of that. Undefined where there is no name.
 * Throws CannotRead.
 */
export function calledName(proto: Proto, position: number, argument: number): string | undefined {
  const finder = new RegisterFinder(proto, position);
  const { name, a, c } = finder.at(position);
  if (name === 'CALL' || name === 'TAILCALL') {
    const isSwapped =
      argument === 2 && finder.nameOf(position, a) === 'xpcall' && swapsArguments(proto.layout);
    return finder.nameOf(position, a + (isSwapped ? 1 : argument));
  }
  if (argument !== 0) return undefined;
  if (name === 'TFORCALL') return finder.nameOf(position, a);
  const event = name.startsWith('MMBIN') ? EVENTS[c] : METAMETHODS[name];
  return event && `__${event}`;
}

class RegisterFinder {
  readonly #proto: Proto;
  readonly #from: number;
  readonly #code: readonly Instruction[];

  constructor(proto: Proto, position: number) {
    this.#proto = proto;
    this.#from = Math.max(0, position - MAX_BACK);
    this.#code = proto.code(this.#from, position).map((word) => decode(proto.layout, word));
  }

  at(position: number): Instruction {
    return this.#code[position - this.#from]!;
  }

  /** Members of global tables have the table's name, too. */
  nameOf(position: number, register: number): string | undefined {
    const found = this.#find(position, register);
    const holder = found?.table && this.#find(found.table.position, found.table.register);
    return holder?.kind === 'global' ? `${holder.name}.${found!.name}` : found?.name;
  }

  /** What a register holds before an instruction. */
  #find(before: number, register: number): Found | undefined {
    const variable = this.#proto.variableName(before, register);
    if (variable !== undefined) return { kind: 'variable', name: variable };
    const position = this.#setter(before, register);
    return position === undefined ? undefined : this.#loaded(position);
  }

  /** The instruction that has set it; undefined where that depends on a condition. */
  #setter(before: number, register: number): number | undefined {
    let setter: number | undefined;
    let target = 0;
    for (let i = this.#from; i < before; i++) {
      const instruction = this.at(i);
      if (instruction.name === 'JMP') {
        const to = i + 1 + jumpOf(this.#proto.layout, instruction);
        if (to <= before) target = Math.max(target, to);
      } else if (sets(instruction, register, this.#proto.layout)) {
        setter = i < target ? undefined : i;
      }
    }
    return setter;
  }

  #constantIn(register: number, before: number): string | undefined {
    const setter = this.#setter(before, register);
    const instruction = setter === undefined ? undefined : this.at(setter);
    return instruction?.name === 'LOADK' ? this.#proto.stringConstant(instruction.bx) : undefined;
  }

  #loaded(position: number): Found | undefined {
    const { name, a, b, c, bx } = this.at(position);
    const is5_4 = this.#proto.layout.operations.includes('GETFIELD');
    const key = is5_4 ? c : c - CONSTANT;
    const constant = (index: number): string | undefined =>
      index < 0 ? undefined : this.#proto.stringConstant(index);
    const found = (kind: Found['kind'], text: string | undefined): Found | undefined =>
      text === undefined ? undefined : { kind, name: text };
    switch (name) {
      case 'MOVE':
        return b < a ? this.#find(position, b) : undefined;
      case 'GETUPVAL':
        return found('upvalue', this.#proto.upvalueName(b));
      case 'GETGLOBAL':
        return found('global', constant(bx));
      case 'GETTABUP':
        return found(this.#proto.upvalueName(b) === '_ENV' ? 'global' : 'field', constant(key));
      case 'GETTABLE':
        // of 5.4 on it is in a register: a constant that is too long for GETFIELD
        return inTable(found('field', is5_4 ? this.#constantIn(c, position) : constant(key)), b, position);
      case 'GETFIELD':
      case 'SELF':
        return inTable(found('field', constant(key)), b, position);
      default:
        return undefined;
    }
  }
}

/** Up to 5.2 xpcall puts its second argument first. */
const swapsArguments = ({ operations }: LuaLayout): boolean => !operations.includes('IDIV');

const inTable = (found: Found | undefined, register: number, position: number): Found | undefined =>
  found && { ...found, table: { register, position } };

function decode({ fields, operations }: LuaLayout, word: number): Instruction {
  const field = ([at, bits]: readonly [number, number]): number => (word >>> at) & (2 ** bits - 1);
  return {
    name: operations[field(fields.op)] ?? '',
    a: field(fields.a),
    b: field(fields.b),
    c: field(fields.c),
    bx: field(fields.bx),
  };
}

function sets({ name, a, b }: Instruction, register: number, { operations }: LuaLayout): boolean {
  if (SETS_NOTHING.has(name) || register < a) return false;
  if (name === 'CALL' || name === 'TAILCALL') return true;
  if (name === 'TFORCALL') return register >= a + 2;
  // up to 5.1 the operand is the last register
  if (name === 'LOADNIL') return register <= (operations.includes('GETGLOBAL') ? b : a + b);
  if (name === 'SELF') return register <= a + 1;
  return register === a;
}

/** JMP: a signed number of 18 bits up to 5.3, of 25 then. */
function jumpOf({ operations }: LuaLayout, { a, b, c, bx }: Instruction): number {
  if (!operations.includes('GETFIELD')) return bx - (2 ** 17 - 1);
  return a + (bx % 2) * 2 ** 8 + b * 2 ** 9 + c * 2 ** 17 - (2 ** 24 - 1);
}
