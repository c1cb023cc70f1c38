import { beforeEach, expect, it } from 'vitest';
import type { Native } from '../base/native.ts';
import { PerfEvents } from './perf-events.ts';

/** Events by descriptor; those of a CPU that was off do not go on. */
class FakePerf {
  readonly running = new Map<number, { cpu: number; enabledNs: number; isEnabled: boolean }>();
  #nextFd = 10;

  open(cpu: number): number {
    this.running.set(this.#nextFd, { cpu, enabledNs: 0, isEnabled: false });
    return this.#nextFd++;
  }

  /** Seconds of all CPUs; the events of `off` are removed first. */
  pass(off: readonly number[] = []): void {
    for (const event of this.running.values()) {
      if (off.includes(event.cpu)) event.isEnabled = false;
      if (event.isEnabled) event.enabledNs += 5e9;
    }
  }

  readonly native = {
    perfEnable: async (fds: number[]) => {
      for (const fd of fds) this.running.get(fd)!.isEnabled = true;
      return 0;
    },
    perfDisable: (fds: number[]) => {
      for (const fd of fds) this.running.get(fd)!.isEnabled = false;
    },
    perfEnabledNs: (fd: number) => this.running.get(fd)!.enabledNs,
    closeFd: (fd: number) => void this.running.delete(fd),
  } as unknown as Native;

  get sampledCpus(): number[] {
    return [...this.running.values()]
      .flatMap(({ cpu, isEnabled }) => (isEnabled ? [cpu] : []))
      .sort((a, b) => a - b);
  }
}

let perf: FakePerf;
let events: PerfEvents;
const ALL = [0, 1, 2];

beforeEach(async () => {
  perf = new FakePerf();
  events = new PerfEvents(perf.native, { open: (cpu) => perf.open(cpu), spreadNs: 1e7 });
  await events.follow(ALL);
  await events.enable();
});

async function look(online = ALL, off: readonly number[] = []): Promise<void> {
  perf.pass(off);
  await events.follow(online);
}

it('follows CPUs that go and come', async () => {
  await look([0, 2], [1]);
  expect(perf.sampledCpus).toEqual([0, 2]);
  expect(perf.running.size).toBe(2);
  await look();
  expect(perf.sampledCpus).toEqual(ALL);
});

it('samples CPUs again that were off between two looks, as while the machine slept', async () => {
  await look();
  await look(ALL, [1, 2]);
  await look();
  expect(perf.sampledCpus).toEqual(ALL);
  expect(perf.running.size).toBe(3);
});

it('leaves events alone that were disabled, or just enabled', async () => {
  await look();
  const before = [...perf.running.keys()];
  events.disable();
  await look();
  await look();
  await events.enable();
  await events.follow(ALL);
  await look();
  expect([...perf.running.keys()]).toEqual(before);
  expect(perf.sampledCpus).toEqual(ALL);
});

it('says what the kernel asks for where it refuses each event', async () => {
  const open = (cpu: number): never => {
    const error = new Error(`cannot open the event on CPU ${cpu}: Permission denied`);
    throw Object.assign(error, { code: 'EACCES' });
  };
  const refused = new PerfEvents({} as Native, { open, spreadNs: 0 });
  await expect(refused.follow([0, 1])).rejects.toThrow(
    /on CPU 1: Permission denied: kernel\.perf_event_paranoid is -?\d.*sysctl kernel\.perf_event_paranoid=2, or CAP_SYS_ADMIN/,
  );
});
