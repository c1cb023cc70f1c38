/** Where threads wait: programs that know how long they did, against what --off-cpu says of each of their functions. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { readProfiles } from '../common/profile/formats/formats.ts';
import { readAttributes } from '../common/profile/model/attributes.ts';
import { stackNames } from '../common/profile/model/frame-name.ts';
import type { Profile, Sample } from '../common/profile/model/profile.ts';
import { compile, hasTool, missingRights, scratchFolder } from './support/fixtures.ts';

const EVERYFRAME = join(import.meta.dirname, '../bin/everyframe');
const SECONDS = 1.5;
/** Every wait of these programs has its stack taken. */
const ALL = ['--off-cpu-threshold', '1'];

const SWITCH_PROGRAMS = [
  ...['on_switch', 'on_waking', 'on_renumbered', 'take_wait', 'report_waiting', 'take_late'],
];

interface Waits {
  /** What the program says of each function, nanoseconds. */
  own: Map<string, number>;
  /** How long it was there. */
  wallNs: number;
  profile: Profile;
  /** Exact times of threads by state. */
  times: Profile;
}

function record(kind: string, program: string, flags: string[], seconds = SECONDS): Waits {
  const file = join(scratchFolder, `${kind}.pb.gz`);
  const said = execFileSync(
    EVERYFRAME,
    ['record', '--off-cpu', ...flags, '--force', '-o', file, '--', program, kind, String(seconds)],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], timeout: 30_000 },
  );
  const own = new Map(
    said
      .trim()
      .split('\n')
      .map((line) => line.split(' '))
      .map(([name, ns]) => [name!, Number(ns)]),
  );
  const wallNs = own.get('main')!;
  own.delete('main');
  const { profiles } = readProfiles(file, readFileSync(file));
  const ofType = (name: string): Profile => profiles.find(({ type }) => type.sampleType.type === name)!;
  return { own, wallNs, profile: ofType('off_cpu'), times: ofType('thread_time') };
}

/** What samples with that function on their stack add up to, nanoseconds. */
const waited = (profile: Profile, name: string): number =>
  profile.samples
    .filter(({ stack }) => stackNames(profile, stack).includes(name))
    .reduce((sum, { value }) => sum + value, 0);

const sum = (samples: readonly Sample[]): number => samples.reduce((total, { value }) => total + value, 0);
const attribute = ({ processes }: Profile, { process }: Sample, key: string): string | undefined =>
  readAttributes(processes[process]!.attributes ?? '').get(key);

/** The state in which samples with that function on their stack were most of the time, and its share. */
function mainState(profile: Profile, name: string): [state: string, share: number] {
  const samples = profile.samples.filter(({ stack }) => stackNames(profile, stack).includes(name));
  const byState = new Map<string, number>();
  for (const sample of samples) {
    const state = attribute(profile, sample, 'thread.state')!;
    byState.set(state, (byState.get(state) ?? 0) + sample.value);
  }
  const [state, ns] = [...byState].sort((a, b) => b[1] - a[1])[0]!;
  return [state, ns / sum(samples)];
}

/** What the scheduler has counted of each thread, by TID, nanoseconds. */
function timesOnCpu(): Map<number, number> {
  const times = new Map<number, number>();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      for (const tid of readdirSync(`/proc/${pid}/task`))
        times.set(
          Number(tid),
          Number(readFileSync(`/proc/${pid}/task/${tid}/schedstat`, 'utf8').split(' ')[0]),
        );
    } catch {
      // it has ended
    }
  }
  return times;
}

const STATES: Record<string, string> = {
  sleep_short: 'blocked:sleep',
  sleep_long: 'blocked:sleep',
  hold_mutex: 'blocked:sleep',
  wait_for_mutex: 'blocked:lock',
  read_soon: 'blocked:network',
  read_late: 'blocked:network',
  sleep_moved: 'blocked:sleep',
  spin: 'runnable',
};

