/**
 * `everyframe show symbol` and nothing else. What it needs is bundled into one file (build/show/symbol-bundle.cjs, which
 * bundle-start.ts runs): to find and load seventy modules takes longer than to name an address.
 */

import { registerShowSymbol } from './commands/show-symbol.ts';
import { newProgram, newShow, runProgram } from './program/program.ts';

const program = newProgram();
void runProgram(program, async () => registerShowSymbol(newShow(program)));
