/** The supervisor above `everyframe run`, over programs that end in every way. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';

const SUPERVISE = join(import.meta.dirname, '../build/supervise');
const folder = mkdtempSync(join(tmpdir(), 'everyframe-supervisor-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Each run of the program adds a line to the file that it is given as $1; its descriptors are $life and $note. */
const PRELUDE = 'echo run >>"$1"; IFS=, read -r life note <<E\n$EVERYFRAME_SUPERVISOR\nE\n';
let programs = 0;
const start = (script: string, user?: number, supervise = SUPERVISE) => {
  const log = join(folder, `program-${programs++}`);
  const child = spawn(supervise, ['sh', '-c', PRELUDE + script, 'sh', log], {
    stdio: ['ignore', 'ignore', 'pipe'],
    ...(user !== undefined && { uid: user, gid: user }),
  });
  let text = '';
  child.stderr.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  const ended = once(child, 'close') as Promise<[number | null, string | null]>;
  const lines = () => (existsSync(log) ? readFileSync(log, 'utf8').split('\n').slice(0, -1) : []);
  return { child, ended, lines, errors: () => text };
};

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 20));
}

/** A user without processes of its own. */
const NOBODY = 61_234;
const FIRST = '[ "$(grep -c run "$1")" = 1 ] && ';

describe('supervise', () => {
  it.each([
    ['exit 0', [0, null]],
    ['exit 7', [7, null]],
    ['kill -TERM $$', [null, 'SIGTERM']],
    ['kill -INT $$', [null, 'SIGINT']],
  ])('passes through at once: %s', async (script, end) => {
    const { ended, lines } = start(script);
    expect(await ended).toEqual(end);
    expect(lines()).toEqual(['run']);
  });

  it.each([
    ['kill -KILL $$', /SIGKILL, as when memory runs out/],
    ['kill -ABRT $$', /SIGABRT/],
    ['exit 75', /with its collector/],
    // a later failure counts once something lives on
    ['{ cat <&$life >/dev/null & echo $! >&$note; exit 1; }', /exit code 1/],
  ])('starts again after: %s', async (script, reason) => {
    const { ended, lines, errors } = start(`${FIRST}${script}; exit 0`);
    expect(await ended).toEqual([0, null]);
    expect(lines()).toEqual(['run', 'run']);
    expect(errors()).toMatch(reason);
    expect(JSON.parse(errors())).toMatchObject({
      level: 'error',
      time: new Date(JSON.parse(errors()).time).toISOString(),
      name: 'everyframe',
    });
  });

  it.skipIf(process.getuid?.() !== 0)('starts again once there is room for a process', async () => {
    chmodSync(folder, 0o777);
    // the checkout may be root's alone
    copyFileSync(SUPERVISE, join(folder, 'supervise'));
    const { child, ended, lines, errors } = start(
      `${FIRST}{ prlimit --nproc=1: --pid $PPID; kill -KILL $$; }; exit 0`,
      NOBODY,
      join(folder, 'supervise'),
    );
    await until(() => errors().includes('cannot be started (Resource temporarily unavailable)'));
    spawnSync('prlimit', ['--nproc=100:', '--pid', `${child.pid}`], { uid: NOBODY, gid: NOBODY });
    expect(await ended).toEqual([0, null]);
    expect(lines()).toEqual(['run', 'run']);
  });

  it('ends at a signal while it waits for the next try', async () => {
    const { child, ended, errors } = start('kill -KILL $$');
    await until(() => errors().includes('starts again in 2 s'));
    child.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
  });

  it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    'passes %s on, and asks what lives on to end',
    async (signal) => {
      const { child, ended, lines } = start(
        'cat <&$life >>"$1" & trap "exit 5" TERM INT HUP; echo ready >>"$1"; while :; do sleep 0.05; done',
      );
      await until(() => lines().includes('ready'));
      child.kill(signal);
      expect(await ended).toEqual([5, null]);
      expect(lines().at(-1)).toMatch(/^\{"state":"stopping"/);
    },
  );

  it('takes the program along when it is killed', async () => {
    const { child, ended, lines } = start(
      'trap "echo told >>\\"\\$1\\"; exit" TERM; echo ready >>"$1"; while :; do sleep 0.05; done',
    );
    await until(() => lines().includes('ready'));
    child.kill('SIGKILL');
    await ended;
    await until(() => lines().includes('told'));
  });

  it('says that a program is missing', () => {
    const { status, stderr } = spawnSync(SUPERVISE, ['/"nonexistent"'], { encoding: 'utf8' });
    expect(status).toBe(127);
    expect(JSON.parse(stderr).msg).toContain('cannot run /"nonexistent": No such file');
  });
});
