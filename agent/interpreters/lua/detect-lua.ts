/**
 * Is Lua in this ELF file, which version, and where is its interpreter loop? Told by its library's functions, by the text that it carries of
 * its version, and by the machine code of the loop, which nothing names in most builds.
 */
import { codeAt, textBiasAt } from '../../../common/elf/bytes-at.ts';
import type { ElfFile, Machine } from '../../../common/elf/elf.ts';
import { findText } from '../../../common/elf/find-text.ts';
import {
  type CodeRange,
  type FunctionTable,
  findFunction,
  readFunctions,
} from '../../../common/elf/function-ranges.ts';
import { findNamedSymbols } from '../../../common/symbols/named-symbols.ts';
import { UnsupportedRuntime } from '../contract.ts';
import { type LuaLayout, layoutOf } from './layout.ts';

export interface LuaBinary {
  /** `5.4.6`. */
  version: string;
  layout: LuaLayout;
  /** luaV_execute: ELF virtual addresses. */
  loop: CodeRange;
  /** Difference between virtual address and file offset of the loop. */
  textBias: number;
}

const MARKER = 'lua_newstate';
const LOOP = 'luaV_execute';
const JIT = 'luaopen_jit';
const VERSION = /\$Lua(?:Version)?: Lua (5\.\d{1,2}\.\d{1,2}) /;
const VERSION_MARK = ': Lua 5.';
const MIN_CODE = 2 << 10;
const MAX_CODE = 256 << 10;
/** How many instructions the loop takes apart, at least. */
const MIN_SHIFTS = 12;

/** Undefined where the file has no Lua. Throws {@link UnsupportedRuntime}, ElfError, OutOfBounds. */
export function detectLua(elf: ElfFile): LuaBinary | undefined {
  const symbols = findNamedSymbols(elf, MARKER, [MARKER, LOOP, JIT]);
  if (!symbols.has(MARKER) || symbols.has(JIT)) return undefined;
  const version = findText(elf, VERSION_MARK, VERSION)?.[1];
  if (!version) return undefined;
  const layout = layoutOf(version);
  if (!layout)
    throw new UnsupportedRuntime(`Lua ${version}: known are 5.1, 5.2, 5.3 from 5.3.3 on, 5.4 and 5.5`);
  const functions = readFunctions(elf);
  const named = symbols.get(LOOP);
  const loop = named ? findFunction(functions, named.address) : findLoop(functions, layout);
  if (!loop) throw new UnsupportedRuntime(`Lua ${version}: luaV_execute was not found`);
  return { version, layout, loop, textBias: textBiasAt(elf, loop.start) ?? 0 };
}

/** The function that most often takes the uppermost operand out of an instruction. */
function findLoop(functions: FunctionTable, layout: LuaLayout): CodeRange | undefined {
  const { elf } = functions;
  const [uppermost] = layout.fields.b[0] > layout.fields.c[0] ? layout.fields.b : layout.fields.c;
  let [most, loop]: [number, CodeRange | undefined] = [MIN_SHIFTS - 1, undefined];
  for (const [i, start] of functions.starts.entries()) {
    if ((functions.starts[i + 1] ?? Number.POSITIVE_INFINITY) - start < MIN_CODE) continue;
    const range = findFunction(functions, start);
    if (!range || range.end - range.start < MIN_CODE || range.end - range.start > MAX_CODE) continue;
    const shifts = countShifts(elf.machine, codeAt(elf, start, range.end - start), uppermost);
    if (shifts > most) [most, loop] = [shifts, range];
  }
  return loop;
}

/** Instructions that shift a word of 32 bits to the right by `bits`. */
export function countShifts(machine: Machine, code: Uint8Array, bits: number): number {
  let count = 0;
  if (machine === 'aarch64') {
    const view = new DataView(code.buffer, code.byteOffset, code.byteLength & ~3);
    // lsr w, w, #bits
    const wanted = 0x53007c00 | (bits << 16);
    for (let at = 0; at < view.byteLength; at += 4)
      if ((view.getUint32(at, true) & 0xfffffc00) === wanted) count++;
    return count;
  }
  // shr $bits, %reg
  for (let at = 0; at + 2 < code.length; at++)
    if (code[at] === 0xc1 && code[at + 1]! >= 0xe8 && code[at + 1]! <= 0xef && code[at + 2] === bits) count++;
  return count;
}
