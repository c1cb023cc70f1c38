/**
 * `npm run test:soak [-- MINUTES]` (30): the agent at 97 Hz on a machine where thousands of processes come and go,
 * executables are replaced while they are mapped, and threads start and end. Its memory, mappings, descriptors and BPF
 * maps (those of the machine that were not there before: no other
 * agent may start meanwhile) are printed each minute. None of them may have grown in the last third since the minute by which all that
 * repeats was met.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type AgentFootprint, AgentProcess } from '../support/agent-process.ts';
import { startCollectorProcess } from '../support/collector.ts';
import { Load, mapsOf, median, ROOT, writeTurns } from './measure.ts';

const RATE = 97;
const REPLACE_SECONDS = 0.4;
/** Of the run: from then on nothing may grow (5 minutes of 30). */
const SETTLED_SHARE = 1 / 6;
/**
 * What each figure may be above the settled one: noise of garbage collection, files being read at that moment, caches of open
 * files that take a minute longer to be full.
 */
const TOLERANCES: Readonly<Record<keyof Figures, { share: number; absolute: number }>> = {
  residentBytes: { share: 0.1, absolute: 16 << 20 },
  mappings: { share: 0.05, absolute: 20 },
  descriptors: { share: 0.05, absolute: 20 },
  bpfMaps: { share: 0, absolute: 64 },
  bpfMapBytes: { share: 0.1, absolute: 8 << 20 },
};

const stopping = new AbortController();

interface Figures extends AgentFootprint {
  /** Of the whole machine, without those that were there before. */
  bpfMaps: number;
  bpfMapBytes: number;
}

interface Minute extends Figures {
  minute: number;
}

/** Short-lived processes, each with threads, from executables that are replaced under them. */
function startLoad(directory: string): Load {
  const gcc = (name: string, source: string, ...flags: string[]): string => {
    const path = join(directory, name);
    execFileSync('gcc', ['-O2', ...flags, '-o', path, join(ROOT, 'test', source)]);
    return path;
  };
  const churn = gcc('churn', 'bench/load/churn.c', '-pthread');
  const load = new Load();
  // nice: the agent is to keep up, whatever else the machine does
  const turns = join(directory, 'turns');
  writeTurns(turns, 20);
  load.startNice(gcc('spread', 'bench/load/spread.c'), [turns, '0', '20', '30']);
  for (let i = 0; i < 3; i++) {
    copyFileSync(churn, join(directory, `churn-${i}`));
    const script = `cd ${directory}; while :; do ./churn-${i} & /bin/true; wait; done`;
    load.startNice('sh', ['-c', script]);
    // by the clock, so that a machine that is slow for a while has as many files; a copy has another inode, and mv puts
    // it in the place of the one that still runs
    const replace = `cd ${directory}; n=0; while :; do n=$((n + 1)); sleep ${REPLACE_SECONDS}
      cp churn new-${i} && printf %s $n >>new-${i} && mv new-${i} churn-${i}; done`;
    load.start('sh', ['-c', replace]);
  }
  return load;
}

const MIB = 2 ** 20;
const describe = ({ minute, residentBytes, mappings, descriptors, bpfMaps, bpfMapBytes }: Minute): string =>
  `minute ${String(minute).padStart(3)}: ${(residentBytes / MIB).toFixed(1)} MiB resident, ${mappings} mappings, ` +
  `${descriptors} descriptors, ${bpfMaps} BPF maps of ${(bpfMapBytes / MIB).toFixed(1)} MiB`;

/**
 * Sentences about what grew: the middle of the last third against the most of the first minutes, since tables come one by
 * one and leave many at a time.
 */
export function findGrowth(minutes: readonly Minute[]): string[] {
  const first = minutes.slice(0, Math.ceil(minutes.length * SETTLED_SHARE));
  const last = minutes.slice(-Math.ceil(minutes.length / 3));
  return (Object.keys(TOLERANCES) as (keyof Figures)[]).flatMap((name) => {
    const { share, absolute } = TOLERANCES[name];
    const settled = Math.max(...first.map((minute) => minute[name]));
    const limit = settled * (1 + share) + absolute;
    const value = median(last.map((minute) => minute[name]));
    return value <= limit
      ? []
      : [
          `${name}: ${value} in the last third, ${settled} in the first ${first.length} minutes: at most ${limit} allowed`,
        ];
  });
}

function look(agent: AgentProcess): Figures {
  const maps = mapsOf(agent.pid);
  return {
    ...agent.footprint(),
    bpfMaps: maps.size,
    bpfMapBytes: [...maps.values()].reduce((sum, bytes) => sum + bytes, 0),
  };
}

/** The largest figures of a minute are a matter of luck, the smallest are what is kept. */
async function watchMinute(minute: number, read: () => Figures): Promise<Minute> {
  const seen: Figures[] = [];
  for (const end = Date.now() + 60_000; Date.now() < end; ) {
    await sleep(2000, undefined, stopping);
    seen.push(read());
  }
  const least = (name: keyof Figures): number => Math.min(...seen.map((each) => each[name]));
  return {
    minute,
    residentBytes: least('residentBytes'),
    mappings: least('mappings'),
    descriptors: least('descriptors'),
    bpfMaps: least('bpfMaps'),
    bpfMapBytes: least('bpfMapBytes'),
  };
}

async function soak(length: number): Promise<string[]> {
  const directory = mkdtempSync(join(tmpdir(), 'everyframe-soak-'));
  const load = startLoad(directory);
  const collector = await startCollectorProcess();
  const flags = ['--samples-per-second', String(RATE), '--self-metrics'];
  const agent = new AgentProcess(collector.grpc, ...flags);
  try {
    const minutes: Minute[] = [];
    for (let minute = 1; minute <= length; minute++) {
      minutes.push(await watchMinute(minute, () => look(agent)));
      console.log(describe(minutes.at(-1)!));
    }
    const counters = await agent.stop();
    writeFileSync(1, `${JSON.stringify(counters, undefined, 1)}\n`);
    return findGrowth(minutes);
  } finally {
    await agent.kill();
    await collector.end();
    await load.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

const { positionals } = parseArgs({ allowPositionals: true });
const length = Number(positionals[0] ?? 30);
if (!Number.isInteger(length) || length < 3) {
  throw new Error(`${positionals[0]} is not a number of minutes: give 3 or more`);
}
// the load is in process groups of its own: Ctrl-C would leave it behind
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort());
const growth = await soak(length);
for (const sentence of growth) console.log(`grew: ${sentence}`);
console.log(growth.length === 0 ? `nothing grew in ${length} minutes` : 'see above');
process.exitCode = growth.length === 0 ? 0 : 1;
