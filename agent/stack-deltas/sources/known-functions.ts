/**
 * Assembly functions without unwind information, recognised by their machine code: musl's start of a thread, which is
 * a root, the code that a signal handler returns to (musl, Go, the vDSO of arm64), and where glibc makes a thread or a process, at which
 * its unwind information ends, since it would be wrong for what was made. musl strips even its symbols, so names would not do.
 */

import { OutOfBounds } from '../../../common/base/byte-source.ts';
import { ElfError, type ElfFile, PF_X, PT_LOAD } from '../../../common/elf/elf.ts';
import { isGo } from '../../../common/elf/go-module.ts';
import { RuleKind, ValueKind } from '../../records/records.gen.ts';
import type { CodeRange } from '../rules/gaps.ts';
import { newRule, type Rule, SIGNAL_RULE, STOP_RULE } from '../rules/rules.ts';

export interface KnownFunction {
  /** First address that the rule holds for. */
  start: number;
  end: number;
  rule: Readonly<Rule>;
}

/** By the address at which unwind information, which is then disregarded, would begin. */
export type KnownFunctions = ReadonlyMap<number, KnownFunction>;

const PT_INTERP = 3;

interface CodePattern {
  code: Buffer;
  /** A signal's code is entered by "return", so it is looked up one byte before its first instruction. */
  before: number;
  rule: Readonly<Rule>;
}

const RSP = 7;
/** Nothing but the return address is on the stack. What was made has a stack of its own, on which no code's address stands there. */
const LEAF_RULE: Readonly<Rule> = newRule({
  kind: RuleKind.CFA,
  cfaReg: RSP,
  fpKind: ValueKind.SAME,
  raKind: ValueKind.CFA,
  cfaOffset: 8,
  raOffset: -8,
});
const CLONE3: readonly CodePattern[] = ['18', '14'].map((distance) => ({
  // syscall; test %rax, %rax; jl to what sets errno; je to what was made; ret
  code: Buffer.from(`0f054885c07c${distance}7401c3`, 'hex'),
  before: 0,
  rule: LEAF_RULE,
}));
const NO_PATTERNS: readonly CodePattern[] = [];

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
const GLIBC = '\0gnu_get_libc_version\0';
const MAX_NAMES_BYTES = 1 << 20;
const LONGEST_PATTERN = 16;
const VDSO_NAME = 'linux-vdso.so.1';
const MAX_VDSO_BYTES = 64 << 10;
const CHUNK_BYTES = 1 << 20;
const MAX_GAP_BYTES = 1 << 20;
const MAX_CODE_BYTES = 512 << 20;
const MAX_FOUND = 64;

/** It brings its own C library, or is one that can run as a program, as musl's. */
export const isStaticProgram = (elf: ElfFile): boolean =>
  elf.entry !== 0 && !elf.segments.some((s) => s.type === PT_INTERP);

/** On arm64 the kernel took the unwind information of its signal trampoline away (Linux 5.8). */
function isVdso({ machine, source }: ElfFile): boolean {
  if (machine !== 'aarch64' || source.size > MAX_VDSO_BYTES) return false;
  return Buffer.from(source.read(0, source.size)).includes(VDSO_NAME);
}

/** Or a program that asks for its version. */
function isGlibc(elf: ElfFile): boolean {
  const names = elf.section('.dynstr');
  if (!names || names.size > MAX_NAMES_BYTES) return false;
  return Buffer.from(elf.sectionData(names)).includes(GLIBC);
}

export function findKnownFunctions(elf: ElfFile): KnownFunctions {
  const found = new Map<number, KnownFunction>();
  try {
    const isStatic = isStaticProgram(elf);
    const own = isGo(elf) || isStatic || isVdso(elf) ? CODE[elf.machine] : NO_PATTERNS;
    const makers = elf.machine === 'x86_64' && (isStatic || isGlibc(elf)) ? CLONE3 : NO_PATTERNS;
    findByCode(elf, [...own, ...makers], found);
  } catch (error) {
    // cut short, or not to be decompressed: what was found is good
    if (!(error instanceof OutOfBounds || error instanceof ElfError)) throw error;
  }
  return found;
}

function findByCode(elf: ElfFile, patterns: readonly CodePattern[], found: Map<number, KnownFunction>): void {
  if (patterns.length === 0) return;
  let left = MAX_CODE_BYTES;
  for (const segment of elf.segments) {
    if (segment.type !== PT_LOAD || !(segment.flags & PF_X)) continue;
    for (let done = 0; done < segment.filesz && left > 0; done += CHUNK_BYTES, left -= CHUNK_BYTES) {
      const size = Math.min(CHUNK_BYTES + LONGEST_PATTERN, segment.filesz - done);
      const bytes = elf.source.read(segment.offset + done, size);
      for (const pattern of patterns) searchCode(bytes, segment.vaddr + done, pattern, found);
    }
  }
}

/** The same in parts of any file. */
export function findKnownIn(elf: ElfFile, gaps: readonly CodeRange[]): KnownFunctions {
  const found = new Map<number, KnownFunction>();
  for (const { start, end } of gaps) {
    const offset = elf.addressToFileOffset(start);
    const size = Math.min(end - start, MAX_GAP_BYTES);
    if (offset === undefined || offset + size > elf.source.size) continue;
    const bytes = elf.source.read(offset, size);
    for (const pattern of CODE[elf.machine]) searchCode(bytes, start, pattern, found);
  }
  return found;
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
