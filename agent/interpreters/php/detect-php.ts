/**
 * Is PHP in this ELF file, which version, and where is its virtual machine? Told by exported symbols, which stripped builds
 * have as well (extensions need them), never by the file's name: `php`, `php-fpm` and the library of a web server look alike.
 */
import { codeAt, textBiasAt } from '../../../common/elf/bytes-at.ts';
import { type ElfFile, PT_LOAD } from '../../../common/elf/elf.ts';
import { findNamedSymbols, type NamedSymbol } from '../../../common/symbols/named-symbols.ts';
import { UnsupportedRuntime } from '../contract.ts';
import { layoutOf, type PhpLayout } from './layout.ts';
import { behindFirstJump, HYBRID, returnedConstant } from './vm-code.ts';

export interface PhpBinary {
  /** `8.2.36`. */
  version: string;
  layout: PhpLayout;
  /** execute_ex, ELF virtual address and bytes. */
  loop: NamedSymbol;
  /** executor_globals. */
  globals: number;
  /** Behind the jump to the first instruction; undefined where the JIT can't be followed. */
  resume: number | undefined;
  /** Is the instruction in a register? */
  hasLineRegister: boolean;
  /** Difference between virtual address and file offset of execute_ex. */
  textBias: number;
}

const LOOP = 'execute_ex';
const WANTED = [LOOP, 'executor_globals', 'executor_globals_offset', 'zend_vm_kind'] as const;
/** What it says of itself in each answer to a browser. */
const VERSION_MARK = 'X-Powered-By: PHP/';
const MAX_SEGMENT = 64 << 20;
const JUMP_BYTES = 192;

/** Undefined where the file has no PHP. Throws {@link UnsupportedRuntime}, ElfError, OutOfBounds. */
export function detectPhp(elf: ElfFile): PhpBinary | undefined {
  const symbols = findNamedSymbols(elf, LOOP, WANTED);
  const [loop, globals] = [symbols.get(LOOP), symbols.get('executor_globals')];
  if (!loop || !(globals || symbols.has('executor_globals_offset'))) return undefined;
  const version = readVersion(elf);
  if (!version) throw new UnsupportedRuntime('PHP of unknown version');
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const layout = layoutOf(major, minor);
  if (!layout) throw new UnsupportedRuntime(`PHP ${version}: 7.3 is the oldest`);
  if (!globals) throw new UnsupportedRuntime(`PHP ${version}: builds with threads (ZTS) are not supported`);
  const isHybrid = vmKind(elf, symbols.get('zend_vm_kind')) === HYBRID;
  const jump = isHybrid ? behindFirstJump(elf.machine, codeAt(elf, loop.address, JUMP_BYTES)) : undefined;
  const textBias = textBiasAt(elf, loop.address);
  if (textBias === undefined) throw new UnsupportedRuntime(`PHP ${version}: ${LOOP} is in no segment`);
  return {
    version,
    layout,
    loop,
    globals: globals.address,
    resume: jump === undefined ? undefined : loop.address + jump,
    hasLineRegister: isHybrid,
    textBias,
  };
}

const vmKind = (elf: ElfFile, symbol: NamedSymbol | undefined): number | undefined =>
  symbol && returnedConstant(elf.machine, codeAt(elf, symbol.address, 16));

function readVersion(elf: ElfFile): string | undefined {
  for (const { type, offset, filesz } of elf.segments) {
    if (type !== PT_LOAD || filesz > MAX_SEGMENT) continue;
    const bytes = elf.source.read(offset, Math.min(filesz, Math.max(0, elf.source.size - offset)));
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    for (let at = text.indexOf(VERSION_MARK); at >= 0; at = text.indexOf(VERSION_MARK, at + 1)) {
      const from = at + VERSION_MARK.length;
      const version = /^\d{1,3}\.\d{1,3}\.\d{1,3}/.exec(text.toString('latin1', from, from + 16));
      if (version) return version[0];
    }
  }
  return undefined;
}
