/**
 * `everyframe show symbol` and nothing else. What it needs is bundled into one file (build/show-symbol.cjs, which
 * bin/everyframe starts): to find and load seventy modules takes longer than to name an address.
 */
import { raiseCompilerBudget } from './compiler-budget.ts';
import { newProgram, newShow, runProgram } from './program.ts';
import { registerShowSymbol } from './show-symbol.ts';

// 10,000 addresses are named before optimised code pays, which took a third of the time
raiseCompilerBudget();
const program = newProgram();
void runProgram(program, async () => registerShowSymbol(newShow(program)));
