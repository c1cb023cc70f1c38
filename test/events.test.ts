/** Events of --event: programs that know how often something happened, against what is counted and sampled. */
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readProfiles } from '../common/profile/formats/formats.ts';
import { stackNames } from '../common/profile/model/frame-name.ts';
import type { Profile } from '../common/profile/model/profile.ts';
import { compile, hasTool, missingRights, scratchFolder } from './support/fixtures.ts';

const EVERYFRAME = join(import.meta.dirname, '../bin/everyframe');
/** A stack of each event. */
const ALL = ['--event-budget', '10000'];

interface Recorded {
  profile: Profile;
  profiles: readonly Profile[];
  /** What the command itself printed, and what is said of the events. */
  said: string;
  told: string;
}

function record(event: string, command: string[], flags: string[] = []): Recorded {
  const file = join(scratchFolder, 'events.pb.gz');
  const { stdout, stderr, status } = spawnSync(
    EVERYFRAME,
    ['record', '--event', event, ...flags, '--force', '-o', file, '--', ...command],
    { encoding: 'utf8', timeout: 60_000 },
  );
  expect(status, stderr).toBe(0);
  const { profiles } = readProfiles(file, readFileSync(file));
  const profile = profiles.find(({ type }) => type.sampleType.type === event);
  expect(profile, stderr).toBeDefined();
  return { profile: profile!, profiles, said: stdout.trim(), told: stderr };
}

const total = ({ samples }: Profile): number => samples.reduce((sum, { value }) => sum + value, 0);

/** What samples with that function on their stack add up to. */
const under = (profile: Profile, name: string): number =>
  profile.samples
    .filter(({ stack }) => stackNames(profile, stack).includes(name))
    .reduce((sum, { value }) => sum + value, 0);

const exactly = (told: string): number =>
  Number(/: ([\d,]+) events?, the stacks/.exec(told)?.[1]?.replaceAll(',', ''));

function refused(event: string): string {
  const { stderr, status } = spawnSync(
    EVERYFRAME,
    ['record', '--event', event, '-d', '1', '--force', '-o', join(scratchFolder, 'none.folded')],
    { encoding: 'utf8', timeout: 60_000 },
  );
  expect(status).not.toBe(0);
  return stderr;
}

