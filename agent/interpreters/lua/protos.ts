/** Lua's prototypes (Proto: what functions of one place in the source share), read out of a live process. */
import { CannotRead, type RuntimeMemory, wordAt } from '../runtime-memory.ts';
import type { LuaLayout } from './layout.ts';

const TEXT = 0x18;
const HASH = 12;
const MAX_NAME = 256;
const MAX_FILE = 4096;
const MAX_COUNT = 1 << 24;
const MAX_VARIABLES = 4096;
const MAX_UPVALUES = 255;
/** A type's low bits: LUA_TSTRING. */
const STRING = 4;
const CONSTANT_BYTES = 16;
const VARIABLE_BYTES = 16;
/** MAXIWTHABS, and as much again. */
const MAX_DIFFERENCES = 256;
/** ABSLINEINFO: the line is in the other table. */
const ABSOLUTE = -128;

export class Proto {
  readonly address: number;
  readonly layout: LuaLayout;
  readonly #memory: RuntimeMemory;

  constructor(memory: RuntimeMemory, layout: LuaLayout, address: number) {
    this.#memory = memory;
    this.layout = layout;
    this.address = address;
  }

  #pointer(at: number): number {
    return this.#memory.word(this.address + at);
  }

  #count(at: number): number {
    const count = this.#memory.u32(this.address + at);
    if (count > MAX_COUNT) throw new CannotRead('malformed');
    return count;
  }

  #string(address: number, maxBytes = MAX_NAME): string {
    const { textLength } = this.layout;
    const isElsewhere = textLength !== 0 && this.#memory.view(address + textLength, 1).getInt8(0) < 0;
    return this.#memory.text(isElsewhere ? this.#memory.word(address + TEXT) : address + TEXT, maxBytes);
  }

  /** Address and hash of its source, and its lines: what the unwinder has made the cookie of. */
  identity(): { source: bigint; hash: bigint; lines: bigint } {
    const { source, firstLine } = this.layout.proto;
    const text = this.#pointer(source);
    return {
      source: BigInt(text),
      hash: text === 0 ? 0n : BigInt(this.#memory.u32(text + HASH)),
      lines: this.#memory.view(this.address + firstLine, 8).getBigUint64(0, true),
    };
  }

  /** '' where the debug information was removed. */
  chunk(): string {
    const source = this.#pointer(this.layout.proto.source);
    return source === 0 ? '=?' : this.#string(source, MAX_FILE);
  }

  firstLine(): number {
    return this.#count(this.layout.proto.firstLine);
  }

  /** Instructions from one position up to another, the latter included. */
  code(from: number, to: number): number[] {
    const { count, code } = this.layout.proto;
    if (to >= this.#count(count)) throw new CannotRead('malformed');
    const view = this.#memory.view(this.#pointer(code) + from * 4, (to + 1 - from) * 4);
    return Array.from({ length: to + 1 - from }, (_, i) => view.getUint32(i * 4, true));
  }

  /** Of an instruction; 0: not known. */
  line(position: number): number {
    const { lineCount, lines, absolute } = this.layout.proto;
    if (position >= this.#count(lineCount)) return 0;
    if (!absolute) return this.#memory.u32(this.#pointer(lines) + position * 4);
    const [base, line] = this.#lineBefore(position, absolute);
    const count = position - base;
    if (count > MAX_DIFFERENCES) return 0;
    if (count === 0) return line;
    const view = this.#memory.view(this.#pointer(lines) + base + 1, count);
    const differences = Array.from({ length: count }, (_, i) => view.getInt8(i));
    return differences.includes(ABSOLUTE) ? 0 : differences.reduce((a, b) => a + b, line);
  }

  /** The last place at or before `position` of which the line is noted, and that line. */
  #lineBefore(position: number, { count, table }: { count: number; table: number }): [number, number] {
    const places = this.#count(count);
    const at = this.#pointer(table);
    let [low, high] = [0, places];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#memory.u32(at + middle * 8) <= position) low = middle + 1;
      else high = middle;
    }
    if (low === 0) return [-1, this.firstLine()];
    const view = this.#memory.view(at + (low - 1) * 8, 8);
    return [view.getUint32(0, true), view.getUint32(4, true)];
  }

  /** A constant that is a string. */
  stringConstant(index: number): string | undefined {
    const { constantCount, constants } = this.layout.proto;
    if (index >= this.#count(constantCount)) return undefined;
    const value = this.#memory.view(this.#pointer(constants) + index * CONSTANT_BYTES, CONSTANT_BYTES);
    return (value.getUint8(8) & 15) === STRING ? this.#string(wordAt(value, 0)) : undefined;
  }

  upvalueName(index: number): string | undefined {
    const { upvalueCount, upvalues } = this.layout.proto;
    if (index >= Math.min(this.#count(upvalueCount), MAX_UPVALUES)) return undefined;
    const name = this.#memory.word(this.#pointer(upvalues) + index * this.layout.upvalueBytes);
    return name === 0 ? undefined : this.#string(name);
  }

  /** Of the local variable that a register holds at an instruction. */
  variableName(position: number, register: number): string | undefined {
    const { variableCount, variables } = this.layout.proto;
    const count = Math.min(this.#count(variableCount), MAX_VARIABLES);
    if (count === 0) return undefined;
    const view = this.#memory.view(this.#pointer(variables), count * VARIABLE_BYTES);
    let left = register;
    for (let at = 0; at < count * VARIABLE_BYTES; at += VARIABLE_BYTES) {
      if (view.getUint32(at + 8, true) > position) return undefined;
      if (position < view.getUint32(at + 12, true) && left-- === 0) {
        const name = this.#string(wordAt(view, at));
        // what loops keep for themselves: `(for state)`
        return name.startsWith('(') ? undefined : name;
      }
    }
    return undefined;
  }
}
