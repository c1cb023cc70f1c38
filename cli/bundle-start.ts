/**
 * Runs the file beside it that holds all of some commands (symbol-bundle.cjs, if this is symbol.cjs), with the code that
 * V8 made of it when the product was built: to parse and compile `show symbol` takes as long as to name an address. Code
 * of another Node, or of other settings of V8, is not looked at.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire, wrap } from 'node:module';
import { join } from 'node:path';
import { cachedDataVersionTag } from 'node:v8';
import { Script } from 'node:vm';
import { raiseCompilerBudget } from '../agent/base/compiler-budget.ts';

const DIRECTORY = import.meta.dirname;
const BUNDLE = import.meta.filename.replace(/\.cjs$/, '-bundle.cjs');

// 10,000 addresses are named before optimised code pays, which took a third of the time. Code depends on such flags.
raiseCompilerBudget();
const cache = join(DIRECTORY, `${process.version}-${process.arch}-${cachedDataVersionTag()}.code`);
const cachedData = readIfThere(cache);
const script = new Script(wrap(readFileSync(BUNDLE, 'utf8')), {
  filename: BUNDLE,
  ...(cachedData && { cachedData }),
});
script.runInThisContext()({}, createRequire(BUNDLE), {}, BUNDLE, DIRECTORY);
// what was compiled up to then is in it: the Makefile has some addresses named
if (process.env['EVERYFRAME_WRITE_CODE'])
  process.on('exit', () => writeFileSync(cache, script.createCachedData()));

function readIfThere(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch {
    return undefined;
  }
}
