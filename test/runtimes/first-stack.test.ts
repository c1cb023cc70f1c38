/** A process of a runtime whose file the agent has never met: its functions have names before the file's table is made. */
import { type ChildProcess, spawn } from 'node:child_process';
import { appendFileSync, chmodSync, copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import type { Profile } from '../../common/profile/profile.ts';
import { missingRights } from '../support/fixtures.ts';
import { Recording, stacksOf } from '../support/recording.ts';

const PENDING = '[cut: unwind information not ready yet]';

describe.skipIf(missingRights)('the first process of a Node that was never met', () => {
  let directory: string;
  let recording: Recording;
  let child: ChildProcess | undefined;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'everyframe-first-stack-'));
    // by its contents, too: no earlier run has left a table of it
    const node = join(directory, 'node');
    copyFileSync(process.execPath, node);
    appendFileSync(node, `everyframe ${process.pid} ${Date.now()}`);
    chmodSync(node, 0o755);
    const script = join(directory, 'busy.cjs');
    writeFileSync(script, 'let n = 0;\nfunction busy() { for (;;) n = Math.imul(n, 31) + 1; }\nbusy();\n');
    // told when to begin, so that nothing else needs to be sampled
    const command = 'read -r _; exec "$0" "$1"';
    child = spawn('sh', ['-c', command, node, script], { stdio: ['pipe', 'ignore', 'ignore'] });
    recording = await Recording.start({ targets: [toPid(child.pid!)] });
    child.stdin!.end('\n');
  });

  afterAll(async () => {
    child?.kill('SIGKILL');
    await recording?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  const isNamed = ({ frames }: { frames: string[] }) => frames.includes('busy');
  const isCut = ({ frames }: { frames: string[] }) => frames.at(-1) === PENDING;

  it('has names while its stacks still end at the first native frame, and whole stacks later', {
    timeout: LIMIT_MS + 60_000,
  }, async () => {
    await recording.until((stacks) => stacks.some((s) => isNamed(s) && !isCut(s)), LIMIT_MS);
    const first = (where: (stack: { frames: string[] }) => boolean): bigint =>
      recording.profiles.flatMap((profile) => timesOf(profile, where)).reduce(smaller, 2n ** 63n);
    const named = first(isNamed);
    const whole = first((stack) => isNamed(stack) && !isCut(stack));
    expect(named).toBeLessThan(whole);
  });
});

const LIMIT_MS = 240_000;

const smaller = (a: bigint, b: bigint): bigint => (a < b ? a : b);

/** When samples were taken whose stacks are so. */
function timesOf(profile: Profile, where: (stack: { frames: string[] }) => boolean): bigint[] {
  const stacks = stacksOf(profile);
  return profile.samples.flatMap(({ timestamps }, i) => {
    return where(stacks[i]!) ? [...timestamps] : [];
  });
}
