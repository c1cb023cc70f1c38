/** `record -p`: which processes are taken, as a person chooses them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readProfile, readProfiles } from '../common/profile/formats/formats.ts';
import { EVERYFRAME } from './support/collector.ts';
import { compile, hasTool, missingRights, scratchFolder } from './support/fixtures.ts';

const background: ChildProcess[] = [];

/** The number of the process that a shell starts, once it is there. */
async function startBelow(script: string, ...before: string[]): Promise<{ parent: number; child: number }> {
  const command = [...before, 'sh', '-c', `${script} & echo $!; wait`];
  const shell = spawn(command[0]!, command.slice(1), { stdio: ['ignore', 'pipe', 'ignore'], detached: true });
  background.push(shell);
  const [line] = (await once(shell.stdout!, 'data')) as [Buffer];
  return { parent: shell.pid!, child: Number(line) };
}

async function record(...args: string[]): Promise<{ code: number; seconds: number; pids: number[] }> {
  const output = join(scratchFolder, 'chosen.pb.gz');
  const began = performance.now();
  const child = spawn(EVERYFRAME, ['record', '-F', '199', '--force', '-o', output, ...args], {
    stdio: 'ignore',
  });
  const [code] = (await once(child, 'exit')) as [number];
  const { samples, processes } = readProfile(output, readFileSync(output));
  const pids = [...new Set(samples.map(({ process }) => processes[process]!.pid as number))];
  return { code, seconds: (performance.now() - began) / 1000, pids };
}

describe.skipIf(missingRights)('record -p', () => {
  let busy: string;

  beforeAll(() => {
    busy = `${compile('deep-chosen', 'gcc', ['-O2', '-fomit-frame-pointer'], 'deep.c')} 40`;
  });
  afterAll(() => {
    // each with its group
    for (const { pid } of background) if (existsSync(`/proc/${pid}`)) process.kill(-pid!, 'SIGKILL');
  });

  it('takes children and grandchildren that exist already, and those to come', async () => {
    const { parent, child } = await startBelow(`(while :; do timeout 0.3 ${busy}; done)`);
    const { pids } = await record('-d', '2s', '-p', String(parent));
    expect(pids.length).toBeGreaterThan(2);
    expect(pids).not.toContain(process.pid);
    process.kill(child, 'SIGKILL');
  });

  it('takes the other children of the shell that it is run from, but not itself', async () => {
    const output = join(scratchFolder, 'own.pb.gz');
    const script = `${busy} & echo $!; "$0" record --event page-faults --event cpu-clock -d 1s --force -o "$1" -p $$ 2>/dev/null`;
    const shell = spawn('sh', ['-c', script, EVERYFRAME, output], {
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: true,
    });
    background.push(shell);
    const [line] = (await once(shell.stdout!, 'data')) as [Buffer];
    await once(shell, 'exit');
    const { samples, processes } = readProfile(output, readFileSync(output));
    expect(new Set(samples.map(({ process }) => processes[process]!.pid as number))).toEqual(
      new Set([Number(line)]),
    );
    process.kill(Number(line), 'SIGKILL');
  });

  it('counts nothing but the time that was asked for', async () => {
    const one = await startBelow(busy);
    const output = join(scratchFolder, 'window.pb.gz');
    const child = spawn(
      EVERYFRAME,
      ['record', '-F', '997', '--off-cpu', '-d', '2s', '--force', '-o', output, '-p', String(one.child)],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    let said = '';
    child.stderr!.on('data', (text) => {
      said += text;
    });
    await once(child, 'exit');
    const seconds = Number(/ in (\d+\.\d) s, written/.exec(said)?.[1]);
    const { profiles } = readProfiles(output, readFileSync(output));
    const sumOf = (type: string): number =>
      profiles
        .filter((profile) => profile.type.sampleType.type === type)
        .flatMap(({ samples }) => samples)
        .reduce((sum, { value }) => sum + value, 0);
    // one thread: no more samples than fit into the time, and its states are that time
    expect(sumOf('samples')).toBeLessThanOrEqual(997 * (seconds + 0.1));
    expect(sumOf('thread_time') / 1e9).toBeGreaterThan(seconds - 0.3);
    expect(sumOf('thread_time') / 1e9).toBeLessThan(seconds + 0.3);
  });

  it('takes several, and none of their parents', async () => {
    const one = await startBelow(busy);
    const other = await startBelow(busy);
    const { pids } = await record('-d', '1s', '-p', String(one.child), '-p', String(other.child));
    expect(pids.sort()).toEqual([one.child, other.child].sort());
  });

  it.runIf(hasTool('unshare'))("takes a container's processes by the numbers of this machine", async () => {
    const { parent } = await startBelow(busy, 'unshare', '--pid', '--fork', '--mount-proc');
    const { pids } = await record('-d', '1s', '-p', String(parent));
    expect(pids).toHaveLength(1);
    expect(readFileSync(`/proc/${pids[0]}/comm`, 'utf8')).toBe('deep-chosen\n');
  });

  it('ends when they have ended', async () => {
    const { parent } = await startBelow(`timeout 12 ${busy}`);
    const { code, seconds, pids } = await record('-d', '1h', '-p', String(parent));
    expect(code).toBe(0);
    expect(seconds).toBeLessThan(60);
    expect(pids.length).toBeGreaterThan(0);
  });
});