describe.skipIf(missingRights)('time that threads wait', () => {
  let program: string;
  beforeAll(() => {
    program = compile('waits', 'gcc', ['-O1', '-g', '-fno-optimize-sibling-calls', '-pthread'], 'waits.c');
  });

  it.each(['sleeps', 'locks', 'reads', 'crowd', 'moves'])(
    'is within 3 % of what each function says itself, in the right state: %s',
    (kind) => {
      const { own, wallNs, profile, times } = record(kind, program, ALL);
      expect(profile.type.sampleType).toEqual({ type: 'off_cpu', unit: 'nanoseconds' });
      expect(own.size).toBeGreaterThan(0);
      for (const [name, ns] of own) {
        expect(Math.abs(waited(profile, name) / ns - 1), name).toBeLessThan(kind === 'crowd' ? 0.06 : 0.03);
        // whoever sleeps waits for a CPU afterwards, on a busy machine for longer than one would like
        const [state, share] = mainState(profile, name);
        expect([name, state]).toEqual([name, STATES[name]]);
        expect(share, name).toBeGreaterThan(0.5);
      }
      const ofMain = times.samples.filter(
        ({ tid, process }) =>
          tid === times.processes[process]!.pid && times.processes[process]!.executableName === 'waits',
      );
      expect(Math.abs(sum(ofMain) / wallNs - 1)).toBeLessThan(0.01);
      const waits = (samples: readonly Sample[], of: Profile): number =>
        sum(samples.filter((sample) => attribute(of, sample, 'thread.state') !== 'running'));
      // all waits had their stack taken: the sum of samples is the total
      expect(Math.abs(sum(profile.samples) / waits(times.samples, times) - 1)).toBeLessThan(0.01);
    },
    60_000,
  );

  it('says who has ended a wait, and thereby who held a lock', () => {
    const { profile } = record('locks', program, ALL);
    const samples = profile.samples.filter(
      (sample) =>
        attribute(profile, sample, 'thread.state') === 'blocked:lock' &&
        stackNames(profile, sample.stack).includes('wait_for_mutex'),
    );
    const byHolder = samples.filter((sample) => attribute(profile, sample, 'thread.waker') === 'holder');
    expect(sum(byHolder) / sum(samples)).toBeGreaterThan(0.97);
  }, 60_000);

  it('is an event of its own where it is for locks', () => {
    const file = join(scratchFolder, 'lock.pb.gz');
    const flags = ['--event', 'lock', '--event-budget', '10000', '--force', '-o', file];
    const said = execFileSync(EVERYFRAME, ['record', ...flags, '--', program, 'locks', String(SECONDS)], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: 30_000,
    });
    const own = Number(/wait_for_mutex (\d+)/.exec(said)![1]);
    const { profiles } = readProfiles(file, readFileSync(file));
    expect(profiles.map(({ type }) => type.sampleType)).toEqual([{ type: 'lock', unit: 'nanoseconds' }]);
    const [profile] = profiles;
    const states = profile!.samples.map((sample) => attribute(profile!, sample, 'thread.state'));
    expect(new Set(states)).toEqual(new Set(['blocked:lock']));
    expect(Math.abs(waited(profile!, 'wait_for_mutex') / own - 1)).toBeLessThan(0.06);

    const idle = ['--idle', 'fold', '--', 'node', '-e', 'setTimeout(() => {}, 1000)'];
    execFileSync(EVERYFRAME, ['record', ...flags, ...idle], { stdio: 'ignore', timeout: 30_000 });
    const [folded] = readProfiles(file, readFileSync(file)).profiles;
    const ofPools = folded!.samples.filter(({ stack }) =>
      stackNames(folded!, stack).some((name) => name.startsWith('[idle: ')),
    );
    expect(sum(ofPools) / sum(folded!.samples)).toBeGreaterThan(0.5);
  }, 60_000);

  it('is right within the budget as well: of those that wait often, some stand for others', () => {
    const { own, profile } = record('locks', program, ['--off-cpu-budget', '400'], 6);
    // the standard error of so many is 3 %
    for (const [name, ns] of own) expect(Math.abs(waited(profile, name) / ns - 1), name).toBeLessThan(0.15);
  }, 60_000);

  it('costs no more than its budget, and is exact, at 100,000 switches a second', () => {
    const budget = 100;
    const file = join(scratchFolder, 'ping-pong.pb.gz');
    const flags = [
      'record',
      '-v',
      '--off-cpu',
      '--off-cpu-budget',
      String(budget),
      '--force',
      '-o',
      file,
      '--',
    ];
    const { stdout, stderr } = spawnSync(EVERYFRAME, [...flags, program, 'ping-pong', String(SECONDS)], {
      ...{ encoding: 'utf8', timeout: 30_000 },
    });
    const counter = (name: string): number => Number(new RegExp(`"bpf.${name}":(\\d+)`).exec(stderr)![1]);
    // two CPUs at most take stacks: the programs share one, what starts them may run on the other
    expect(counter('waits_sampled')).toBeLessThan(2 * budget * (SECONDS + 1));
    expect(counter('waits_sampled')).toBeGreaterThan(budget);
    expect(counter('samples_lost_ring') + counter('threads_full')).toBe(0);
    const wallNs = Number(/^main (\d+)$/m.exec(stdout)![1]);
    const { profiles } = readProfiles(file, readFileSync(file));
    const times = profiles.find(({ type }) => type.sampleType.type === 'thread_time')!;
    const ofPrograms = times.samples.filter(
      ({ process }) => times.processes[process]!.executableName === 'waits',
    );
    expect(Math.abs(sum(ofPrograms) / (2 * wallNs) - 1)).toBeLessThan(0.01);
  }, 60_000);

  it('has no thread running for longer than the scheduler says, whatever the kernel leaves out', () => {
    const file = join(scratchFolder, 'machine.pb.gz');
    // on a machine where nothing else runs all the while
    const busy = spawn(process.execPath, ['-e', 'setInterval(() => {}, 5)'], { stdio: 'ignore' });
    onTestFinished(() => void busy.kill());
    const before = timesOnCpu();
    const flags = ['record', '--off-cpu', '--force', '-d', '4s', '--symbols', 'off', '-o', file];
    execFileSync(EVERYFRAME, flags, { stdio: 'ignore', timeout: 60_000 });
    const after = timesOnCpu();
    const { profiles } = readProfiles(file, readFileSync(file));
    const times = profiles.find(({ type }) => type.sampleType.type === 'thread_time')!;
    const ran = new Map<number, number>();
    for (const sample of times.samples)
      if (attribute(times, sample, 'thread.state') === 'running')
        ran.set(sample.tid, (ran.get(sample.tid) ?? 0) + sample.value);
    const known = [...ran].filter(([tid]) => before.has(tid) && after.has(tid));
    expect(known.map(([tid]) => tid)).toContain(busy.pid);
    // the switch itself is nobody's time to the scheduler
    const tooLong = known.filter(([tid, ns]) => ns > 1.2 * (after.get(tid)! - before.get(tid)!) + 20e6);
    expect(tooLong).toEqual([]);
  }, 60_000);

  it('has no thread running on that has run another program under the number of its process', () => {
    const runs = compile('thread-exec', 'gcc', ['-O1', '-pthread'], 'thread-exec.c');
    const file = join(scratchFolder, 'thread-exec.pb.gz');
    const flags = ['record', '--off-cpu', '--force', '-o', file, '--', runs, 'sleep', '2'];
    const said = execFileSync(EVERYFRAME, flags, {
      ...{ encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], timeout: 30_000 },
    });
    const [pid, tid] = /^(\d+) (\d+)$/m.exec(said)!.slice(1).map(Number);
    const { profiles } = readProfiles(file, readFileSync(file));
    const times = profiles.find(({ type }) => type.sampleType.type === 'thread_time')!;
    const runningOf = (thread: number | undefined): number =>
      sum(
        times.samples.filter(
          (sample) => sample.tid === thread && attribute(times, sample, 'thread.state') === 'running',
        ),
      );
    expect(pid).not.toBe(tid);
    expect(runningOf(tid)).toBeLessThan(0.5e9);
    const slept = times.samples.filter(
      (sample) => sample.tid === pid && attribute(times, sample, 'thread.state') === 'blocked:sleep',
    );
    expect(sum(slept)).toBeGreaterThan(1.9e9);
  }, 60_000);

  it('has no program in the kernel unless it is asked for', () => {
    expect(hasTool('bpftool')).toBe(true);
    // of the agent itself, whose child it is: others on this machine may have some as well
    const show = 'bpftool -j prog show; grep -h prog_id /proc/$PPID/fdinfo/*';
    const programs = (flags: string[]): number => {
      const file = join(scratchFolder, 'count.pb.gz');
      const { stdout } = spawnSync(
        EVERYFRAME,
        ['record', ...flags, '--force', '-o', file, '--', 'sh', '-c', show],
        {
          ...{ encoding: 'utf8', timeout: 30_000, maxBuffer: 2 ** 26 },
        },
      );
      const [list, ...held] = stdout.split('\n');
      const ids = new Set(held.map((line) => Number(line.split(':')[1])));
      const own = (JSON.parse(list!) as { id: number; name?: string }[]).filter(({ id }) => ids.has(id));
      expect(own.length).toBeGreaterThan(0);
      return own.filter(({ name }) => SWITCH_PROGRAMS.includes(name ?? '')).length;
    };
    expect(programs([])).toBe(0);
    expect(programs(['--off-cpu'])).toBe(SWITCH_PROGRAMS.length);
  }, 60_000);
});
