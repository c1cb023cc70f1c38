import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseProcCgroup, readCgroupOwner } from './cgroup-owner.ts';

const ID = '3d1c0b5f7a9e4c2d8b6f1e0a3d1c0b5f7a9e4c2d8b6f1e0a3d1c0b5f7a9e4c2d';
const OTHER = 'f'.repeat(64);
const POD = 'poda1b2c3d4-0000-1111-2222-333344445555';

describe('container IDs', () => {
  test.each([
    ['Docker, systemd', `/system.slice/docker-${ID}.scope`, ID],
    ['Docker, cgroupfs', `/docker/${ID}`, ID],
    [
      'containerd',
      `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cri-containerd-${ID}.scope`,
      ID,
    ],
    ['CRI-O', `/kubepods.slice/kubepods-pod1.slice/crio-${ID}.scope/container`, ID],
    ['kubelet, cgroupfs', `/kubepods/burstable/${POD}/${ID}`, ID],
    [
      'containerd, colons',
      `/system.slice/containerd.service/kubepods-besteffort-${POD}.slice:cri-containerd:${ID}`,
      ID,
    ],
    ['Podman', `/machine.slice/libpod-${ID}.scope/container`, ID],
    ['rootless Podman', `/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-${ID}.scope`, ID],
    ['systemd in a container', `/docker/${ID}/system.slice/nginx.service`, ID],
    [
      'kind: the innermost',
      `/docker/${OTHER}/kubelet.slice/kubelet-kubepods.slice/cri-containerd-${ID}.scope`,
      ID,
    ],
    ['ECS', `/ecs/a1/${ID.slice(0, 32)}-1234567`, `${ID.slice(0, 32)}-1234567`],
    ['LXC', '/lxc.payload.web-1/system.slice/cron.service', 'web-1'],
    ['LXC, old', '/lxc/web-2', 'web-2'],
    ['a pod without a container', `/kubepods/burstable/${POD}`, ''],
    ["the engine's helper", `/machine.slice/libpod-conmon-${ID}.scope`, ''],
    ["the engine's helper, CRI-O", `/kubepods.slice/crio-conmon-${ID}.scope`, ''],
    ['a longer hex string', `/docker/${ID}0`, ''],
    ['32 digits alone', `/process_api/${ID.slice(0, 32)}`, ''],
    ['an LXC monitor', '/lxc.monitor.web-1', ''],
    ['the root', '/', ''],
    ['nothing', '', ''],
  ])('%s', (_name, path, expected) => {
    expect(readCgroupOwner(path).containerId).toBe(expected);
  });
});

describe('units', () => {
  test.each([
    ['/system.slice/nginx.service', 'nginx'],
    ['/system.slice/nginx.service/worker', 'nginx'],
    ['/system.slice/system-postgresql.slice/postgresql@15-main.service', 'postgresql'],
    ['/system.slice/my\\x2dapp.service', 'my-app'],
    ['/user.slice/user-1000.slice/user@1000.service/app.slice/gnome-terminal.service', 'gnome-terminal'],
    ['/user.slice/user-1000.slice/user@1000.service/init.scope', ''],
    ['/user.slice/user-1000.slice/session-3.scope', ''],
    [`/system.slice/docker.service/docker/${ID}`, ''],
    [`/docker/${ID}/system.slice/nginx.service`, 'nginx'],
    ['/.service', ''],
  ])('%s', (path, expected) => {
    expect(readCgroupOwner(path).unit).toBe(expected);
  });
});

test('/proc/PID/cgroup: the unified path, or the most telling one of cgroup v1', () => {
  expect(parseProcCgroup('0::/system.slice/a.service\n')).toBe('/system.slice/a.service');
  expect(parseProcCgroup('2:cpu:/\n1:name=systemd:/docker/x\n0::/\n')).toBe('/docker/x');
  expect(parseProcCgroup('2:memory:/a\n0::/b\n')).toBe('/b');
  expect(parseProcCgroup('0::/\n')).toBe('/');
  expect(parseProcCgroup('4:cpu,cpuacct:/a:b\n')).toBe('/a:b');
  expect(parseProcCgroup('')).toBe('');
});

test('any path is survived', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 6000 }), (path) => {
      const { containerId, unit } = readCgroupOwner(path);
      expect(containerId.length + unit.length).toBeLessThanOrEqual(path.length);
    }),
  );
});
