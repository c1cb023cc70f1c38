/**
 * Given to Node as a text: runs the worker's bundle, which it finds as an open file, since a worker may not be able to
 * go where it lies; with the code that V8 made of it when the product was built, if that is there (see cli/bundle-start.ts).
 */
import { closeSync, readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { Script } from 'node:vm';
import { raiseCompilerBudget } from '../base/compiler-budget.ts';

/** As confine/worker-launcher.cc has placed them. */
const BUNDLE_FD = 6;
const CODE_FD = 7;
const NAME = 'worker.cjs';
/** Instead of this text, and of a descriptor's number. */
const TITLE = 'everyframe-worker';

process.title = TITLE;
raiseCompilerBudget();
// as collect-garbage.ts does sooner or later: code that was made with other flags is not taken
setFlagsFromString('--expose-gc');
const cachedData = take(CODE_FD);
// ASCII alone (Makefile)
const text = take(BUNDLE_FD).toString('latin1');
// a CommonJS module that is given one thing more (own-code.ts)
const script = new Script(
  `(function (exports, require, module, __filename, __dirname, createOwnCode) {${text}\n})`,
  { filename: NAME, ...(cachedData.length > 0 && { cachedData }) },
);
script.runInThisContext()({}, require, {}, NAME, '/', () => ({
  bytes: script.createCachedData(),
  wasTaken: script.cachedDataRejected === false,
}));

function take(fd: number): Buffer {
  const bytes = readFileSync(fd);
  closeSync(fd);
  return bytes;
}