describe.skipIf(missingRights)('events', () => {
  it('in user code are counted exactly, and sampled in their shares', () => {
    const program = compile('events', 'gcc', ['-O1', '-g'], 'events.c');
    const { profile, said, told } = record(`uprobe:${program}:probed`, [program, '2']);
    const [rare, often] = said.split(' ').map(Number);
    expect([rare, often]).toEqual([60_000, 140_000]);
    expect(exactly(told)).toBe(200_000);
    // some hundred stacks, each of which stands for others
    expect(profile.samples.reduce((sum, { timestamps }) => sum + timestamps.length, 0)).toBeLessThan(20_000);
    expect(Math.abs(total(profile) / 200_000 - 1)).toBeLessThan(0.2);
    expect(Math.abs(under(profile, 'rare') / total(profile) - 0.3)).toBeLessThan(0.1);
  });

  it('are how long a function takes, with the stack of the call, also where it calls itself', () => {
    const program = compile('durations', 'gcc', ['-O1', '-g'], 'durations.c');
    const rounds = 20;
    const { profile, said, told } = record(`uretprobe:${program}:timed`, [program, `${rounds}`], ALL);
    const [inQuick = 0, inSlow = 0] = said.split(' ').map(Number);
    expect(exactly(told)).toBe(3 * rounds);
    for (const [caller, leastNs, mostNs] of [
      ['quick', rounds * 1e6, inQuick],
      ['slow', rounds * 3e6, inSlow],
    ] as const) {
      expect(under(profile, caller)).toBeGreaterThanOrEqual(leastNs);
      expect(under(profile, caller)).toBeLessThanOrEqual(mostNs);
    }
    expect(under(profile, 'main')).toBe(total(profile));

    const nested = record(`uretprobe:${program}:recursive`, [program, `${rounds}`], ALL);
    expect(exactly(nested.told)).toBe(4 * rounds);
    const depths = nested.profile.samples.map(
      ({ stack }) => stackNames(nested.profile, stack).filter((name) => name === 'recursive').length,
    );
    expect(new Set(depths)).toEqual(new Set([1, 2, 3, 4]));
    expect(under(nested.profile, 'main')).toBe(total(nested.profile));
  });

  it('of page faults are charged to who touches the pages', () => {
    const program = compile('faults', 'gcc', ['-O1', '-g'], 'faults.c');
    const { profile, told } = record('page-faults', [program], ALL);
    const touched = under(profile, 'touch');
    expect(exactly(told)).toBeGreaterThanOrEqual(2000);
    // more in a moment than the budget has: some stand for others
    expect(touched).toBeGreaterThan(1200);
    expect(touched).toBeLessThan(2800);
  });

  it.skipIf(!hasTool('g++'))('in a method of C++ go by its name, with its parameters or without', () => {
    const program = compile('events-cc', 'g++', ['-O1', '-g'], 'events.cc');
    for (const symbol of ['shop::Order::add', 'shop::Order::add(int)']) {
      const { profile, told } = record(`uprobe:${program}:${symbol}`, [program], ALL);
      expect(exactly(told)).toBe(20_000);
      expect(under(profile, 'main')).toBe(total(profile));
    }
  });

  it.skipIf(!hasTool('rustc'))('in a method of Rust go by its name', () => {
    const program = compile('events-rs', 'rustc', ['-O', '-g'], 'events.rs');
    const event = `uprobe:${program}:<events::Order as events::Sell>::add,value=arg1,if=arg1>19990`;
    const { profile, told } = record(event, [program], ALL);
    expect(told).toContain(': 9 events, the stacks of all of them');
    expect(total(profile)).toBe(9 * 19_995);
    expect(under(profile, '<events::Order as events::Sell>::add')).toBe(total(profile));
  });

  it.skipIf(!hasTool('go'))('in a function of Go go by its name, in a stripped program, too', () => {
    const program = join(scratchFolder, 'events-go');
    const source = join(import.meta.dirname, 'fixtures/events.go');
    execFileSync('go', ['build', '-ldflags=-s -w', '-o', program, source], {
      env: { ...process.env, GO111MODULE: 'off' },
    });
    const { profile, told } = record(`uprobe:${program}:main.(*order).add`, [program], ALL);
    expect(exactly(told)).toBe(20_000);
    expect(under(profile, 'main.main')).toBe(total(profile));
    // the receiver is arg0
    const sold = record(`uprobe:${program}:main.(*order).add,value=arg1,if=arg1>19990`, [program], ALL);
    expect(sold.told).toContain(': 9 events, the stacks of all of them');
    expect(total(sold.profile)).toBe(9 * 19_995);
    expect(refused(`uretprobe:${program}:main.(*order).add`)).toContain('Go moves stacks');
  });

  it("of a tracepoint have one of its fields as their value, and are chosen by another's", () => {
    const event = 'tracepoint:sched:sched_process_fork,value=parent.tgid,if=parent.tgid>0';
    const { profile, told } = record(event, ['sh', '-c', 'for i in 1 2 3 4 5; do /bin/true; done; :'], ALL);
    expect(exactly(told)).toBe(5);
    expect(total(profile)).toBe(5 * profile.processes[profile.samples[0]!.process]!.pid);
  });

  it("of a function have an argument as their value, and are chosen by another's", () => {
    const command = ['sh', '-c', 'printf 12345; printf 12; printf 123'];
    const { profile, said, told } = record(
      'uprobe:libc:write,value=arg2,unit=bytes,if=arg2:u8>2',
      command,
      ALL,
    );
    expect(said).toBe('1234512123');
    expect(told).toContain(': 2 events, the stacks of all of them');
    expect(total(profile)).toBe(8);
    expect(profile.type.sampleType.unit).toBe('bytes');
  });

  it('of memory that a program takes from the kernel are its bytes', () => {
    const { profile } = record('mmap', [compile('growth', 'gcc', ['-O1', '-g'], 'growth.c')], ALL);
    const mebibytes = ['map', 'remap', 'move_break', 'reserve'].map((name) => under(profile, name) / 2 ** 20);
    expect(mebibytes).toEqual([30, 70, 50, 0]);
    expect(profile.type.sampleType.unit).toBe('bytes');
  });

  it('that did not happen are told so', () => {
    const program = compile('events', 'gcc', ['-O1', '-g'], 'events.c');
    const file = join(scratchFolder, 'none.folded');
    const { stderr } = spawnSync(
      EVERYFRAME,
      ['record', '--event', `uprobe:${program}:probed`, '-d', '1', '--force', '-o', file],
      { encoding: 'utf8', timeout: 60_000 },
    );
    expect(stderr).toContain(`uprobe:${program}:probed did not happen`);
  });

  it('that are not there are told, with what there is', () => {
    expect(refused('page-fault')).toContain(
      'there is no event "page-fault": give one of cpu-clock, page-faults',
    );
    expect(refused('tracepoint:sched:sched_swich')).toMatch(
      /there is no tracepoint sched:sched_swich on this kernel: there are (sched:)?sched_switch/,
    );
    expect(refused('tracepoint:sched:sched_switch,value=foo')).toMatch(
      /has no field foo: give one of preempt, prev/,
    );
    expect(refused('uprobe:libc:mallok')).toMatch(/libc\.so\.6 has no function mallok/);
    expect(refused('uprobe:/no/such/file:f')).toContain('there is no file /no/such/file');
    expect(refused('usdt:libc:libc:no_such')).toMatch(/has no probe libc:no_such/);
  });
});

