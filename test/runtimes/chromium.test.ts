/** V8 in Chromium, whose build compresses pointers and describes nothing: refused, and no stack suffers from it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { CHROMIUM } from '../browser/chromium.ts';
import { missingRights } from '../support/fixtures.ts';
import { Recording, type Stack, share, total } from '../support/recording.ts';

const PAGE = `data:text/html,<script>
  function leaf(n) { let sum = 0; for (let i = 0; i < n; i++) sum = (sum + i * n) | 0; return sum; }
  function busy() { for (const end = Date.now() + 200; Date.now() < end; ) leaf(1e5); setTimeout(busy); }
  busy();
</script>`;
const SAMPLES = 50;
const LIMIT_MS = 240_000;

if (!CHROMIUM) console.log('skipped: JavaScript of Chromium, it is not installed');

describe.skipIf(missingRights || !CHROMIUM)('JavaScript in a page of Chromium', () => {
  let directory: string;
  let child: ChildProcess;
  let recording: Recording;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'everyframe-chromium-'));
    const flags = ['--headless', '--no-sandbox', '--disable-gpu', `--user-data-dir=${directory}`];
    // told when to begin, so that its children are sampled, too; a group of its own, to end them all
    child = spawn('sh', ['-c', 'read -r _; exec "$0" "$@"', CHROMIUM!, ...flags, PAGE], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    });
    recording = await Recording.start({ targets: [toPid(child.pid!)] });
    child.stdin!.end('\n');
  });

  afterAll(async () => {
    if (child?.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    await recording?.stop();
    rmSync(directory, { recursive: true, force: true, maxRetries: 10 });
  });

  /** Since the program has its table. */
  const isScript = ({ frames }: Stack): boolean =>
    frames[0]!.startsWith('[anon]') && !frames.at(-1)!.includes('not ready yet');

  it('has no names, is counted, and its stacks are whole', { timeout: LIMIT_MS + 60_000 }, async () => {
    await recording.until((stacks) => total(stacks.filter(isScript)) >= SAMPLES, LIMIT_MS);
    expect(recording.controller.counters()['executables.runtimesUnsupported']).toBe(1);
    const scripts = recording.stacks().filter(isScript);
    expect(share(scripts, ({ frames }) => /^(_start|clone3?)$/.test(frames.at(-1)!))).toBeGreaterThan(0.95);
    const types = recording.profiles.flatMap(({ locations }) => locations.map(({ frameType }) => frameType));
    expect(types).not.toContain('v8js');
  });
});
