/**
 * `npm run test:kernels [-- --suite bullseye …] [--all] [--cpus 2] [--programs-only] [--lockdown] [--update]`: boots Debian's and
 * Ubuntu's kernels and checks the product in each; with --all also with programs of musl, Go and cgo. `npm run test:kernels:arm64` does so with `--architecture arm64`.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import {
  buildInitramfs,
  checkKernel,
  describe,
  fetchKernel,
  knownFigures,
  missingTools,
  type Suite,
  suitesOf,
  TABLE,
} from './matrix.ts';
import { type KernelFigures, updateTable } from './ratchet.ts';
import { type Architecture, EMULATORS, exitOnSignals } from './virtual-machine.ts';

const BOOT_LIMIT_MS = 1_800_000;

const { values } = parseArgs({
  options: {
    architecture: { type: 'string', default: 'amd64' },
    suite: { type: 'string', multiple: true },
    all: { type: 'boolean', default: false },
    cpus: { type: 'string', default: '1' },
    'programs-only': { type: 'boolean', default: false },
    lockdown: { type: 'boolean', default: false },
    update: { type: 'boolean', default: false },
  },
});
const architecture = values.architecture as Architecture;
if (!(architecture in EMULATORS))
  throw new Error(
    `--architecture ${architecture}: unknown, choose from ${Object.keys(EMULATORS).join(', ')}`,
  );
const known = suitesOf(architecture);
const suites = (values.suite as Suite[] | undefined) ?? known;
const unknown = suites.filter((suite) => !known.includes(suite));
if (unknown.length > 0) throw new Error(`--suite ${unknown}: unknown, choose from ${known.join(', ')}`);
const cpus = Number(values.cpus);
if (!(Number.isInteger(cpus) && cpus >= 1)) throw new Error(`--cpus ${values.cpus}: not a number of CPUs`);
if (cpus > 1 && values.update) throw new Error('--update takes the times of one CPU: leave out --cpus');
const missing = missingTools(architecture);
if (missing.length > 0) {
  const mode = architecture === 'arm64' ? '--test-arm64' : '--test';
  throw new Error(`install first: ${missing.join(', ')} (scripts/setup.sh ${mode})`);
}

exitOnSignals();
const initramfs = buildInitramfs(architecture, values.all);
const before = values.update ? [] : knownFigures();
const figures: KernelFigures[] = [];
let failed = 0;
for (const suite of suites) {
  const verdict = await checkKernel({
    architecture,
    kernel: fetchKernel(suite, architecture),
    initramfs,
    programsOnly: values['programs-only'],
    cpus,
    isLockedDown: values.lockdown,
    limitMs: BOOT_LIMIT_MS,
    known: before,
    all: values.all,
  });
  console.log(`${suite}: ${describe(verdict)}\n`);
  figures.push(...verdict.figures);
  failed += verdict.problems.length > 0 ? 1 : 0;
}
if (values.update) {
  writeFileSync(TABLE, updateTable(readFileSync(TABLE, 'utf8'), figures));
  console.log(`written: ${TABLE}`);
}
if (failed > 0) {
  console.log(`${failed} of ${suites.length} kernels failed`);
  process.exitCode = 1;
}
