import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { readAttributes } from '../../common/profile/model/attributes.ts';
import type { ProcessRecord } from '../records/records.ts';
import { parseStat } from './proc-files.ts';
import { ProcessManager } from './process-manager.ts';

const clock = { toUnixNanos: (boottimeNs: bigint) => boottimeNs + 1_000_000n };
/** A /proc without processes, so that nothing of this machine gets in. */
const NO_PROC = '/nonexistent';
const manager = (options = {}) => new ProcessManager({ proc: NO_PROC, clock, ...options });

const record = (
  pid: number,
  execId: number,
  start: bigint,
  more: Partial<ProcessRecord> = {},
): ProcessRecord => ({
  pid: toPid(pid),
  execId,
  startBoottimeNs: start,
  parentPid: toPid(1),
  uid: 0,
  ktimeNs: start,
  comm: 'main',
  executablePath: `/usr/bin/p${pid}-${execId}`,
  hasExecutable: true,
  cgroupPath: '/',
  ...more,
});
const exit = (pid: number, execId: number, start: bigint, ktimeNs: bigint) => ({
  pid: toPid(pid),
  execId,
  startBoottimeNs: start,
  ktimeNs,
});

test('has ended: whose exit was told, whose exit was missed, and what was there before another program', () => {
  const processes = new ProcessManager({ clock });
  const stat = parseStat(readFileSync('/proc/self/stat', 'utf8'))!;
  const self = { pid: toPid(process.pid), execId: 3, startBoottimeNs: stat.startTicks * 10_000_000n };
  const hasEnded = (more: object) => processes.hasEnded({ ...self, ...more });
  expect(hasEnded({})).toBe(false);
  expect(hasEnded({ startBoottimeNs: 1n })).toBe(true);
  expect(hasEnded({ pid: toPid(2 ** 22 + 1) })).toBe(true);
  processes.onProcess(record(process.pid, 2, self.startBoottimeNs));
  processes.onProcess(record(process.pid, 3, self.startBoottimeNs, { ktimeNs: 9n }));
  expect([hasEnded({}), hasEnded({ execId: 2 })]).toEqual([false, true]);
  // what ended is forgotten once its traces are out
  processes.releaseUntil(10n);
  expect([hasEnded({}), hasEnded({ execId: 2 })]).toEqual([false, true]);
  processes.onProcess(record(2 ** 22 + 1, 1, 1n));
  expect(hasEnded({ pid: toPid(2 ** 22 + 1), execId: 1, startBoottimeNs: 1n })).toBe(true);
});

