/**
 * What a sample and the agent cost against the depth of stacks, the number of processes and the number of
 * executables. Each may grow no faster than its cause.
 */
import { execFileSync } from 'node:child_process';
import { appendFileSync, copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Cost, Load, MeasuredAgent, ROOT } from './measure.ts';

interface Curve {
  title: string;
  unit: string;
  points: { value: number; cost: Cost }[];
}

const RATE = 97;

interface CurveOptions {
  warmSeconds: number;
  seconds: number;
}

function buildLoad(directory: string): string {
  const path = join(directory, 'spread');
  execFileSync('gcc', ['-O2', '-fomit-frame-pointer', '-o', path, `${ROOT}test/bench/load/spread.c`]);
  return path;
}

async function point(start: (load: Load) => void, options: CurveOptions): Promise<Cost> {
  const load = new Load();
  try {
    start(load);
    const agent = await MeasuredAgent.start(RATE);
    try {
      await sleep(options.warmSeconds * 1000);
      return await agent.measure(options.seconds);
    } finally {
      await agent.stop();
    }
  } finally {
    await load.stop();
  }
}

export async function measureCurves(options: CurveOptions): Promise<Curve[]> {
  const directory = mkdtempSync(join(tmpdir(), 'everyframe-bench-'));
  try {
    const spread = buildLoad(directory);
    const curve = async (
      title: string,
      unit: string,
      values: number[],
      start: (load: Load, value: number) => void,
    ): Promise<Curve> => {
      const points: Curve['points'] = [];
      for (const value of values) {
        console.error(`${title}: ${value}`);
        points.push({ value, cost: await point((load) => start(load, value), options) });
      }
      return { title, unit, points };
    };
    return [
      await curve('Depth of stacks', 'frames', [10, 40, 100, 300, 1000], (load, depth) =>
        load.start(spread, ['2', String(depth)]),
      ),
      await curve('Processes', 'processes', [10, 100, 1000, 5000], (load, processes) =>
        load.start(spread, [String(processes)]),
      ),
      await curve('Executables', 'files', [10, 100, 300, 1000], (load, files) => {
        for (let i = 0; i < files; i++)
          load.start(copyOf(spread, `${directory}/copy-${i}`), ['1', '10', String(files)]);
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
