/**
 * Functions that are the root of a stack, or leave it for another, whose unwind information does not say so.
 *
 * By name, Go: goroutines begin above goexit, threads above mstart; mcall and rt0_go never return; systemstack
 * keeps the caller's frame pointer while it runs on another stack (runtime/asm_amd64.s of Go 1.21 and later).
 * By machine code, what assembly without unwind information has: musl's start of a thread, and the code that a
 * signal handler returns to (musl, Go). musl strips even its symbols, so names would not do.
 */
import { Cursor } from '../../common/base/cursor.ts';
import { ElfError, type ElfFile, PF_X, PT_LOAD, SHT_DYNSYM, SHT_SYMTAB } from '../../common/elf/elf.ts';
import { OutOfBounds } from '../../common/elf/source.ts';
import { FRAME_POINTER_RULE, type Rule, SIGNAL_RULE, STOP_RULE } from './rules.ts';

export interface KnownFunction {
  /** First address that the rule holds for. */
  start: number;
  end: number;
  rule: Readonly<Rule>;
}

/** By the address at which unwind information, which is then disregarded, would begin. */
export type KnownFunctions = ReadonlyMap<number, KnownFunction>;

const PT_INTERP = 3;
const SYMBOL_BYTES = 24;
const MAX_SYMBOLS_BYTES = 256 << 20;
const STT_FUNC = 2;
const MAX_FUNCTION_BYTES = 4096;
const GO_SECTIONS = ['.gopclntab', '.data.rel.ro.gopclntab'];

const GO: ReadonlyMap<string, Readonly<Rule>> = new Map(
  (
    [
      ['goexit', STOP_RULE],
      ['mstart', STOP_RULE],
      ['rt0_go', STOP_RULE],
      ['mcall', STOP_RULE],
      ['systemstack', FRAME_POINTER_RULE],
    ] as const
  ).flatMap(([name, rule]) => [
    [`runtime.${name}`, rule],
    [`runtime.${name}.abi0`, rule],
  ]),
);

interface CodePattern {
  code: Buffer;
  /** A signal's code is entered by "return", so it is looked up one byte before its first instruction. */
  before: number;
  rule: Readonly<Rule>;
}

const CODE: Readonly<Record<ElfFile['machine'], readonly CodePattern[]>> = {
  x86_64: [
    // mov $15, %rax; syscall: rt_sigreturn
    { code: Buffer.from('48c7c00f0000000f05', 'hex'), before: 1, rule: SIGNAL_RULE },
    // xor %ebp, %ebp; pop %rdi; call *%r9; mov %eax, %edi: the child's side of musl's clone()
    { code: Buffer.from('31ed5f41ffd189c7', 'hex'), before: 0, rule: STOP_RULE },
  ],
  aarch64: [
    // mov x8, #139; svc #0: rt_sigreturn
    { code: Buffer.from('681180d2010000d4', 'hex'), before: 1, rule: SIGNAL_RULE },
  ],
};
const LONGEST_PATTERN = 16;
const CHUNK_BYTES = 1 << 20;
const MAX_CODE_BYTES = 512 << 20;
const MAX_FOUND = 64;

/** It brings its own C library, or is one that can run as a program, as musl's. */
export const isStaticProgram = (elf: ElfFile): boolean =>
  elf.entry !== 0 && !elf.segments.some((s) => s.type === PT_INTERP);

export const isGo = (elf: ElfFile): boolean => GO_SECTIONS.some((name) => elf.section(name) !== undefined);

export function findKnownFunctions(elf: ElfFile): KnownFunctions {
  const found = new Map<number, KnownFunction>();
  const go = isGo(elf);
  const isStatic = isStaticProgram(elf);
  try {
    if (go) findByName(elf, found);
    if (go || isStatic) findByCode(elf, found);
  } catch (error) {
    // cut short, or not to be decompressed: what was found is good
    if (!(error instanceof OutOfBounds || error instanceof ElfError)) throw error;
  }
  return found;
}

function findByName(elf: ElfFile, found: Map<number, KnownFunction>): void {
  const section =
    elf.sections.find((s) => s.type === SHT_SYMTAB) ?? elf.sections.find((s) => s.type === SHT_DYNSYM);
  const names = section && elf.sections[section.link];
  if (!names || section.size > MAX_SYMBOLS_BYTES || names.size > MAX_SYMBOLS_BYTES) return;
  const rules = rulesByOffset(elf.sectionData(names));
  if (rules.size === 0) return;
  const symbols = elf.sectionData(section);
  const cursor = new Cursor(symbols);
  for (let at = 0; at + SYMBOL_BYTES <= symbols.length; at += SYMBOL_BYTES) {
    cursor.at = at;
    const rule = rules.get(cursor.u32());
    if (!rule || (cursor.u8() & 0xf) > STT_FUNC) continue;
    cursor.skip(3);
    const start = cursor.u64();
    const size = cursor.u64();
    if (start > 0 && size > 0 && size <= MAX_FUNCTION_BYTES)
      found.set(start, { start, end: start + size, rule });
  }
}

/** Where in the string table the names above stand; most symbols are then passed over by a number. */
function rulesByOffset(bytes: Uint8Array): Map<number, Readonly<Rule>> {
  const names = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const found = new Map<number, Readonly<Rule>>();
  for (const [name, rule] of GO) {
    // linkers may share the end of a longer name, so it may stand more than once
    const wanted = Buffer.from(`${name}\0`, 'latin1');
    for (
      let at = names.indexOf(wanted);
      at >= 0 && found.size < MAX_FOUND;
      at = names.indexOf(wanted, at + 1)
    )
      found.set(at, rule);
  }
  return found;
}

function findByCode(elf: ElfFile, found: Map<number, KnownFunction>): void {
  let left = MAX_CODE_BYTES;
  for (const segment of elf.segments) {
    if (segment.type !== PT_LOAD || !(segment.flags & PF_X)) continue;
    for (let done = 0; done < segment.filesz && left > 0; done += CHUNK_BYTES, left -= CHUNK_BYTES) {
      const size = Math.min(CHUNK_BYTES + LONGEST_PATTERN, segment.filesz - done);
      const bytes = elf.source.read(segment.offset + done, size);
      for (const pattern of CODE[elf.machine]) searchCode(bytes, segment.vaddr + done, pattern, found);
    }
  }
}

function searchCode(
  bytes: Uint8Array,
  address: number,
  { code, before, rule }: CodePattern,
  found: Map<number, KnownFunction>,
): void {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let at = text.indexOf(code); at >= 0 && found.size < MAX_FOUND; at = text.indexOf(code, at + 1)) {
    const start = address + at;
    found.set(start, { start: start - before, end: start + code.length, rule });
  }
}
