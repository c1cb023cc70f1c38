/** A runtime that runs on the machine is unwound from its first sample on: its files are read as the agent starts. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { hasTool, missingRights } from './support/fixtures.ts';
import { Recording } from './support/recording.ts';

async function startSleeper(): Promise<ChildProcess> {
  const program = 'print("asleep", flush=True); import signal; signal.pause()';
  const child = spawn('python3', ['-c', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout!, 'data');
  return child;
}

it.skipIf(missingRights || !hasTool('python3'))('loads the runtimes of processes that sleep', async () => {
  const sleeper = await startSleeper();
  const recording = await Recording.start({ samplesPerSecond: 1 });
  try {
    const end = Date.now() + 30_000;
    // this test runs in Node
    while (recording.controller.counters()['samplers.runtimes']! < 2) {
      if (Date.now() > end) throw new Error(JSON.stringify(recording.controller.counters()));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(recording.warnings).toEqual([]);
  } finally {
    await recording.controller.stop();
    sleeper.kill('SIGKILL');
  }
});