describe('facts', () => {
  test('a process in a container', () => {
    const processes = manager();
    const id = 'ab'.repeat(32);
    const cgroupPath = `/system.slice/docker-${id}.scope`;
    processes.onProcess(record(10, 1, 5n, { cgroupPath, comm: 'nginx', parentPid: toPid(9) }));
    expect(processes.get(toPid(10), 1, 5n)).toEqual({
      pid: 10,
      parentPid: 9,
      executableName: 'p10-1',
      executablePath: '/usr/bin/p10-1',
      commandName: 'nginx',
      containerId: id,
      cgroupPath,
      serviceName: 'unknown_service:p10-1',
      startUnixNano: 1_000_005n,
    });
  });

  test('what is told of a process on its way out takes nothing from what is known of it', () => {
    const processes = manager();
    processes.onProcess(record(10, 1, 5n));
    const before = { ...processes.get(toPid(10), 1, 5n) };
    processes.onExit(exit(10, 1, 5n, 9n));
    const last = { executablePath: '', hasExecutable: false, cgroupPath: '', comm: 'python3' };
    processes.onProcess(record(10, 1, 5n, last));
    expect(processes.get(toPid(10), 1, 5n)).toEqual(before);
  });

  test('the systemd unit names the service', () => {
    const processes = manager();
    processes.onProcess(record(10, 1, 5n, { cgroupPath: '/system.slice/nginx.service' }));
    expect(processes.get(toPid(10), 1, 5n).serviceName).toBe('nginx');
  });

  test('a kernel thread has a name, no path, and shares one service with the others', () => {
    const processes = manager();
    processes.onProcess(record(33, 0, 5n, { executablePath: '', comm: 'kworker/0:1', parentPid: toPid(2) }));
    expect(processes.get(toPid(33), 0, 5n)).toMatchObject({
      executableName: 'kworker/0:1',
      executablePath: '',
      serviceName: 'unknown_service:kernel',
    });
  });

  test('without an executable the main thread names the process, but never the service', () => {
    const processes = manager();
    processes.onProcess(record(34, 1, 5n, { executablePath: '', comm: 'npm exec x', parentPid: toPid(7) }));
    expect(processes.get(toPid(34), 1, 5n)).toMatchObject({
      executableName: 'npm exec x',
      serviceName: 'unknown_service',
    });
  });

  test('who was not reported and is gone keeps its PID and start', () => {
    const processes = manager();
    const unknown = processes.get(toPid(99), 3, 7n);
    expect(unknown).toMatchObject({
      pid: 99,
      executableName: '',
      serviceName: 'unknown_service',
      startUnixNano: 1_000_007n,
    });
    expect(processes.stats.unidentified).toBe(1);
    processes.onProcess(record(99, 3, 7n));
    expect(processes.get(toPid(99), 3, 7n)).toBe(unknown);
    expect(unknown.executableName).toBe('p99-3');
  });

  test('/proc is asked for the executable of a process only where it has one', async () => {
    const child = spawn('/bin/sleep', ['60']);
    await once(child, 'spawn');
    try {
      const { startTicks } = parseStat(readFileSync(`/proc/${child.pid}/stat`, 'utf8'))!;
      const nameOf = (hasExecutable: boolean): string => {
        const processes = new ProcessManager();
        const start = startTicks * 10_000_000n;
        processes.onProcess(record(child.pid!, 1, start, { executablePath: '', comm: 'c', hasExecutable }));
        return processes.get(toPid(child.pid!), 1, start).executableName;
      };
      expect(nameOf(true)).toMatch(/sleep|coreutils|busybox/);
      expect(nameOf(false)).toBe('c');
    } finally {
      child.kill('SIGKILL');
    }
  });

  test('what a process says of itself takes the place of what it said before, and of nothing that is known better', () => {
    const processes = new ProcessManager();
    const identity = record(10, 1, 5n, { cgroupPath: '/system.slice/nginx.service' });
    processes.onProcess(identity);
    processes.noteAttribute(identity, ['lines', 'approximate']);
    const said = {
      'service.name': 'shop',
      'service.version': '1',
      'process.pid': '1',
      'host.name': 'x',
      'thread.name': 'y',
    };
    processes.noteResource(identity, new Map(Object.entries(said)));
    const process = processes.get(toPid(10), 1, 5n);
    expect(process).toMatchObject({ serviceName: 'shop', pid: 10 });
    expect(readAttributes(process.attributes!)).toEqual(
      new Map([
        ['lines', 'approximate'],
        ['service.version', '1'],
      ]),
    );
    processes.noteResource(identity, new Map([['a', 'b']]));
    expect(process.serviceName).toBe('shop');
    expect(readAttributes(process.attributes!)).toEqual(
      new Map([
        ['a', 'b'],
        ['lines', 'approximate'],
      ]),
    );
  });

  test('what runs now is not taken for what ran under the PID before its last exec', async () => {
    const child = spawn('/bin/sleep', ['60']);
    await once(child, 'spawn');
    try {
      const { startTicks } = parseStat(readFileSync(`/proc/${child.pid}/stat`, 'utf8'))!;
      const start = startTicks * 10_000_000n;
      const processes = new ProcessManager();
      processes.onProcess(record(child.pid!, 2, start));
      expect(processes.get(toPid(child.pid!), 1, start).executableName).toBe('');
      expect(processes.stats).toMatchObject({ readFromProc: 0, unidentified: 1 });
    } finally {
      child.kill('SIGKILL');
    }
  });

  test('who was not reported and still runs is read from /proc', async () => {
    const child = spawn('/bin/sleep', ['60']);
    await once(child, 'spawn');
    try {
      const { startTicks } = parseStat(readFileSync(`/proc/${child.pid}/stat`, 'utf8'))!;
      const processes = new ProcessManager();
      const found = processes.get(toPid(child.pid!), 1, startTicks * 10_000_000n);
      expect(found).toMatchObject({
        pid: child.pid,
        parentPid: process.pid,
        executableName: expect.stringMatching(/sleep|coreutils|busybox/),
      });
      expect(Math.abs(Number(found.startUnixNano / 1_000_000n) - Date.now())).toBeLessThan(60_000);
      expect(processes.stats.readFromProc).toBe(1);
      const stranger = processes.get(toPid(child.pid!), 1, (startTicks + 1000n) * 10_000_000n);
      expect(stranger.executableName).toBe('');
    } finally {
      child.kill('SIGKILL');
    }
  });
});

