/** Rules made of machine code alone, against what the compiler wrote into .eh_frame of the same code. */
import { existsSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { RuleKind, ValueKind } from '../../agent/records/records.gen.ts';
import { PROCESSORS } from '../../agent/stack-deltas/machine-code/add-code.ts';
import { CodeWalk } from '../../agent/stack-deltas/machine-code/walk.ts';
import { newUnsupportedCfi, REGISTERS } from '../../agent/stack-deltas/rules/cfi-state.ts';
import { flattenFunctions } from '../../agent/stack-deltas/rules/flatten-functions.ts';
import { FunctionRows } from '../../agent/stack-deltas/rules/rows.ts';
import { type Rule, RuleTable } from '../../agent/stack-deltas/rules/rules.ts';
import { decodeFrameSection } from '../../agent/stack-deltas/sources/frame-section.ts';
import { findEhFrame } from '../../agent/stack-deltas/sources/frame-sources.ts';
import { bufferSource } from '../../common/base/byte-source.ts';
import { lastAtOrBelow } from '../../common/base/search.ts';
import { parseElf, SHF_EXECINSTR } from '../../common/elf/elf.ts';

interface Subject {
  path: string;
  /** Of instructions, those whose rule may differ. */
  maxDifferentShare: number;
}

const SUBJECTS: readonly Subject[] = [
  // a static program, all of which is reached from its entry point; the dynamic linker's trampolines are entered with
  // two words pushed, which their own code does not say
  { path: '/bin/busybox', maxDifferentShare: 0.001 },
  { path: '/usr/aarch64-linux-gnu/lib/libc.so.6', maxDifferentShare: 0.001 },
  { path: '/usr/aarch64-linux-gnu/lib/libstdc++.so.6', maxDifferentShare: 0.001 },
];
const MIN_INSTRUCTIONS = 10_000;

const isUsable = ({ path }: Subject): boolean =>
  existsSync(path) && (path !== '/bin/busybox' || process.arch === 'x64');
for (const subject of SUBJECTS)
  if (!isUsable(subject)) console.log(`skipped: ${subject.path} is missing, or of another processor`);

it.each(SUBJECTS.filter(isUsable))('agree in $path', ({ path, maxDifferentShare }) => {
  const elf = parseElf(bufferSource(readFileSync(path)));
  const isX86 = elf.machine === 'x86_64';
  const registers = REGISTERS[elf.machine];
  const rows = new FunctionRows();
  const rules = new RuleTable();
  decodeFrameSection(findEhFrame(elf)!, {
    ...{ rows, rules, registers, isX86, unsupportedCfi: newUnsupportedCfi() },
    ...{ savesFpBelowReturnAddress: false, accepts: () => true },
  });
  const { addresses, ruleIds } = flattenFunctions(rows);
  const code = elf.sections
    .filter(({ flags }) => flags & SHF_EXECINSTR)
    .map((s) => ({ start: s.addr, bytes: elf.sectionData(s) }));
  const read = (at: number) => code.find(({ start, bytes }) => at >= start && at < start + bytes.length);
  const options = { covered: () => false, maxInstructions: 400_000, maxGuesses: 0, maxStarts: 50_000 };
  const walk = new CodeWalk(PROCESSORS[elf.machine], read, options);
  if (elf.entry !== 0) walk.addEntry(elf.entry);
  if (!isX86) for (let i = 0; i < rows.count; i++) walk.addStart(rows.starts[i]!);
  walk.run();

  let same = 0;
  const different: string[] = [];
  for (const { address, state } of walk.instructions()) {
    const theirs = rules.rules[ruleIds[lastAtOrBelow(addresses, address)] ?? 0]!;
    if (theirs.kind !== RuleKind.CFA) continue;
    if (agree(theirs, state.toRule(), state.framePointer, registers.fp)) same++;
    else different.push(`0x${address.toString(16)}`);
  }
  expect(same).toBeGreaterThan(MIN_INSTRUCTIONS);
  expect(different.length / same, different.slice(0, 20).join(' ')).toBeLessThan(maxDifferentShare);
});

/** The same frame, perhaps found from the other register; behind their loads the caller's are also still in memory. */
function agree(theirs: Rule, ours: Rule, framePointer: number, fp: number): boolean {
  const isSameCfa =
    theirs.cfaReg === ours.cfaReg
      ? theirs.cfaOffset === ours.cfaOffset
      : theirs.cfaReg === fp && theirs.cfaOffset === framePointer;
  const isSameFp = theirs.fpKind === ours.fpKind && theirs.fpOffset === ours.fpOffset;
  const isSameLink = theirs.raKind === ours.raKind && theirs.raOffset === ours.raOffset;
  return (
    isSameCfa &&
    (isSameFp || ours.fpKind === ValueKind.SAME) &&
    (isSameLink || ours.raKind === ValueKind.REGISTER)
  );
}
