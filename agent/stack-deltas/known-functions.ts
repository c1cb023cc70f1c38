/**
 * Functions that are the root of a stack, or leave it for another, whose unwind information does not say so: they
 * are found by name. C libraries: the child's side of clone() has no caller. Go: goroutines begin above goexit,
 * threads above mstart; mcall and rt0_go never return; systemstack keeps the caller's frame pointer while it runs
 * on another stack (runtime/asm_amd64.s of Go 1.21 and later).
 */
import { Cursor } from '../../common/base/cursor.ts';
import { type ElfFile, SHT_DYNSYM, SHT_SYMTAB } from '../../common/elf/elf.ts';
import { OutOfBounds } from '../../common/elf/source.ts';
import { FRAME_POINTER_RULE, type Rule, STOP_RULE } from './rules.ts';

interface Known {
  rule: Readonly<Rule>;
  /** Holds against the function's own unwind information too. */
  replaces: boolean;
}

const go = (name: string, rule: Readonly<Rule>): [string, Known][] => [
  [`runtime.${name}`, { rule, replaces: true }],
  [`runtime.${name}.abi0`, { rule, replaces: true }],
];

const KNOWN: ReadonlyMap<string, Known> = new Map([
  ...go('goexit', STOP_RULE),
  ...go('mstart', STOP_RULE),
  ...go('rt0_go', STOP_RULE),
  ...go('mcall', STOP_RULE),
  ...go('systemstack', FRAME_POINTER_RULE),
  ['__clone', { rule: STOP_RULE, replaces: false }],
  ['_dlstart', { rule: STOP_RULE, replaces: false }],
]);
const SYMBOL_BYTES = 24;
const MAX_SYMBOLS = 4 << 20;
const STT_FUNC = 2;
const MAX_FUNCTION_BYTES = 4096;

export interface KnownFunction extends Known {
  end: number;
}

/** By start address. Needs .symtab or .dynsym; a stripped static file has neither, and no entry here. */
export function findKnownFunctions(elf: ElfFile): Map<number, KnownFunction> {
  const found = new Map<number, KnownFunction>();
  for (const section of elf.sections) {
    if (section.type !== SHT_SYMTAB && section.type !== SHT_DYNSYM) continue;
    const names = elf.sections[section.link];
    if (!names || section.size > MAX_SYMBOLS * SYMBOL_BYTES) continue;
    try {
      scanSymbols(elf.sectionData(section), elf.sectionData(names), found);
    } catch (error) {
      if (!(error instanceof OutOfBounds)) throw error;
    }
  }
  return found;
}

/** First letters of the names above: most symbols are passed over without reading more than one byte. */
const FIRST_BYTES = new Set([...KNOWN.keys()].map((name) => name.charCodeAt(0)));

function scanSymbols(symbols: Uint8Array, names: Uint8Array, found: Map<number, KnownFunction>): void {
  const cursor = new Cursor(symbols);
  const text = new Cursor(names);
  for (let at = 0; at + SYMBOL_BYTES <= symbols.length; at += SYMBOL_BYTES) {
    cursor.at = at;
    const name = cursor.u32();
    const info = cursor.u8();
    if ((info & 0xf) > STT_FUNC || !FIRST_BYTES.has(names[name] ?? 0)) continue;
    cursor.skip(3);
    const value = cursor.u64();
    const size = cursor.u64();
    if (value === 0 || size === 0 || size > MAX_FUNCTION_BYTES) continue;
    text.at = name;
    const known = KNOWN.get(text.cstring());
    if (known) found.set(value, { ...known, end: value + size });
  }
}
