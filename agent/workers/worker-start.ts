/**
 * Given to Node as a text: runs the worker's bundle, which it finds as an open file, since a worker may not be able to
 * go where it lies; with the code that V8 made of it when the product was built, if that is there (see cli/bundle-start.ts).
 */
import { closeSync, readFileSync } from 'node:fs';
import { wrap } from 'node:module';
import { Script } from 'node:vm';
import { raiseCompilerBudget } from './compiler-budget.ts';

/** As confine/worker-launcher.cc has placed them. */
const BUNDLE_FD = 6;
const CODE_FD = 7;
const NAME = 'worker.cjs';

raiseCompilerBudget();
const cachedData = take(CODE_FD);
const script = new Script(wrap(take(BUNDLE_FD).toString('utf8')), {
  filename: NAME,
  ...(cachedData.length > 0 && { cachedData }),
});
script.runInThisContext()({}, require, {}, NAME, '/');

function take(fd: number): Buffer {
  const bytes = readFileSync(fd);
  closeSync(fd);
  return bytes;
}
