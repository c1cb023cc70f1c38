/**
 * Is LuaJIT in this ELF file, which version, and where is its interpreter? Told by the library that it alone exports, and by the machine
 * code of the interpreter, never by the file's name: `luajit`, a library, a web server with LuaJIT linked in look alike.
 */
import { codeAt, textBiasAt } from '../../../common/elf/bytes-at.ts';
import type { ElfFile } from '../../../common/elf/elf.ts';
import { findText } from '../../../common/elf/find-text.ts';
import { type CodeRange, findFunction, readFunctions } from '../../../common/elf/function-ranges.ts';
import { findNamedSymbols } from '../../../common/symbols/named-symbols.ts';
import { UnsupportedRuntime } from '../contract.ts';
import { readVmCode, type VmCode } from './vm-code.ts';

export interface LuajitBinary {
  /** `2.1.1737090214`, `2.1.0-beta3`. */
  version: string;
  /** ELF virtual addresses. */
  vm: CodeRange;
  code: VmCode;
  /** Difference between virtual address and file offset of the interpreter. */
  textBias: number;
}

const MARKER = 'luaopen_jit';
const VERSION_MARK = 'LuaJIT 2.';
const VERSION = /LuaJIT (2\.\d{1,3}\.[\w-]{1,24})/;
/** The interpreter has some 16 KiB. */
const MIN_CODE = 8 << 10;
const MAX_CODE = 64 << 10;

/** Undefined where the file has no LuaJIT. Throws {@link UnsupportedRuntime}, ElfError, OutOfBounds. */
export function detectLuajit(elf: ElfFile): LuajitBinary | undefined {
  if (!findNamedSymbols(elf, MARKER, [MARKER]).has(MARKER)) return undefined;
  const version = findText(elf, VERSION_MARK, VERSION)?.[1];
  if (!version) return undefined;
  if (version.startsWith('2.0')) throw new UnsupportedRuntime(`LuaJIT ${version}: 2.1 is the oldest`);
  for (const vm of largeFunctions(elf)) {
    const code = readVmCode(elf.machine, codeAt(elf, vm.start, vm.end - vm.start));
    if (code) return { version, vm, code, textBias: textBiasAt(elf, vm.start) ?? 0 };
  }
  throw new UnsupportedRuntime(`LuaJIT ${version}: its interpreter was not found`);
}

function* largeFunctions(elf: ElfFile): Generator<CodeRange> {
  const functions = readFunctions(elf);
  const { starts } = functions;
  for (let i = 0; i < starts.length; i++) {
    const next = starts[i + 1] ?? Number.POSITIVE_INFINITY;
    if (next - starts[i]! < MIN_CODE) continue;
    const range = findFunction(functions, starts[i]!);
    if (range && range.end - range.start >= MIN_CODE && range.end - range.start <= MAX_CODE) yield range;
  }
}
