/**
 * What a function of Lua is called. Functions have no names, variables have: as in Lua's own tracebacks, the name is that by which the
 * instruction that called it found it. Opcodes: lj_bc.h; up to the calls they are the same in all of 2.1.
 */
import type { LuajitMemory, Proto } from './protos.ts';

const OP = {
  ISTC: 12,
  ISFC: 13,
  MOV: 18,
  CAT: 38,
  KSTR: 39,
  KPRI: 43,
  KNIL: 44,
  UGET: 45,
  FNEW: 51,
  GGET: 54,
  TGETV: 56,
  TGETS: 57,
  TGETR: 59,
  TSETV: 60,
  TSETM: 63,
  TSETR: 64,
  CALLM: 65,
  CALL: 66,
  CALLT: 68,
  ITERC: 69,
  ITERN: 70,
  RETM: 73,
  FORI: 77,
  LOOP: 85,
} as const;
const METAMETHODS: Readonly<Record<number, string>> = {
  0: '__lt',
  1: '__lt',
  2: '__le',
  3: '__le',
  4: '__eq',
  5: '__eq',
  20: '__unm',
  21: '__len',
  37: '__pow',
  38: '__concat',
  55: '__newindex',
};
const ARITHMETIC = ['__add', '__sub', '__mul', '__div', '__mod'];
const FIRST_ARITHMETIC = 22;
const LAST_ARITHMETIC = 36;
/** How far back what has set a slot is looked for. */
const MAX_BACK = 256;

interface Named {
  kind: 'variable' | 'upvalue' | 'global' | 'field';
  name: string;
}

const opcode = (instruction: number): number => instruction & 255;
const a = (instruction: number): number => (instruction >>> 8) & 255;
const b = (instruction: number): number => instruction >>> 24;
const c = (instruction: number): number => (instruction >>> 16) & 255;
const d = (instruction: number): number => instruction >>> 16;

const setsSlot = (op: number): boolean =>
  op === OP.ISTC ||
  op === OP.ISFC ||
  (op >= OP.MOV && op <= OP.KPRI) ||
  op === OP.UGET ||
  (op >= OP.FNEW && op <= OP.GGET) ||
  (op >= OP.TGETV && op <= OP.TGETR);

const setsFrom = (op: number): boolean =>
  op === OP.KNIL || op === OP.TSETM || (op >= OP.CALLM && op <= OP.RETM) || (op >= OP.FORI && op < OP.LOOP);

/** `argument`: 0 for what is called, else which of what it is given. Undefined where there is no name. */
export function calledName(
  memory: LuajitMemory,
  proto: Proto,
  call: number,
  argument: number,
): string | undefined {
  const position = (call - proto.code) / 4;
  const from = Math.max(0, position - MAX_BACK);
  const view = memory.view(proto.code + from * 4, (position + 1 - from) * 4);
  if (!view) return undefined;
  const at = (i: number): number => view.getUint32((i - from) * 4, true);
  const finder = new SlotFinder(memory, proto, from, at);
  const instruction = at(position);
  const op = opcode(instruction);
  if (op < OP.CALLM || op > OP.ITERN || op === OP.CALLT + 3)
    return argument === 0 ? metamethod(op) : undefined;
  const slot = a(instruction) - (op >= OP.ITERC ? 3 : 0);
  const heads = memory.layout.pointerBytes === 8 ? 1 : 0;
  const named = finder.find(position, argument === 0 ? slot : slot + argument + heads);
  return named && finder.fullName(named);
}

function metamethod(op: number): string | undefined {
  if (op >= FIRST_ARITHMETIC && op <= LAST_ARITHMETIC)
    return ARITHMETIC[(op - FIRST_ARITHMETIC) % ARITHMETIC.length];
  if (op >= OP.TGETV && op <= OP.TGETR) return '__index';
  if (op >= OP.TSETV && op <= OP.TSETR) return '__newindex';
  return METAMETHODS[op] ?? (op === OP.GGET ? '__index' : undefined);
}

interface Found extends Named {
  /** The table that has a field: its slot, and before which instruction. */
  table?: { slot: number; position: number };
}

class SlotFinder {
  readonly #memory: LuajitMemory;
  readonly #proto: Proto;
  readonly #from: number;
  readonly #at: (position: number) => number;

  constructor(memory: LuajitMemory, proto: Proto, from: number, at: (position: number) => number) {
    this.#memory = memory;
    this.#proto = proto;
    this.#from = from;
    this.#at = at;
  }

  /** What a slot holds before an instruction. */
  find(before: number, wanted: number): Found | undefined {
    let slot = wanted;
    let variable = this.#variable(before, slot);
    for (let i = before - 1; !variable && i > this.#from; i--) {
      const instruction = this.#at(i);
      const op = opcode(instruction);
      const first = a(instruction);
      if (setsFrom(op) && slot >= first && (op !== OP.KNIL || slot <= d(instruction))) return undefined;
      if (!setsSlot(op) || first !== slot) continue;
      if (op !== OP.MOV) return this.#loaded(instruction, op, i);
      slot = d(instruction);
      variable = this.#variable(i, slot);
    }
    return variable;
  }

  /** Members of global tables have the table's name, too. */
  fullName({ name, table }: Found): string {
    const holder = table && this.find(table.position, table.slot);
    return holder?.kind === 'global' ? `${holder.name}.${name}` : name;
  }

  #variable(position: number, slot: number): Found | undefined {
    const name = this.#memory.variableName(this.#proto, position, slot);
    return name === undefined ? undefined : { kind: 'variable', name };
  }

  #loaded(instruction: number, op: number, position: number): Found | undefined {
    const named = (kind: Named['kind'], name: string | undefined): Found | undefined =>
      name === undefined ? undefined : { kind, name };
    if (op === OP.GGET) return named('global', this.#memory.stringConstant(this.#proto, d(instruction)));
    if (op === OP.UGET) return named('upvalue', this.#memory.upvalueName(this.#proto, d(instruction)));
    if (op !== OP.TGETS) return undefined;
    const field = named('field', this.#memory.stringConstant(this.#proto, c(instruction)));
    return field && { ...field, table: { slot: b(instruction), position } };
  }
}