/** GCC for arm64 says where a variable is by a name that it keeps to itself. */
const BY_ANCHORS = process.arch === 'arm64';
const hasSdt = spawnSync('gcc', ['-E', '-include', 'sys/sdt.h', '-xc', '/dev/null']).status === 0;
if (!hasSdt) console.log('skipped: no sys/sdt.h (systemtap-sdt-dev)');

describe.skipIf(missingRights || !hasSdt)('arguments of probes', () => {
  it('are the values of events, and choose them, wherever the compiler has put them', () => {
    const calls = 100;
    const program = compile('probes', 'gcc', ['-O2', '-g'], 'probes.c');
    const sums = {
      'sell,value=arg0': (calls * (calls - 1)) / 2,
      'sell,value=arg1': calls * 250,
      'sell,value=arg2:u16,if=arg3==-7': calls * (65_536 - 5),
      'sell,value=arg0,if=arg1==400': (calls / 4) * (calls / 2 + 1),
      ...(BY_ANCHORS ? {} : { 'refuse,value=arg0': calls * 3 }),
      'restock,value=arg0': calls * 22,
    };
    const events = Object.keys(sums).map((probe) => `usdt:${program}:shop:${probe}`);
    if (BY_ANCHORS)
      expect(refused(`usdt:${program}:shop:refuse,value=arg0`)).toMatch(
        /LANCHOR\d+\]" there, which can't be read/,
      );
    const others = events.slice(1).flatMap((event) => ['--event', event]);
    const { profiles } = record(events[0]!, [program, `${calls}`], [...ALL, ...others]);
    for (const [i, [probe, sum]] of Object.entries(sums).entries()) {
      const profile = profiles.find(({ type }) => type.sampleType.type === events[i]);
      expect([probe, profile && total(profile), profile && under(profile, 'main')]).toEqual([
        probe,
        sum,
        sum,
      ]);
    }
  });

  it('that are not there are told', () => {
    expect(refused('uprobe:libc:write,value=arg9')).toMatch(
      /there is no arg9: its arguments are arg0 to arg[57]/,
    );
  });
});

const python = ['/usr/bin/python3'].find((path) => hasTool(path) && hasUsdt(path));
if (!python) console.log('skipped: Python of the system has no probes of its own');

function hasUsdt(path: string): boolean {
  return spawnSync('readelf', ['-n', path], { encoding: 'utf8' }).stdout.includes('gc__start');
}

describe.skipIf(missingRights || !python)("a program's own probes", () => {
  it('are switched on for whoever runs it, and counted', () => {
    const { profile, told } = record(
      `usdt:${python}:python:gc__start`,
      [
        python!,
        '-c',
        'import gc, time\ndef collect():\n  for i in range(300):\n    gc.collect()\n    time.sleep(0.01)\ncollect()',
      ],
      ALL,
    );
    expect(exactly(told)).toBeGreaterThanOrEqual(300);
    // the runtime is loaded when it is first met
    expect(under(profile, 'collect')).toBeGreaterThanOrEqual(100);
  });

  it('say how many objects were collected', () => {
    const found = record(
      `usdt:${python}:python:gc__done,value=arg0,unit=objects,if=arg0>1000`,
      [
        python!,
        '-c',
        'import gc, os\nclass Node: pass\ngc.collect(); gc.disable(); total = 0\nfor i in range(10):\n  for j in range(1001 + i):\n    node = Node(); node.me = node; del node\n  total += gc.collect()\nprint(total, flush=True)\nos._exit(0)',
      ],
      ALL,
    );
    expect(exactly(found.told)).toBe(10);
    expect(total(found.profile)).toBe(Number(found.said));
  });
});
