/**
 * Is PHP in this ELF file, which version, and where is its virtual machine? Told by exported symbols, which stripped builds
 * have as well (extensions need them), never by the file's name: `php`, `php-fpm` and the library of a web server look alike.
 */
import { codeAt, textBiasAt } from '../../../common/elf/bytes-at.ts';
import type { ElfFile } from '../../../common/elf/elf.ts';
import { findText } from '../../../common/elf/find-text.ts';
import { usesMusl } from '../../../common/elf/uses-musl.ts';
import { findGlobalSlot } from '../../../common/symbols/global-slot.ts';
import { findNamedSymbols, type NamedSymbol } from '../../../common/symbols/named-symbols.ts';
import { UnsupportedRuntime } from '../contract.ts';
import { layoutOf, type PhpLayout } from './layout.ts';
import { behindFirstJump, firstLoaded, HYBRID, returnedConstant } from './vm-code.ts';

/** Where executor_globals are. Addresses are ELF virtual addresses. */
export type PhpGlobals =
  | { kind: 'variable'; address: number }
  /** Each thread has its own, a number of bytes behind what a pthread key leads to. */
  | {
      kind: 'thread';
      /** The key's number. */
      key: number;
      /** That number of bytes; in a library its address stands there. */
      offset: number;
      isSlot: boolean;
      isMusl: boolean;
    };

export interface PhpBinary {
  /** `8.2.36`. */
  version: string;
  layout: PhpLayout;
  /** execute_ex, ELF virtual address and bytes. */
  loop: NamedSymbol;
  globals: PhpGlobals;
  /** Behind the jump to the first instruction; undefined where the JIT can't be followed. */
  resume: number | undefined;
  /** Is the instruction in a register? */
  hasLineRegister: boolean;
  /** Difference between virtual address and file offset of execute_ex. */
  textBias: number;
}

const LOOP = 'execute_ex';
const OFFSET = 'executor_globals_offset';
/** Returns what TSRM's pthread key leads to; builds with threads have it. */
const KEY_READER = 'tsrm_get_ls_cache';
const WANTED = [LOOP, 'executor_globals', OFFSET, KEY_READER, 'zend_vm_kind'] as const;
type Symbols = ReadonlyMap<(typeof WANTED)[number], NamedSymbol>;
/** What it says of itself in each answer to a browser. */
const VERSION_MARK = 'X-Powered-By: PHP/';
const VERSION = /X-Powered-By: PHP\/(\d{1,3}\.\d{1,3}\.\d{1,3})/;
const JUMP_BYTES = 192;
const READER_BYTES = 32;

/** Undefined where the file has no PHP. Throws {@link UnsupportedRuntime}, ElfError, OutOfBounds. */
export function detectPhp(elf: ElfFile): PhpBinary | undefined {
  const symbols = findNamedSymbols(elf, LOOP, WANTED);
  const loop = symbols.get(LOOP);
  if (!loop || !(symbols.has('executor_globals') || symbols.has(KEY_READER))) return undefined;
  const version = findText(elf, VERSION_MARK, VERSION)?.[1];
  if (!version) throw new UnsupportedRuntime('PHP of unknown version');
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const layout = layoutOf(major, minor);
  if (!layout) throw new UnsupportedRuntime(`PHP ${version}: 7.3 is the oldest`);
  const isHybrid = vmKind(elf, symbols.get('zend_vm_kind')) === HYBRID;
  const jump = isHybrid ? behindFirstJump(elf.machine, codeAt(elf, loop.address, JUMP_BYTES)) : undefined;
  const textBias = textBiasAt(elf, loop.address);
  if (textBias === undefined) throw new UnsupportedRuntime(`PHP ${version}: ${LOOP} is in no segment`);
  return {
    version,
    layout,
    loop,
    globals: findGlobals(elf, symbols, version),
    resume: jump === undefined ? undefined : loop.address + jump,
    hasLineRegister: isHybrid,
    textBias,
  };
}

function findGlobals(elf: ElfFile, symbols: Symbols, version: string): PhpGlobals {
  const reader = symbols.get(KEY_READER);
  if (!reader) return { kind: 'variable', address: symbols.get('executor_globals')!.address };
  const offset = symbols.get(OFFSET)?.address;
  // 7.3 has a table of pointers
  if (offset === undefined) throw new UnsupportedRuntime(`PHP ${version}, with threads (ZTS): no ${OFFSET}`);
  const code = codeAt(elf, reader.address, Math.min(reader.size, READER_BYTES));
  const key = firstLoaded(elf.machine, code, reader.address);
  if (key === undefined)
    throw new UnsupportedRuntime(`PHP ${version}, with threads (ZTS): no pthread key in ${KEY_READER}`);
  const slot = findGlobalSlot(elf, offset);
  return { kind: 'thread', key, offset: slot ?? offset, isSlot: slot !== undefined, isMusl: usesMusl(elf) };
}

const vmKind = (elf: ElfFile, symbol: NamedSymbol | undefined): number | undefined =>
  symbol && returnedConstant(elf.machine, codeAt(elf, symbol.address, 16));
