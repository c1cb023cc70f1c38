/**
 * The agent runs for weeks and does little, `show symbol` for half a second: V8's optimising compiler would take more
 * CPU than the code that it makes faster. Only what runs very often is worth it, such as the table builder's loops.
 * docs/decisions/process/memory.md has the figures.
 */
import { setFlagsFromString } from 'node:v8';

/** Bytecodes that a function runs before it is optimised; V8's default is 67,584 in Node 20. */
const INTERRUPT_BUDGET = 250_000;
/** The same in later versions, which count calls of a function of average size; their default is 3,000. */
const INVOCATION_COUNT = 10_000;
/** Bytecodes that are inlined into one function; V8's default is 920. Compiling takes longer than it then saves. */
const INLINED_BYTECODE = 200;

/** Takes effect in this thread and in workers alike. */
export function raiseCompilerBudget(): void {
  const major = Number(process.versions.v8.split('.')[0]);
  setFlagsFromString(
    major < 12
      ? `--interrupt-budget=${INTERRUPT_BUDGET}`
      : `--invocation-count-for-turbofan=${INVOCATION_COUNT}`,
  );
  setFlagsFromString(`--max-inlined-bytecode-size-cumulative=${INLINED_BYTECODE}`);
}