describe('lives', () => {
  test('an exec starts another execution; both keep their names', () => {
    const processes = manager();
    processes.onProcess(record(10, 1, 5n));
    const before = processes.get(toPid(10), 1, 5n);
    processes.onProcess(record(10, 2, 5n, { ktimeNs: 100n }));
    expect(processes.get(toPid(10), 2, 5n).executableName).toBe('p10-2');
    expect(processes.get(toPid(10), 1, 5n)).toBe(before);
    processes.releaseUntil(101n);
    expect(processes.size).toBe(1);
    expect(processes.get(toPid(10), 2, 5n).executableName).toBe('p10-2');
  });

  test('a reused PID is another process', () => {
    const processes = manager();
    processes.onProcess(record(10, 1, 5n));
    processes.onProcess(record(10, 1, 900n, { executablePath: '/bin/other', ktimeNs: 900n }));
    expect(processes.get(toPid(10), 1, 5n).executableName).toBe('p10-1');
    expect(processes.get(toPid(10), 1, 900n).executableName).toBe('other');
  });

  test('samples drained after the exit still find their process, until it is released', () => {
    const processes = manager();
    processes.onProcess(record(10, 1, 5n));
    processes.onExit(exit(10, 1, 5n, 50n));
    processes.releaseUntil(50n);
    expect(processes.get(toPid(10), 1, 5n).executableName).toBe('p10-1');
    processes.releaseUntil(51n);
    expect(processes.size).toBe(0);
    expect(processes.stats).toMatchObject({ reported: 1, exited: 1, released: 1, evicted: 0 });
  });

  test('an exit of somebody unknown is counted', () => {
    const processes = manager();
    processes.onExit(exit(10, 1, 5n, 50n));
    expect(processes.stats.exitsUnknown).toBe(1);
  });
});

describe('bounds', () => {
  test('100,000 processes that never exit', () => {
    const processes = manager({ maxProcesses: 1000 });
    for (let i = 0; i < 100_000; i++) processes.onProcess(record(i, 1, BigInt(i)));
    expect(processes.size).toBe(1000);
    expect(processes.stats.evicted).toBe(99_000);
    expect(processes.get(toPid(99_999), 1, 99_999n).executableName).toBe('p99999-1');
  });

  test('a process that calls exec for ever, and nobody releases', () => {
    const processes = manager({ maxProcesses: 1000 });
    for (let i = 0; i < 10_000; i++) processes.onProcess(record(10, i, 5n));
    expect(processes.size).toBe(16);
    expect(processes.get(toPid(10), 9999, 5n).executableName).toBe('p10-9999');
    expect(processes.get(toPid(10), 9985, 5n).executableName).toBe('p10-9985');
  });

  test('whoever is sampled stays', () => {
    const processes = manager({ maxProcesses: 100 });
    processes.onProcess(record(1, 1, 1n));
    for (let i = 2; i < 5000; i++) {
      processes.onProcess(record(i, 1, BigInt(i)));
      expect(processes.get(toPid(1), 1, 1n).executableName).toBe('p1-1');
    }
    expect(processes.stats.unidentified).toBe(0);
  });
});

/** The same with plain lists, and no bound: what a sample must be attributed to. */
test('whatever the order of execs, exits, reuse and releases, no sample goes to another execution', () => {
  const step = fc.record({
    kind: fc.constantFrom('process', 'exit', 'sample', 'release'),
    pid: fc.integer({ min: 1, max: 4 }),
    execId: fc.integer({ min: 1, max: 3 }),
    start: fc.integer({ min: 1, max: 3 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const processes = manager();
      const reported = new Set<string>();
      const live = new Set<string>();
      let now = 0n;
      for (const { kind, pid, execId, start } of steps) {
        now += 10n;
        const key = `${pid}/${execId}/${start}`;
        const executablePath = `/bin/${key.replaceAll('/', '-')}`;
        if (kind === 'process') {
          processes.onProcess(record(pid, execId, BigInt(start), { executablePath, ktimeNs: now }));
          reported.add(key);
          live.add(key);
        } else if (kind === 'exit') {
          processes.onExit(exit(pid, execId, BigInt(start), now));
        } else if (kind === 'release') {
          processes.releaseUntil(now);
          live.clear();
        } else {
          const found = processes.get(toPid(pid), execId, BigInt(start));
          expect(found.pid).toBe(pid);
          expect(found.startUnixNano).toBe(BigInt(start) + 1_000_000n);
          const name = key.replaceAll('/', '-');
          expect(reported.has(key) ? [name, ''] : ['']).toContain(found.executableName);
          // nothing was released since it was reported, so it must be known
          if (live.has(key)) expect(found.executableName).toBe(name);
        }
        expect(processes.size).toBeLessThanOrEqual(4 * 16);
      }
    }),
  );
});
