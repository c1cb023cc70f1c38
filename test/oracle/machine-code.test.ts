/** Rules made of machine code alone, against what the compiler wrote into .eh_frame of the same code. */
import { existsSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { newInexpressible, REGISTERS } from '../../agent/stack-deltas/cfi-state.ts';
import { decodeFrameSection } from '../../agent/stack-deltas/frame-section.ts';
import { findEhFrame } from '../../agent/stack-deltas/frame-sources.ts';
import { joinFunctions } from '../../agent/stack-deltas/join.ts';
import { CodeWalk } from '../../agent/stack-deltas/machine-code/walk.ts';
import { FunctionRows } from '../../agent/stack-deltas/rows.ts';
import { type Rule, RuleTable } from '../../agent/stack-deltas/rules.ts';
import { RuleKind, ValueKind } from '../../agent/tracer/records.gen.ts';
import { lastAtOrBelow } from '../../common/base/search.ts';
import { PF_X, PT_LOAD, parseElf } from '../../common/elf/elf.ts';
import { bufferSource } from '../../common/elf/source.ts';

/** A static program: everything is reached from its entry point. */
const PROGRAM = '/bin/busybox';
/** The dynamic linker's trampolines are entered with two words pushed, which their own code does not tell. */
const MAX_DIFFERENT_SHARE = 0.001;
const MIN_INSTRUCTIONS = 10_000;

const missing = process.arch === 'x64' && existsSync(PROGRAM) ? '' : `${PROGRAM} of amd64 is missing`;
if (missing) console.log(`skipped: ${missing}`);

it.skipIf(missing)('agree', () => {
  const elf = parseElf(bufferSource(readFileSync(PROGRAM)));
  const rows = new FunctionRows();
  const rules = new RuleTable();
  decodeFrameSection(findEhFrame(elf)!, {
    ...{ rows, rules, registers: REGISTERS.x86_64, isX86: true, inexpressible: newInexpressible() },
    ...{ savesFpBelowReturnAddress: false, accepts: () => true },
  });
  const { addresses, ruleIds } = joinFunctions(rows);
  const code = elf.segments
    .filter(({ type, flags }) => type === PT_LOAD && flags & PF_X)
    .map((s) => ({ start: s.vaddr, bytes: elf.source.read(s.offset, s.filesz) }));
  const read = (at: number) => code.find(({ start, bytes }) => at >= start && at < start + bytes.length);
  const walk = new CodeWalk(read, { covered: () => false, maxInstructions: 200_000, maxStarts: 50_000 });
  walk.addEntry(elf.entry);
  walk.run();

  let same = 0;
  const different: string[] = [];
  for (const { address, state } of walk.instructions()) {
    const theirs = rules.rules[ruleIds[lastAtOrBelow(addresses, address)] ?? 0]!;
    if (theirs.kind !== RuleKind.CFA) continue;
    if (agree(theirs, state.toRule(), state.fp)) same++;
    else different.push(`0x${address.toString(16)}`);
  }
  expect(same).toBeGreaterThan(MIN_INSTRUCTIONS);
  expect(different.length / same, different.slice(0, 20).join(' ')).toBeLessThan(MAX_DIFFERENT_SHARE);
});

/** The same frame, perhaps found from the other register; behind its pop the caller's rbp is also still in memory. */
function agree(theirs: Rule, ours: Rule, fp: number): boolean {
  const isSameCfa =
    theirs.cfaReg === ours.cfaReg
      ? theirs.cfaOffset === ours.cfaOffset
      : theirs.cfaReg === REGISTERS.x86_64.fp && theirs.cfaOffset === fp;
  const isSameFp = theirs.fpKind === ours.fpKind && theirs.fpOffset === ours.fpOffset;
  return isSameCfa && (isSameFp || ours.fpKind === ValueKind.SAME);
}
