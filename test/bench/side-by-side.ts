/**
 * Runs the side-by-side benchmark for the reference agent and for everyframe in turns, on the same load, at the
 * same rate, into the same collector. The benchmark and its peers are not part of this repository:
 * EVERYFRAME_BENCH names the directory that holds side_by_side.py.
 */
import { execFileSync } from 'node:child_process';
import { kernelOnlyShare } from './kernel-only.ts';
import { median, ROOT } from './measure.ts';

/** Where side_by_side.py lets the Collector write, by label. */
const RECEIVED = (label: string): string => `/tmp/sbs/${label}.json`;
/** It waits so long for what was sampled in its window. */
const WAITS_SECONDS = 12;

/** What side_by_side.py prints, as far as it is used here. */
interface Run {
  bpf_ns_per_run: number;
  agent_cpu_pct: number;
  agent_us_per_sample: number;
  rss_mib_max: number;
  bpf_maps_mib: number;
  samples_received: number;
  received_pct_of_busy: number;
  runs: number;
  start_s: number;
  error?: string;
  loads: Record<string, { samples: number; rooted_pct: number }>;
  /** Added here: see kernel-only.ts. */
  kernelOnly: number;
}

interface LoadCase {
  title: string;
  /** LOADS of side_by_side.py, '' for its default. */
  loads: string;
  rate: number;
  /** From the agent's start to what is measured. Agents run for weeks, and ours compiles in its first minutes. */
  warmSeconds: number;
}

export const CASES: LoadCase[] = [
  { title: 'mixed, 97 Hz', loads: '', rate: 97, warmSeconds: 120 },
  { title: 'the same, 4 min old', loads: '', rate: 97, warmSeconds: 240 },
  { title: 'mixed, 20 Hz', loads: '', rate: 20, warmSeconds: 120 },
  { title: 'C and Go, 97 Hz', loads: 'deep,workgo', rate: 97, warmSeconds: 120 },
  { title: 'short-lived, 97 Hz', loads: 'short,gcc', rate: 97, warmSeconds: 20 },
];

export const describeAges = (cases: LoadCase[]): string =>
  cases.map(({ title, warmSeconds }) => `${title} ${warmSeconds}`).join('; ');

interface Comparison {
  title: string;
  reference: Run[];
  ours: Run[];
}

interface SideBySideOptions {
  directory: string;
  rounds: number;
  seconds: number;
}

export function compareSideBySide(cases: LoadCase[], options: SideBySideOptions): Comparison[] {
  return cases.map((load) => {
    const { title, rate } = load;
    const comparison: Comparison = { title, reference: [], ours: [] };
    const flags = ['--samples-per-second', String(rate), '--collection-agent', '127.0.0.1:11000'];
    for (let round = 0; round < options.rounds; round++) {
      console.error(`${title}: round ${round + 1} of ${options.rounds}`);
      const run = (label: string, command: string[]): Run =>
        runOnce(options, load, [
          `${label}-${round}`,
          String(options.seconds),
          String(rate),
          '--',
          ...command,
        ]);
      comparison.reference.push(run('reference', ['@peer']));
      comparison.ours.push(run('ours', [`${ROOT}bin/everyframe`, 'agent', ...flags, '--disable-tls']));
    }
    return comparison;
  });
}

function runOnce(
  { directory, seconds }: SideBySideOptions,
  { loads, warmSeconds }: LoadCase,
  args: string[],
): Run {
  const env = { ...process.env, WARM: String(warmSeconds), ...(loads === '' ? {} : { LOADS: loads }) };
  const text = execFileSync('python3', [`${directory}/side_by_side.py`, ...args], {
    encoding: 'utf8',
    env,
    timeout: (warmSeconds + seconds + 180) * 1000,
  });
  const run: Run = JSON.parse(text);
  if (run.error) throw new Error(`the benchmark failed: ${run.error}`);
  return { ...run, kernelOnly: kernelOnlyShare(RECEIVED(args[0]!), seconds, WAITS_SECONDS) };
}

const FIGURES: [string, (run: Run) => number, number][] = [
  ['BPF a sample, µs', (run) => run.bpf_ns_per_run / 1000, 1],
  ['agent, % of a core', (run) => run.agent_cpu_pct, 2],
  ['agent a sample taken, µs', (run) => run.agent_us_per_sample, 0],
  ['resident + BPF maps, MiB', (run) => run.rss_mib_max + run.bpf_maps_mib, 0],
  ['samples delivered of taken, %', (run) => 100 * deliveredShare(run), 1],
  ['samples taken that arrive with a root, %', (run) => rootedPercent(run) * deliveredShare(run), 1],
  ['stacks that reach a root, %', rootedPercent, 1],
  ['those, and of threads without memory, %', (run) => rootedPercent(run) + 100 * run.kernelOnly, 1],
];

const deliveredShare = (run: Run): number => run.samples_received / Math.max(1, run.runs);

function rootedPercent(run: Run): number {
  const loads = Object.values(run.loads);
  const samples = loads.reduce((sum, load) => sum + load.samples, 0);
  return loads.reduce((sum, load) => sum + load.samples * load.rooted_pct, 0) / Math.max(1, samples);
}

/** Medians over the rounds, with the smallest and largest value. */
export function describeComparisons(comparisons: Comparison[]): string {
  const rows = comparisons.flatMap(({ title, reference, ours }) =>
    FIGURES.map(([name, figure, digits]) => {
      const show = (values: number[]): string =>
        `${median(values).toFixed(digits)} (${Math.min(...values).toFixed(digits)}–${Math.max(...values).toFixed(digits)})`;
      const [theirs, own] = [reference.map(figure), ours.map(figure)];
      return `| ${title} | ${name} | ${show(theirs)} | ${show(own)} | ${(median(own) / median(theirs)).toFixed(2)} × |`;
    }),
  );
  return ['| load | figure | reference | everyframe | ratio |', '|---|---|---|---|---|', ...rows].join('\n');
}
