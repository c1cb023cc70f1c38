/** An agent that is told to stop ends in time, whatever it still waits for. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { AgentProcess } from './support/agent-process.ts';
import { compile, missingRights } from './support/fixtures.ts';

/** Nobody answers there. */
const NOWHERE = '127.0.0.1:1';
/** It says 5, and ends its processes afterwards. */
const LIMIT_MS = 8000;

let agent: AgentProcess | undefined;
const frozen = new Set<number>();

afterAll(async () => {
  await agent?.kill();
  for (const pid of frozen) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // it has ended with the agent
    }
  }
});

/** '' where it has ended. */
function readOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

const workersOf = (pid: number): number[] =>
  readdirSync(`/proc/${pid}/task`)
    .flatMap((tid) => readOf(`/proc/${pid}/task/${tid}/children`).trim().split(' '))
    .map(Number)
    .filter((child) => child > 0 && readOf(`/proc/${child}/cmdline`).startsWith('everyframe-worker'));

function freezeWorkers(pid: number): void {
  for (const worker of workersOf(pid)) {
    if (frozen.has(worker)) continue;
    process.kill(worker, 'SIGSTOP');
    frozen.add(worker);
  }
}

describe.skipIf(missingRights)('the agent', () => {
  it('does not wait for names that do not come', async () => {
    agent = new AgentProcess(NOWHERE, '--symbol-cache', 'off', '--samples-per-second', '97');
    await expect.poll(() => agent!.log, { timeout: 30_000 }).toContain('pushing to');
    await expect.poll(() => workersOf(agent!.pid).length, { timeout: 30_000 }).toBeGreaterThan(0);
    // what runs here anyway has its names
    await sleep(3000);
    const { pid } = agent;
    // it starts others in their place
    const freezing = setInterval(() => agent!.hasEnded || freezeWorkers(pid), 20);
    const program = spawn(compile('agent-stop-deep', 'gcc', ['-O1'], 'deep.c'), ['20'], { stdio: 'ignore' });
    await sleep(1500);
    program.kill();
    await once(program, 'exit');
    const began = performance.now();
    await agent.stop().finally(() => clearInterval(freezing));
    expect(performance.now() - began).toBeLessThan(LIMIT_MS);
  }, 120_000);
});
