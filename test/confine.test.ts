/** What is left to a worker that was taken over (addon/seccomp.cc). */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { packageRoot } from '../agent/base/package-root.ts';
import { compile } from './support/fixtures.ts';

const INCLUDE = join(packageRoot(), 'node_modules/node-api-headers/include');

/** A program that ends another process by the fixture, confined before or not. */
const program = (isConfined: boolean, pid: number): string => `
  const { confine } = require(${JSON.stringify(join(packageRoot(), 'build/everyframe.node'))});
  const { kill } = require(${JSON.stringify(compile('signal-by-pipe.node', 'gcc', ['-shared', '-fPIC', `-I${INCLUDE}`], 'signal-by-pipe.c'))});
  if (${isConfined} && confine() !== 0) process.exit(1);
  kill(${pid});
`;

it.each([
  ['can', false],
  ['can not, once confined,', true],
])('a process %s have the kernel send signals to another one for it', async (_, isConfined) => {
  const other = spawn('sleep', ['60']);
  const ended = once(other, 'exit');
  try {
    execFileSync(process.execPath, ['-e', program(isConfined, other.pid!)]);
    const signal = await Promise.race([ended.then(([, by]) => by), sleep(isConfined ? 300 : 10_000)]);
    expect(signal).toBe(isConfined ? undefined : 'SIGKILL');
  } finally {
    other.kill('SIGKILL');
    await ended;
  }
});
