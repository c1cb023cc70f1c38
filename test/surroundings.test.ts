/** Where nothing can be sampled, and where little is to be had: a sentence and an exit code, and nothing is left behind. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { EVERYFRAME } from './support/collector.ts';
import { hasTool, missingRights, scratchFolder } from './support/fixtures.ts';

const OUTPUT = join(scratchFolder, 'surroundings.folded');
const RECORD = `${EVERYFRAME} record -d 300ms --force -o ${OUTPUT}`;
/** Long enough to be sampled. */
const BUSY = `sh -c 'i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done'`;
const RUN = `${EVERYFRAME} run --grpc-listen 127.0.0.1:0 --http-listen 127.0.0.1:0 --page-listen 127.0.0.1:0`;

const shell = (script: string) => spawnSync('bash', ['-c', script], { encoding: 'utf8', timeout: 60_000 });

describe.skipIf(missingRights || !hasTool('unshare'))('everyframe', () => {
  it.each([
    ['record in a PID namespace', `unshare -pf --mount-proc ${RECORD}`, /pid namespace: not the host's/],
    ['a command in it', `unshare -pf ${RECORD} -- true`, /pid namespace: not the host's.*--pid=host/],
    ['run in it', `unshare -pf --mount-proc ${RUN}`, /pid namespace: not the host's/],
    ['a user namespace', `unshare -Ur ${RECORD}`, /this is a user namespace/],
    ['few open files', `ulimit -n 64; ${RECORD}`, /(only|at most) 64.*ulimit -n.*\d+ are needed/],
    ['no /proc', `unshare -m sh -c 'mount -t tmpfs none /proc; ${RECORD}'`, /mount -t proc/],
    ['no /sys', `unshare -m sh -c 'mount -t tmpfs none /sys; ${RECORD}'`, /mount \/sys/],
    [
      'a cache below /proc',
      `${RECORD} --symbol-cache /proc/x`,
      /--symbol-cache \/proc\/x: no directory can be made there: name another one \(ENOENT\)/,
    ],
  ])('refuses %s', (_, script, sentence) => {
    const { status, stderr } = shell(script);
    expect(stderr).toMatch(sentence);
    expect(status).toBe(1);
  });

  it('goes on where nobody reads what it says', () => {
    expect(shell(`${RECORD} -d 0 2>/dev/full >/dev/full -- ${BUSY}`).status).toBe(0);
    expect(shell(`${RECORD} -d 0 2>&- >&- <&- -- ${BUSY}`).status).toBe(0);
  });

  it.each(['SIGTERM', 'SIGHUP', 'SIGKILL'] as const)(
    'at %s while it starts never runs the command',
    async (signal) => {
      const ran = join(scratchFolder, `ran-${signal}`);
      const child = spawn(EVERYFRAME, ['record', '--force', '-o', OUTPUT, '--', 'touch', ran], {
        stdio: 'ignore',
      });
      const shellOf = (): string =>
        readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim();
      while (shellOf() === '') await new Promise((resolve) => setTimeout(resolve, 5));
      const waiting = shellOf().split(' ')[0];
      child.kill(signal);
      await once(child, 'exit');
      while (existsSync(`/proc/${waiting}`)) await new Promise((resolve) => setTimeout(resolve, 20));
      expect(existsSync(ran)).toBe(false);
    },
  );

  it('ends at Ctrl-C, which reaches a whole group, and nothing that works for it fails before', async () => {
    const flags = ['agent', '--collection-agent', '127.0.0.1:9', '--disable-tls', '--symbol-cache', 'off'];
    const child = spawn(EVERYFRAME, flags, { detached: true, stdio: ['ignore', 'ignore', 'pipe'] });
    const ended = once(child, 'close');
    let log = '';
    child.stderr.on('data', (text) => {
      log += text;
    });
    const helpers = (): string[] =>
      readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').split(' ').filter(Boolean);
    const commandOf = (pid: string): string => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[0]!;
    const names = () => helpers().map(commandOf);
    await expect
      .poll(names, { timeout: 30_000, interval: 20 })
      .toEqual(expect.arrayContaining(['everyframe-reader', 'everyframe-worker']));
    const started = helpers();
    process.kill(-child.pid!, 'SIGINT');
    await ended;
    expect(log).not.toMatch(/could not be read|worker failed/);
    await expect
      .poll(() => started.some((pid) => existsSync(`/proc/${pid}`)), { timeout: 10_000 })
      .toBe(false);
  });

  it.skipIf(!existsSync('/sys/fs/cgroup/memory'))('stays below the memory limit of its cgroup', () => {
    const own = /^\d+:memory:(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1] ?? '/';
    const group = join('/sys/fs/cgroup/memory', own, `everyframe-${process.pid}`);
    const { stderr } = shell(
      `mkdir -p ${group}/in; echo 200M >${group}/memory.limit_in_bytes; echo $$ >${group}/in/cgroup.procs; ${RECORD} -d 0 -v -- ${BUSY}`,
    );
    const used = Number(readFileSync(join(group, 'memory.max_usage_in_bytes'), 'utf8'));
    shell(`rmdir ${group}/in ${group}`);
    expect(stderr).toMatch(/200 MiB are the limit .*: the agent keeps to 160 MiB/);
    expect(used).toBeLessThan(200 * 2 ** 20);
    expect(readdirSync(scratchFolder)).toContain('surroundings.folded');
  });
});
