/**
 * The procedure linkage table of arm64, through which calls of other libraries go: no unwind information describes it.
 * Its entries leave the stack as it is, except for the first, to which the others jump until the dynamic linker has
 * found their function: it pushes x16 and x30 (ELF for the Arm 64-bit Architecture, "Procedure linkage table").
 */

import { OutOfBounds } from '../../../common/base/byte-source.ts';
import { ElfError, type ElfFile, SHF_EXECINSTR, SHT_NOBITS } from '../../../common/elf/elf.ts';
import { RuleKind, ValueKind } from '../../records/records.gen.ts';
import { REGISTERS } from '../rules/cfi-state.ts';
import type { FunctionRows } from '../rules/rows.ts';
import { newRule, type RuleTable } from '../rules/rules.ts';

const { sp, ra } = REGISTERS.aarch64;
const MAX_FIRST_ENTRY_BYTES = 64;
const INSTRUCTION_BYTES = 4;
/** stp x16, x30, [sp, #-16]! */
const PUSH = Buffer.from('f07bbfa9', 'hex');
/** br x17 */
const JUMP = Buffer.from('20021fd6', 'hex');
const ENTRY = newRule({
  kind: RuleKind.CFA,
  cfaReg: sp,
  fpKind: ValueKind.SAME,
  raKind: ValueKind.REGISTER,
  raOffset: ra,
});
const PUSHED = newRule({ ...ENTRY, cfaOffset: 16, raKind: ValueKind.CFA, raOffset: -8 });

/** Adds its rows where `covered` says nothing about it. */
export function addPlt(
  elf: ElfFile,
  rows: FunctionRows,
  rules: RuleTable,
  covered: (address: number) => boolean,
): void {
  const section = elf.machine === 'aarch64' ? elf.section('.plt') : undefined;
  if (!section || section.type === SHT_NOBITS || !(section.flags & SHF_EXECINSTR)) return;
  const { addr, offset, size } = section;
  if (size === 0 || covered(addr)) return;
  const pushed = findPushed(elf, offset, Math.min(size, MAX_FIRST_ENTRY_BYTES));
  rows.beginFunction(addr, addr + size);
  rows.addRow(addr, rules.intern(ENTRY));
  if (pushed) {
    rows.addRow(addr + pushed.from, rules.intern(PUSHED));
    rows.addRow(addr + pushed.to, rules.intern(ENTRY));
  }
  rows.endFunction();
}

/** From behind the push up to behind the jump; undefined where there is no such entry, as in a static program. */
function findPushed(elf: ElfFile, offset: number, size: number): { from: number; to: number } | undefined {
  try {
    const bytes = Buffer.from(elf.source.read(offset, size));
    const push = bytes.indexOf(PUSH);
    const jump = push < 0 ? -1 : bytes.indexOf(JUMP, push);
    return jump < 0 ? undefined : { from: push + INSTRUCTION_BYTES, to: jump + INSTRUCTION_BYTES };
  } catch (error) {
    if (error instanceof OutOfBounds || error instanceof ElfError) return undefined;
    throw error;
  }
}
