/** --cgroup: the processes of a group alone, those that come to it later, and no longer those that leave it; --exclude-cgroup: all but those. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Profile } from '../common/profile/model/profile.ts';
import { cgroupRoot } from './support/cgroup-root.ts';
import { missingRights } from './support/fixtures.ts';
import { Recording } from './support/recording.ts';

const name = `everyframe-chosen-${process.pid}.service`;
const group = `${cgroupRoot}/${name}`;
const inner = `${group}/below`;
const other = `${cgroupRoot}/everyframe-other-${process.pid}`;
const FOLDERS = [group, inner, other];
const later = `everyframe-later-${process.pid}`;

/** Forks all the time, and computes. */
const BUSY = 'while :; do i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; /bin/true; done';

describe.skipIf(missingRights || !cgroupRoot)('of cgroups', () => {
  let children: ChildProcess[];

  function spin(folder: string): number {
    const child = spawn('sh', ['-c', `echo $$ > "$0/cgroup.procs"; ${BUSY}`, folder], { stdio: 'ignore' });
    children.push(child);
    return child.pid!;
  }

  beforeEach(() => {
    children = [];
    for (const folder of FOLDERS) mkdirSync(folder);
  });

  afterEach(async () => {
    for (const child of children) {
      const gone = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      await gone;
    }
    for (const folder of FOLDERS.toReversed()) rmdirSync(folder);
  });

  it('follows the processes of groups', async () => {
    const [inside, outside] = [spin(inner), spin(other)];
    const recording = await Recording.start({ cgroups: [name, later] });
    const samplesOf = (pid: number): number => recording.stacks(pid).length;
    try {
      await recording.until(() => samplesOf(inside) > 20);
      expect(samplesOf(outside)).toBe(0);
      writeFileSync(`${inner}/cgroup.procs`, String(outside));
      await recording.until(() => samplesOf(outside) > 20);
      writeFileSync(`${other}/cgroup.procs`, String(inside));
      // until intervals have samples of the one that stayed alone; on a busy machine a single one may by chance
      await recording.until(() => {
        const latest = recording.profiles.slice(-8).flatMap(pidsOf);
        return latest.includes(outside) && !latest.includes(inside);
      });
      const before = samplesOf(inside);
      const rest = samplesOf(outside);
      await recording.until(() => samplesOf(outside) > rest + 50);
      expect(samplesOf(inside)).toBe(before);
      // a group that was not there yet
      mkdirSync(`${other}/${later}`);
      writeFileSync(`${other}/${later}/cgroup.procs`, String(inside));
      await recording.until(() => samplesOf(inside) > before + 20);
    } finally {
      await recording.stop();
      for (const pid of [inside, outside]) writeFileSync(`${other}/cgroup.procs`, String(pid));
      await expect.poll(() => removed(`${other}/${later}`)).toBe(true);
    }
  });

  it('leaves the processes of groups out, waits too, until they leave them', async () => {
    const [inside, outside] = [spin(inner), spin(other)];
    // of all else that runs on the machine no more than it takes
    const recording = await Recording.start({
      excludedCgroups: [name],
      samplesPerSecond: 97,
      symbols: 'off',
      offCpu: { budget: 20 },
    });
    // counted without naming all stacks of the machine at each look
    const samplesOf = (pid: number): number =>
      recording.profiles.flatMap(pidsOf).filter((one) => one === pid).length;
    const until = (condition: () => boolean) => expect.poll(condition, { timeout: 60_000 }).toBe(true);
    try {
      await until(() => samplesOf(outside) > 20);
      expect(samplesOf(inside)).toBe(0);
      // of its children either, which it forks all the time
      const parents = (): number[] =>
        recording.profiles.flatMap(({ processes }) => processes.map(({ parentPid }) => parentPid));
      await until(() => parents().includes(outside));
      expect(parents()).not.toContain(inside);
      writeFileSync(`${other}/cgroup.procs`, String(inside));
      await until(() => samplesOf(inside) > 20);
      writeFileSync(`${inner}/cgroup.procs`, String(outside));
      await until(() => {
        const latest = recording.profiles.slice(-24).flatMap(pidsOf);
        return latest.includes(inside) && !latest.includes(outside);
      });
      const before = samplesOf(outside);
      const rest = samplesOf(inside);
      await until(() => samplesOf(inside) > rest + 50);
      expect(samplesOf(outside)).toBe(before);
    } finally {
      await recording.stop();
      for (const pid of [inside, outside]) writeFileSync(`${other}/cgroup.procs`, String(pid));
    }
  });
});

const pidsOf = ({ samples, processes }: Profile): number[] =>
  samples.map(({ process }) => processes[process]!.pid);

function removed(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
}
