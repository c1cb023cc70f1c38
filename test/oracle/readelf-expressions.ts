/**
 * Expressions in unwind information, as `readelf --debug-dump=frames` prints them: `frames-interp` says only that there
 * is one. Here the instructions are followed as far as needed to know which expression holds where; what it comes to is
 * computed from readelf's text, by rules of its own and with made-up registers and memory.
 */
/** What holds from an address on: text of the CFA's expression, and of those that say where a register is saved. */
interface ExpressionRow {
  cfa: string | undefined;
  registers: ReadonlyMap<number, string>;
}

const CIE = /^([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ CIE/;
const FDE = /^[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\./;
const NONE: ExpressionRow = { cfa: undefined, registers: new Map() };

/** Takes the lines of .eh_frame in order. FDEs are numbered as they come. */
export class ExpressionReader {
  /** Of FDEs that have any. */
  readonly #functions = new Map<number, { starts: number[]; rows: ExpressionRow[] }>();
  readonly #cies = new Map<string, ExpressionRow>();
  #fdes = 0;
  #cie: string | undefined;
  #initial = NONE;
  #state = NONE;
  #remembered: ExpressionRow[] = [];
  #address = 0;

  line(line: string): void {
    if (line.startsWith('  DW_CFA_')) this.#instruction(line);
    else if (line.includes(' FDE ')) this.#fde(FDE.exec(line));
    else if (line.includes(' CIE')) this.#beginCie(CIE.exec(line)?.[1]);
  }

  /** What holds at an address of an FDE. */
  at(fde: number, address: number): ExpressionRow {
    const known = this.#functions.get(fde);
    return known?.rows[known.starts.findLastIndex((start) => start <= address)] ?? NONE;
  }

  #beginCie(name: string | undefined): void {
    if (name === undefined) return;
    this.#cie = name;
    this.#state = NONE;
  }

  #fde(match: RegExpExecArray | null): void {
    if (!match) return;
    this.#cie = undefined;
    this.#fdes++;
    this.#initial = this.#cies.get(match[1]!) ?? NONE;
    this.#state = this.#initial;
    this.#remembered = [];
    this.#address = Number.parseInt(match[2]!, 16);
    if (this.#state !== NONE) this.#note();
  }

  #instruction(line: string): void {
    const [, name = '', rest = ''] = /^ {2}DW_CFA_(\w+):? ?(.*)$/.exec(line) ?? [];
    const register = Number(/^r(\d+)/.exec(rest)?.[1]);
    const expression = /\((DW_OP_.*)\)$/.exec(rest)?.[1];
    if (name.startsWith('advance_loc') || name === 'set_loc' || name === 'MIPS_advance_loc8')
      this.#address = Number.parseInt(/([0-9a-f]+)$/.exec(rest)?.[1] ?? '', 16);
    else if (name === 'remember_state') this.#remembered.push(this.#state);
    else if (name === 'restore_state') this.#become(this.#remembered.pop() ?? this.#state);
    else if (name === 'def_cfa_expression') this.#become({ ...this.#state, cfa: expression });
    else if (name === 'def_cfa' || name === 'def_cfa_sf' || name === 'def_cfa_register')
      this.#become({ ...this.#state, cfa: undefined });
    else if (name === 'expression') this.#setRegister(register, expression);
    else if (name.startsWith('restore')) this.#setRegister(register, this.#initial.registers.get(register));
    else if (Number.isInteger(register)) this.#setRegister(register, undefined);
  }

  #setRegister(register: number, expression: string | undefined): void {
    if (this.#state.registers.get(register) === expression) return;
    const registers = new Map(this.#state.registers);
    if (expression === undefined) registers.delete(register);
    else registers.set(register, expression);
    this.#become({ ...this.#state, registers });
  }

  #become(state: ExpressionRow): void {
    if (state.cfa === this.#state.cfa && state.registers === this.#state.registers) return;
    this.#state = state;
    if (this.#cie === undefined) this.#note();
    else this.#cies.set(this.#cie, state);
  }

  #note(): void {
    const known = this.#functions.get(this.#fdes - 1) ?? { starts: [], rows: [] };
    this.#functions.set(this.#fdes - 1, known);
    if (known.starts.at(-1) === this.#address) known.rows.pop();
    else known.starts.push(this.#address);
    known.rows.push(this.#state);
  }
}

const MASK = (1n << 64n) - 1n;

/** A process that only has registers, and memory in which every address holds something else. */
export class MadeUpProcess {
  readonly #seed: bigint;

  constructor(seed: number) {
    this.#seed = BigInt(seed);
  }

  /** By DWARF number; of instruction pointers the low bits follow the seed, so that they take all values. */
  register(number: number): bigint {
    return (((this.#scatter(BigInt(number) + 1n) >> 16n) & ~15n) + (this.#seed & 15n)) & MASK;
  }

  load(address: bigint): bigint {
    return this.#scatter(address ^ 0x9e3779b97f4a7c15n);
  }

  #scatter(value: bigint): bigint {
    let x = (value + this.#seed * 0x632be59bd9b4e019n) & MASK;
    for (let i = 0; i < 2; i++) x = ((x ^ (x >> 32n)) * 0xd6e8feb86659fd93n) & MASK;
    return x ^ (x >> 32n);
  }
}

const signed = (x: bigint): bigint => BigInt.asIntN(64, x);
const OPERATORS: Readonly<Record<string, (left: bigint, right: bigint) => bigint>> = {
  and: (a, b) => a & b,
  or: (a, b) => a | b,
  plus: (a, b) => a + b,
  minus: (a, b) => a - b,
  mul: (a, b) => a * b,
  shl: (a, b) => (b > 63n ? 0n : a << b),
  ge: (a, b) => (signed(a) >= signed(b) ? 1n : 0n),
  gt: (a, b) => (signed(a) > signed(b) ? 1n : 0n),
  le: (a, b) => (signed(a) <= signed(b) ? 1n : 0n),
  lt: (a, b) => (signed(a) < signed(b) ? 1n : 0n),
  eq: (a, b) => (a === b ? 1n : 0n),
  ne: (a, b) => (a === b ? 0n : 1n),
};

/** Undefined where the text has an instruction that is not known here. */
export function evaluate(text: string, process: MadeUpProcess): bigint | undefined {
  const stack: bigint[] = [];
  for (const instruction of text.split('; ')) {
    const value = step(instruction, stack, process);
    if (value === undefined) return undefined;
    stack.push(value & MASK);
  }
  return stack.at(-1);
}

function step(instruction: string, stack: bigint[], process: MadeUpProcess): bigint | undefined {
  const [, name = '', rest = ''] = /^DW_OP_(\w+):?(.*)$/.exec(instruction) ?? [];
  const number = /(-?\d+)$/.exec(rest)?.[1];
  if (/^lit\d+$/.test(name)) return BigInt(name.slice(3));
  if (/^breg(\d+|x)$/.test(name) && number !== undefined) {
    const register = name === 'bregx' ? Number(/^ *(\d+)/.exec(rest)?.[1]) : Number(name.slice(4));
    return process.register(register) + BigInt(number);
  }
  if (/^const/.test(name) && number !== undefined) return BigInt(number);
  const right = stack.pop();
  if (right === undefined) return undefined;
  if (name === 'plus_uconst' && number !== undefined) return right + BigInt(number);
  if (name === 'deref') return process.load(right);
  const left = stack.pop();
  return left === undefined ? undefined : OPERATORS[name]?.(left, right);
}
