/** A program with PHP in it that runs scripts in several threads: each has its own stack. For builds with threads in EVERYFRAME_PHPS. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { compile, hasTool, missingRights } from '../support/fixtures.ts';
import { Recording } from '../support/recording.ts';
import { SCENARIOS, startPhp, textOf } from './php-scenario.ts';
import { findPhps, type Php } from './phps.ts';
import { expectMostly } from './scenarios.ts';
import { countBy, scriptStacks, sum } from './script-frames.ts';

/** Two threads run the same functions. */
const THREADS = ['methods', 'callback', 'generator', 'methods'];
const SAMPLES = 100;

const phps =
  missingRights || !hasTool('gcc')
    ? []
    : findPhps().filter(({ hasThreads, prefix, jit }) => hasThreads && prefix && !jit);
if (phps.length === 0) console.log('skipped: PHP in threads: EVERYFRAME_PHPS names no build with threads');

function compileEmbedder({ prefix, number }: Php): string {
  const { stdout } = spawnSync(join(prefix!, 'bin/php-config'), ['--includes'], { encoding: 'utf8' });
  const library = number < 800 ? '-lphp7' : '-lphp';
  const flags = [...stdout.trim().split(' '), `-L${prefix}/lib`, `-Wl,--no-as-needed,-rpath,${prefix}/lib`];
  return compile(`embeds-php-${number}`, 'gcc', ['-O2', '-w', '-pthread', ...flags, library], 'embeds-php.c');
}

/** What the interpreter itself says of its stack there. */
async function expectedOf(php: Php, scenario: string): Promise<string> {
  const { child, expected } = await startPhp(php, scenario);
  child.kill('SIGKILL');
  return expected;
}

/** One that is skipped, where there is none. */
const NONE = { title: 'PHP with threads' } as Php;

describe.skipIf(phps.length === 0).each(phps.length === 0 ? [NONE] : phps)('threads of $title', (php) => {
  const expected = new Map<string, string>();
  let child: ChildProcess;
  let recording: Recording;

  const countsOf = (thread: string): Map<string, number> =>
    countBy(
      scriptStacks(recording, child.pid!, 'php').filter(({ threadName }) => threadName === thread),
      (frames) => (frames.length > 0 ? textOf(frames) : undefined),
    );

  beforeAll(async () => {
    for (const name of new Set(THREADS)) expected.set(name, await expectedOf(php, name));
    const program = compileEmbedder(php);
    child = spawn('nice', ['-n', '19', program, SCENARIOS, ...THREADS], { stdio: 'ignore' });
    recording = await Recording.start({ targets: [toPid(child.pid!)] });
    await recording.until(() => [...expected].every(([name, text]) => countsOf(name).has(text)));
    recording.clear();
    await recording.until(() => [...expected.keys()].every((name) => sum(countsOf(name)) >= SAMPLES));
  }, 120_000);

  afterAll(async () => {
    child?.kill('SIGKILL');
    await recording?.stop();
  });

  it.each([...new Set(THREADS)])('%s', (name) => {
    expectMostly({ expected: expected.get(name)!, counts: countsOf(name) }, SAMPLES);
  });

  it('are all found', () => {
    expect(recording.controller.counters()['bpf.php_no_globals']).toBe(0);
  });
});
