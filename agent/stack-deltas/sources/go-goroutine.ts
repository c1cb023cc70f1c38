/**
 * How Go's scheduler stack is left for that of the goroutine that called it: by what runtime.mcall and runtime.morestack
 * have saved in the goroutine (g.sched), which the thread finds through its own g. Where these fields are, the code of
 * morestack itself shows. Facts: runtime/asm_amd64.s and runtime2.go of Go 1.16 to 1.27.
 */
import type { Machine } from '../../../common/elf/elf.ts';
import { findInstructions, findThreadOffset } from '../../../common/elf/go-instructions.ts';
import { RuleKind } from '../../records/records.gen.ts';
import { newRule, type Rule } from '../rules/rules.ts';

/** Instructions as patterns of hexadecimal digits. This one takes up the scheduler's stack: mov 0x38(%rN), %rsp; mov sp, x0. */
export const TAKES_SCHEDULER: Readonly<Record<Machine, string>> = {
  x86_64: '4[89]8b6[0-7]38',
  aarch64: '1f000091',
};
/** mov %rbp, N(%rdi) or N(%rsi): the frame pointer is saved in g.sched.bp */
const SAVES_FP = '48896[ef](6[08])';
const G_M = 48;
/** m.curg, by g.sched.bp: both moved when gobuf.ret went (Go 1.25). */
const CURRENT: ReadonlyMap<number, number> = new Map([
  [0x68, 192],
  [0x60, 184],
]);

/** Of the code of runtime.morestack; undefined where that is another function, or does not say. */
export function readGoroutineRule(code: Uint8Array | undefined): Readonly<Rule> | undefined {
  if (!code) return undefined;
  const tls = findThreadOffset(code);
  const fpAt = Number.parseInt(findInstructions(code, SAVES_FP)?.digits ?? '', 16);
  const current = CURRENT.get(fpAt);
  if (tls === undefined || current === undefined) return undefined;
  return newRule({
    kind: RuleKind.GOROUTINE,
    cfaOffset: tls,
    cfaOffset2: current,
    fpOffset: fpAt,
    raOffset: G_M,
  });
}
