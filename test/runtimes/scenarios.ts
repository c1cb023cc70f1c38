/** Programs that run one scenario each: they say in their first line which stack they have from then on. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { expect } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import type { Recording } from '../support/recording.ts';
import { sum } from './script-frames.ts';

const EXPECT_WITHIN_MS = 45_000;
const ENOUGH_WITHIN_MS = 45_000;
const SHARE = 0.97;

export interface Running {
  child: ChildProcess;
  /** Its stack, as text. */
  expected: string;
}

/** Samples of a scenario by the text of their stacks. */
export interface Measured {
  expected: string;
  counts: Map<string, number>;
}

/** At low priority; `said` is what it wrote as JSON. */
export async function startScenario<T>(
  command: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<{ child: ChildProcess; said: T }> {
  const child = spawn('nice', ['-n', '19', ...command], { stdio: ['ignore', 'pipe', 'inherit'], env });
  const line = await new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).once('line', resolve);
    child.once('exit', () => reject(new Error(`${command.join(' ')} ended`)));
  });
  return { child, said: JSON.parse(line) as T };
}

export interface Scenarios<R extends Running> {
  names: readonly string[];
  /** All at once would starve the agent on a small machine. */
  atOnce: number;
  /** Of each. */
  samples: number;
  start(name: string): Promise<R>;
  countsOf(running: R): Map<string, number>;
}

/** By scenario; whoever looks at it finds what is missing. */
export async function measureScenarios<R extends Running>(
  recording: Recording,
  scenarios: Scenarios<R>,
): Promise<Map<string, Measured>> {
  const { names, atOnce, start } = scenarios;
  const results = new Map<string, Measured>();
  for (let i = 0; i < names.length; i += atOnce) {
    const some = names.slice(i, i + atOnce);
    const group = await Promise.all(some.map(start));
    for (const { child } of group) recording.controller.addTarget(toPid(child.pid!));
    try {
      await waitForSamples(recording, group, scenarios);
      for (const [at, one] of group.entries())
        results.set(some[at]!, { expected: one.expected, counts: scenarios.countsOf(one) });
    } finally {
      for (const { child } of group) child.kill('SIGKILL');
      recording.clear();
    }
  }
  return results;
}

/** From the first sample of each with the expected stack on: what came before lacked tables. */
async function waitForSamples<R extends Running>(
  recording: Recording,
  group: readonly R[],
  { samples, countsOf }: Scenarios<R>,
): Promise<void> {
  const ignore = (): void => {};
  await recording
    .until(() => group.every((one) => countsOf(one).has(one.expected)), EXPECT_WITHIN_MS)
    .catch(ignore);
  recording.clear();
  await recording
    .until(() => group.every((one) => sum(countsOf(one)) >= samples), ENOUGH_WITHIN_MS)
    .catch(ignore);
}

export function expectMostly({ expected, counts }: Measured, samples: number): void {
  const total = sum(counts);
  const others = [...counts].filter(([text]) => text !== expected).slice(0, 2);
  expect(total).toBeGreaterThanOrEqual(samples);
  expect(
    (counts.get(expected) ?? 0) / total,
    `expected\n${expected}\nbut also\n${others.join('\n\n')}`,
  ).toBeGreaterThanOrEqual(SHARE);
}
