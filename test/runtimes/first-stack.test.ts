/** Processes of a runtime whose files the agent has never met: functions have names before the files' tables are made. */
import { type ChildProcess, spawn } from 'node:child_process';
import { appendFileSync, chmodSync, copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import type { Profile } from '../../common/profile/model/profile.ts';
import { missingRights } from '../support/fixtures.ts';
import { Recording, type Stack, stacksOf } from '../support/recording.ts';

const PENDING = '[cut: unwind information not ready yet]';

/** Their tables are made one after the other, so that the last ones wait for theirs whatever the machine does. */
const COPIES = 4;

describe.skipIf(missingRights)('the first processes of Nodes that were never met', () => {
  let directory: string;
  let recording: Recording;
  let children: ChildProcess[] = [];

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'everyframe-first-stack-'));
    const script = join(directory, 'busy.cjs');
    writeFileSync(script, 'let n = 0;\nfunction busy() { for (;;) n = Math.imul(n, 31) + 1; }\nbusy();\n');
    // told when to begin, so that nothing else needs to be sampled
    const command = 'read -r _; exec "$0" "$1"';
    children = Array.from({ length: COPIES }, (_, i) =>
      spawn('sh', ['-c', command, copyOfNode(`${directory}/node${i}`), script], {
        stdio: ['pipe', 'ignore', 'ignore'],
      }),
    );
    recording = await Recording.start({ targets: children.map(({ pid }) => toPid(pid!)) });
    for (const { stdin } of children) stdin!.end('\n');
  });

  afterAll(async () => {
    for (const child of children) child.kill('SIGKILL');
    await recording?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  const isNamed = ({ frames }: Stack) => frames.includes('busy');
  const isWhole = (stack: Stack) => isNamed(stack) && stack.frames.at(-1) !== PENDING;

  it('have names while their stacks still end at the first native frame, and whole stacks later', {
    timeout: LIMIT_MS + 60_000,
  }, async () => {
    const pids = children.map(({ pid }) => pid!);
    await recording.until(
      (stacks) => pids.every((pid) => stacks.some((s) => s.pid === pid && isWhole(s))),
      LIMIT_MS,
    );
    const first = (pid: number, where: (stack: Stack) => boolean): bigint =>
      recording.profiles
        .flatMap((profile) => timesOf(profile, (s) => s.pid === pid && where(s)))
        .reduce(smaller, 2n ** 63n);
    const waits = pids.map((pid) => Number(first(pid, isWhole) - first(pid, isNamed)) / 1e6);
    expect(Math.max(...waits), `${waits} ms from the first name to the first whole stack`).toBeGreaterThan(0);
  });
});

/** By its contents, too: no earlier run has left a table of it. */
function copyOfNode(path: string): string {
  copyFileSync(process.execPath, path);
  appendFileSync(path, `everyframe ${path} ${process.pid} ${Date.now()}`);
  chmodSync(path, 0o755);
  return path;
}

const LIMIT_MS = 240_000;

const smaller = (a: bigint, b: bigint): bigint => (a < b ? a : b);

/** When samples were taken whose stacks are so. */
function timesOf(profile: Profile, where: (stack: Stack) => boolean): bigint[] {
  const stacks = stacksOf(profile);
  return profile.samples.flatMap(({ timestamps }, i) => {
    return where(stacks[i]!) ? [...timestamps] : [];
  });
}
