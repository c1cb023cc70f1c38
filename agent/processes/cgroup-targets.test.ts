import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Pid, toPid } from '../../common/base/brand.ts';
import { CgroupTargets, hasCgroup, processesOfCgroups } from './cgroup-targets.ts';

const ID = 'ab12cd34'.repeat(8);
let proc: string;

function write(path: string, text: string): void {
  mkdirSync(dirname(join(proc, path)), { recursive: true });
  writeFileSync(join(proc, path), text);
}

const group = (path: string, ...pids: number[]): void =>
  write(`1/root/sys/fs/cgroup${path}/cgroup.procs`, pids.map((pid) => `${pid}\n`).join(''));

const alive = (...pids: number[]): void => {
  for (const pid of pids) write(`${pid}/stat`, `${pid} (x) S 1 ${'0 '.repeat(17)}77 0`);
};

class FakeMap {
  readonly pids = new Set<Pid>();
  room = Number.POSITIVE_INFINITY;
  addTarget(pid: Pid): boolean {
    return this.pids.size < this.room && Boolean(this.pids.add(pid));
  }
  removeTarget(pid: Pid): void {
    this.pids.delete(pid);
  }
  targets = (): Pid[] => [...this.pids];
}

beforeEach(() => {
  proc = mkdtempSync(join(tmpdir(), 'everyframe-cgroups-'));
  write('1/mountinfo', '30 25 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n');
  group('', 1);
  group('/system.slice/nginx.service', 10, 11);
  group('/system.slice/nginx.service/below', 12);
  group('/system.slice/ssh.service', 20);
  group(`/system.slice/docker-${ID}.scope`, 30);
  group('/user.slice/a.b+c.service', 40);
  alive(1, 10, 11, 12, 20, 30, 40);
});

afterEach(() => rmSync(proc, { recursive: true }));

