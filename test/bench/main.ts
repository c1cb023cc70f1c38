/**
 * `npm run bench [-- --rounds 3 --seconds 30 --only side-by-side|curves|start]`: renews its tables in docs/benchmarks.md. Needs root,
 * gcc, bpftool and a quiet machine; takes most of an hour. `--only runtimes --seconds 5` writes
 * docs/interpreters/cost.md in five minutes, `--only split --seconds 35 [ruby php …]` docs/interpreters/known-split.md (all builds of the tests with RUNTIMES=all),
 * `--only stacks --seconds 20` docs/comparison.md, `--only large --seconds 40` the row of large machines, and `--only first-stack` prints how soon a new process has its first stack with names.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { describeCurves, measureCurves } from './curves.ts';
import { describeFirstStacks, measureFirstStacks } from './first-stack.ts';
import { compareSplits, describeSplits, isRuntimeName, RUNTIME_NAMES, SPLIT_RATE } from './known-split.ts';
import { describeLargeMachine, measureLargeMachine } from './large-machine.ts';
import { describeMachine, exitOnSignals, ROOT } from './measure.ts';
import { describeRuntimes, measureRuntimes } from './runtimes.ts';
import { CASES, compareSideBySide, describeAges, describeComparisons } from './side-by-side.ts';
import { compareStacks, describeStacks } from './stacks.ts';
import { describeStarts, measureStarts } from './start.ts';

/** Starts of each program. */
const FIRST_STACKS = 12;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '30' },
    only: { type: 'string' },
  },
});
const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
const leastSeconds = values.only === 'runtimes' ? 1 : 5;
if (!(rounds >= 1 && seconds >= leastSeconds)) {
  throw new Error(
    `--rounds needs 1 or more and --seconds ${leastSeconds} or more, got ${values.rounds} and ${values.seconds}`,
  );
}
if (process.getuid?.() !== 0) throw new Error('the benchmark loads BPF programs: run it as root');

exitOnSignals();

/** Before anything of it runs. */
const machine = describeMachine();
const directory = process.env['EVERYFRAME_BENCH'] ?? `${ROOT}../shared/bench`;
if (values.only === 'runtimes') {
  await writeRuntimes();
  process.exit();
}
if (values.only === 'first-stack') {
  console.log(describeFirstStacks(await measureFirstStacks(FIRST_STACKS)));
  process.exit();
}
if (values.only === 'large') {
  await writeLargeMachine();
  process.exit();
}
if (values.only === 'stacks') {
  await writeStacks();
  process.exit();
}
if (values.only === 'split') {
  await writeSplits();
  process.exit();
}
if (values.only === 'start') {
  await writeStarts();
  process.exit();
}
if (values.only !== 'curves') {
  if (existsSync(`${directory}/side_by_side.py`)) {
    const comparisons = compareSideBySide(CASES, { directory, rounds, seconds });
    const how = `Medians over ${rounds} round(s) of ${seconds} s, in brackets the smallest and the largest; seconds that each agent had run before: ${describeAges(CASES)}. ${machine}.`;
    renew('side by side', `${how}\n\n${describeComparisons(comparisons)}`);
  } else {
    console.error(
      `skipped the comparison: no ${directory}/side_by_side.py (EVERYFRAME_BENCH names its directory)`,
    );
  }
}
if (values.only === undefined) await writeStarts();
if (values.only !== 'side-by-side') {
  const curves = await measureCurves({ warmSeconds: 12, seconds });
  renew('curves', `One run, ${seconds} s a row. ${machine}.\n\n${describeCurves(curves)}`);
}
console.error('wrote docs/benchmarks.md');

async function writeRuntimes(): Promise<void> {
  const text = `# What runtimes cost in the kernel

Written by \`npm run bench -- --only runtimes --seconds ${seconds}\`: medians of five rounds of ${seconds} s, in brackets the
smallest. ${machine}. One busy thread of the program is sampled, first without the runtime's code in
the sampler, so that its stacks are native frames alone, then with it.

${describeRuntimes(await measureRuntimes(seconds))}
`;
  writeFileSync(`${ROOT}docs/interpreters/cost.md`, text);
  console.error('wrote docs/interpreters/cost.md');
}

/** Each build's rows as soon as they are there: all builds take hours. */
async function writeSplits(): Promise<void> {
  const unknown = positionals.find((name) => !isRuntimeName(name));
  if (unknown !== undefined)
    throw new Error(`${unknown}: no programs of that runtime, choose from ${RUNTIME_NAMES.join(', ')}`);
  const page = 'docs/interpreters/known-split.md';
  const peers = process.env['EVERYFRAME_PEERS'] ?? `${directory}/../peers`;
  const runtimes = positionals.length > 0 ? positionals.filter(isRuntimeName) : RUNTIME_NAMES;
  const head = `Each build in one run: windows of ${seconds} s in all, ${SPLIT_RATE} Hz. ${machine}.`;
  for await (const rows of compareSplits(runtimes, peers, seconds)) {
    const table = describeSplits(rows, readFileSync(`${ROOT}${page}`, 'utf8'));
    renew('table', `${head}\n\n${table}`, page);
    console.error(`${page}: ${rows.map(({ title }) => title).join(', ')}`);
  }
}

async function writeStarts(): Promise<void> {
  if (!existsSync(`${directory}/load`)) {
    console.error(`skipped the starts: no ${directory}/load (EVERYFRAME_BENCH names its directory)`);
    return;
  }
  const starts = describeStarts(await measureStarts({ directory, rounds, reference: findReference() }));
  console.log(starts);
  renew('starts', `Medians over ${rounds} rounds. ${machine}.\n\n${starts}`);
}

async function writeLargeMachine(): Promise<void> {
  const table = describeLargeMachine(await measureLargeMachine(directory, seconds));
  console.log(table);
  renew('large machine', `One run, ${seconds} s a row behind a warm-up. ${machine}.\n\n${table}`);
}

function findReference(): string | undefined {
  const packed = `${directory}/../peers/ebpf-profiler.xz`;
  return existsSync(packed) ? packed : undefined;
}

/** What explains the differences was written by hand and stays. */
async function writeStacks(): Promise<void> {
  const compared = await compareStacks({ seconds, reference: findReference() });
  const { table, examples } = describeStacks(compared);
  renew('table', `One run of ${seconds} s. ${machine}.\n\n${table}`, 'docs/comparison.md');
  console.log(`${table}\n\n${examples}`);
  console.error('wrote docs/comparison.md');
}

/** Replaces what a page has between `<!-- part -->` and the end mark that follows; the rest was written by hand. */
function renew(part: string, text: string, page = 'docs/benchmarks.md'): void {
  const old = readFileSync(`${ROOT}${page}`, 'utf8');
  // up to its own end, also where nothing is there yet
  const place = new RegExp(`(<!-- ${part} -->\n)(?:(?!<!-- )[\\s\\S])*(<!-- end -->)`);
  if (!place.test(old)) throw new Error(`${page} has no place <!-- ${part} --> … <!-- end -->`);
  writeFileSync(
    `${ROOT}${page}`,
    old.replace(place, (_, begin: string, end: string) => `${begin}${text}\n${end}`),
  );
}
