/**
 * What a sample and the agent cost against the depth of stacks, the number of processes and the number of
 * executables. Each may grow no faster than its cause. Only the load is sampled, so that what else runs on the machine
 * does not show.
 */
import { execFileSync } from 'node:child_process';
import { appendFileSync, copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Cost, MeasuredAgent, ROOT, writeTurns } from './measure.ts';

interface Curve {
  title: string;
  unit: string;
  points: { value: number; cost: Cost }[];
}

const RATE = 97;
/** Of stacks, where that is not what is looked at. */
const DEPTH = '10';

interface CurveOptions {
  warmSeconds: number;
  seconds: number;
}

interface SpreadLoad {
  program: string;
  /** What its processes share. */
  turns: string;
}

function buildLoad(directory: string): SpreadLoad {
  const [program, turns] = [join(directory, 'spread'), join(directory, 'turns')];
  execFileSync('gcc', ['-O2', '-fomit-frame-pointer', '-o', program, `${ROOT}test/bench/load/spread.c`]);
  return { program, turns };
}

async function point(output: string, command: string[], options: CurveOptions): Promise<Cost> {
  const agent = await MeasuredAgent.record(RATE, output, command);
  try {
    await sleep(options.warmSeconds * 1000);
    return await agent.measure(options.seconds);
  } finally {
    await agent.stop();
  }
}

export async function measureCurves(options: CurveOptions): Promise<Curve[]> {
  const directory = mkdtempSync(join(tmpdir(), 'everyframe-bench-'));
  try {
    const { program, turns } = buildLoad(directory);
    const curve = async (
      title: string,
      unit: string,
      values: number[],
      commandFor: (value: number) => string[],
    ): Promise<Curve> => {
      const points: Curve['points'] = [];
      for (const value of values) {
        console.error(`${title}: ${value}`);
        const cost = await point(join(directory, 'out.folded'), commandFor(value), options);
        points.push({ value, cost });
      }
      return { title, unit, points };
    };
    return [
      await curve('Depth of stacks', 'frames', [10, 40, 100, 300, 1000], (depth) => {
        writeTurns(turns, 2);
        return [program, turns, '0', '2', String(depth)];
      }),
      await curve('Processes', 'processes', [10, 100, 1000, 5000], (processes) => {
        writeTurns(turns, processes);
        return [program, turns, '0', String(processes), DEPTH];
      }),
      await curve('Executables', 'files', [10, 100, 300, 1000], (files) => {
        writeTurns(turns, files);
        const copies = Array.from({ length: files }, (_, i) => copyOf(program, `${directory}/copy-${i}`));
        const lines = copies.map((copy, i) => `${copy} ${turns} ${i} 1 ${DEPTH} &`);
        const script = join(directory, 'all.sh');
        writeFileSync(script, `${lines.join('\n')}\nwait\n`);
        return ['/bin/sh', script];
      }),
    ];
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Another file for the agent: its own inode and its own file ID. */
function copyOf(from: string, to: string): string {
  copyFileSync(from, to);
  appendFileSync(to, to);
  return to;
}

export function describeCurves(curves: Curve[]): string {
  return curves
    .map(({ title, unit, points }) => {
      const rows = points.map(
        ({ value, cost }) =>
          `| ${value} | ${(cost.bpfNsPerSample / 1000).toFixed(1)} | ${cost.agentCpuPercent.toFixed(2)} | ${cost.residentMiB.toFixed(0)} | ${cost.mapsMiB.toFixed(0)} | ${cost.samples} |`,
      );
      return [
        `### ${title}`,
        '',
        `| ${unit} | BPF a sample, µs | agent, % of a core | resident, MiB | BPF maps, MiB | samples |`,
        '|---|---|---|---|---|---|',
        ...rows,
      ].join('\n');
    })
    .join('\n\n');
}