describe('--cgroup', () => {
  it.each([
    ['nginx.service', [10, 11, 12]],
    ['/system.slice/nginx.service', [10, 11, 12]],
    ['/system.slice/nginx.service/', [10, 11, 12]],
    ['/sys/fs/cgroup/system.slice/nginx.service', [10, 11, 12]],
    ['nginx*', [10, 11, 12]],
    ['/system.slice/*.service', [10, 11, 12, 20]],
    ['/*', [10, 11, 12, 20, 30, 40]],
    ['/', [1, 10, 11, 12, 20, 30, 40]],
    [ID.slice(0, 12), [30]],
    [ID, [30]],
    ['a.b+c.service', [40]],
    // nothing like it
    ['nginx', []],
    ['/nginx.service', []],
    ['aab+c.service', []],
    [ID.slice(0, 4), []],
    [ID.slice(2, 12), []],
  ])('%s', (pattern, pids) => {
    expect(processesOfCgroups({ groups: [pattern] }, proc).sort((a, b) => a - b)).toEqual(pids);
    expect(hasCgroup(pattern, proc)).toBe(pids.length > 0);
  });

  const UID = '1b4e5a2c-8f1e-4c55-9d3a-0123456789ab';
  it.each([
    ['the cgroupfs driver', `/kubepods/burstable/pod${UID}`],
    [
      'the systemd driver',
      `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod${UID.replaceAll('-', '_')}.slice`,
    ],
    ['a guaranteed pod', `/kubepods.slice/kubepods-pod${UID.replaceAll('-', '_')}.slice`],
  ])('takes the UID of a pod, and IDs of containers, as kubectl prints them: %s', (_, path) => {
    group(`${path}/${ID}`, 50);
    group(path.replace(/1b4e/, '1b4f'), 51);
    for (const pattern of [UID, `containerd://${ID}`, `cri-o://${ID.slice(0, 13)}`])
      expect(processesOfCgroups({ groups: [pattern] }, proc), pattern).toContain(50);
    expect(processesOfCgroups({ groups: [UID] }, proc)).toEqual([50]);
    expect(processesOfCgroups({ groups: [UID.slice(0, 12)] }, proc)).toEqual([]);
  });

  it('sees what PID 1 sees through another process, where PID 1 lets nobody look', () => {
    for (const pid of [2, 9, 'self']) write(`${pid}/root/sys/fs/cgroup/in-a-container/cgroup.procs`, '10\n');
    for (const pid of [2, 'self'])
      write(`${pid}/mountinfo`, '9 8 0:26 /pod /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n');
    write('9/mountinfo', readFileSync(join(proc, '1/mountinfo'), 'latin1'));
    write('9/root/sys/fs/cgroup/kubepods/cgroup.procs', '20\n');
    rmSync(join(proc, '1/root'), { recursive: true });
    expect(processesOfCgroups({ groups: ['kubepods'] }, proc)).toEqual([20]);
  });

  it('finds version 1, where each controller has its own groups', () => {
    write(
      '1/mountinfo',
      '30 25 0:26 / /cg/memory rw - cgroup cgroup rw,memory\n30 25 0:26 / /elsewhere rw - cgroup cgroup rw,memory\n31 25 0:27 / /cg/cpu\\040set rw - cgroup cgroup rw,cpuset\n',
    );
    write('1/root/cg/memory/docker/cgroup.procs', '10\n');
    write('1/root/cg/cpu set/docker/cgroup.procs', '10\n11\n');
    expect(processesOfCgroups({ groups: ['docker'] }, proc)).toEqual([10, 11]);
  });

  it.each([
    [['system.slice'], ['nginx.service'], [20, 30]],
    [['system.slice'], ['below', ID], [10, 11, 20]],
    [['nginx.service'], ['system.slice'], []],
    [['nginx.service'], ['ssh.service'], [10, 11, 12]],
  ])('%s without %s', (groups, except, pids) => {
    expect(processesOfCgroups({ groups, except }, proc).sort((a, b) => a - b)).toEqual(pids);
  });

  it('excludes what any hierarchy has in the group', () => {
    write(
      '1/mountinfo',
      '30 25 0:26 / /cg/memory rw - cgroup cgroup rw,memory\n31 25 0:27 / /cg/cpu rw - cgroup cgroup rw,cpu\n',
    );
    write('1/root/cg/memory/docker/cgroup.procs', '10\n11\n');
    write('1/root/cg/cpu/noisy/cgroup.procs', '11\n');
    expect(processesOfCgroups({ groups: ['docker'], except: ['noisy'] }, proc)).toEqual([10]);
  });

  it('follows what comes, and leaves what goes or moves away alone', () => {
    const map = new FakeMap();
    const targets = new CgroupTargets({ groups: ['nginx.service'] }, map, proc);
    targets.look();
    expect([...map.pids]).toEqual([10, 11, 12]);
    // the kernel has added a child, which the group has not shown yet
    map.pids.add(toPid(13));
    group('/system.slice/nginx.service', 10, 14);
    group('/system.slice/ssh.service', 11, 20);
    alive(14);
    targets.look();
    expect([...map.pids].sort()).toEqual([10, 11, 12, 13, 14]);
    group('/system.slice/nginx.service', 10, 13, 14);
    alive(13);
    targets.look();
    expect([...map.pids].sort()).toEqual([10, 12, 13, 14]);
    expect(targets.stats).toEqual({ cgroups: 2, looks: 3, groupsLeftOut: 0, processesLeftOut: 0 });
  });

  it('takes up a group that comes later', () => {
    const map = new FakeMap();
    const targets = new CgroupTargets({ groups: ['later.service'] }, map, proc);
    targets.look();
    expect(map.pids.size).toBe(0);
    group('/system.slice/later.service', 10);
    targets.look();
    expect([...map.pids]).toEqual([10]);
  });

  it('counts processes that the map has no room for, but not those that are gone', () => {
    const map = new FakeMap();
    map.room = 1;
    rmSync(join(proc, '12'), { recursive: true });
    const targets = new CgroupTargets({ groups: ['nginx.service'] }, map, proc);
    targets.look();
    expect(map.pids.size).toBe(1);
    expect(targets.stats.processesLeftOut).toBe(1);
  });
});
