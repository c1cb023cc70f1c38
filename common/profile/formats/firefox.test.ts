import { describe, expect, it } from 'vitest';
import { stackNames } from '../model/frame-name.ts';
import type { Profile } from '../model/profile.ts';
import { cpuType } from '../model/profile-type.ts';
import { readProfile, writeProfile } from './formats.ts';

const read = (file: object) => readProfile('a.firefox.json', Buffer.from(JSON.stringify(file)));

/** Version 70, as profiler.firefox.com saves today: `main` calls `work` with `leaf` in line, in libfoo.so. */
const shared = {
  stringArray: ['main', 'work', 'leaf', 'a.c', 'libfoo.so'],
  sources: { length: 1, filename: [3], id: [null] },
  stackTable: { length: 3, frame: [0, 1, 2], prefixOffset: [0, 1, 1] },
  frameTable: {
    length: 3,
    func: [0, 1, 2],
    lib: [-1, 0, 0],
    address: [-1, 4096, 4096],
    inlineDepth: [0, 0, 1],
    line: [3, 5, 7],
    column: [null, null, 9],
    category: [0, 0, 0],
  },
  funcTable: { length: 3, name: [0, 1, 2], source: [0, 0, null], resource: [-1, 0, 0] },
  resourceTable: { length: 1, name: [4], host: [null], type: [1] },
};
const meta = {
  preprocessedProfileVersion: 70,
  interval: 1,
  startTime: 1000,
  categories: [{ name: 'Kernel' }],
};
const samples = { length: 3, stack: [2, 0, null], timeDeltas: [1, 0.5, 2], weight: null };
const threads = [{ name: 'Worker', processName: 'app', pid: '7', tid: 8, samples }];
const libs = [{ name: 'libfoo.so', path: '/lib/libfoo.so', codeId: 'c0ffee' }];

it('times and weights that are not numbers, or of more than 64 bits, are none', () => {
  const bad = { stack: [0, 0, 0], time: ['x', 1e300, 1], weight: null };
  const endless = `${JSON.stringify({ meta, libs, shared, threads: [{ ...threads[0], samples: { ...bad, time: [0, 1, 2] } }] }).replace('"time":[0,1,2]', '"time":[1e999,-1e999,1]')}`;
  const profile = readProfile('a.firefox.json', Buffer.from(endless));
  expect(profile.samples.reduce((sum, { value }) => sum + value, 0)).toBe(3);
  const start = read({
    meta: { ...meta, startTime: 1e300, interval: 1e300 },
    libs,
    shared,
    threads: [{ ...threads[0], samples: bad }],
  });
  expect(start.timeUnixNano).toBe(0n);
  expect(readProfile('a.otlp', writeProfile('a.otlp', start)).samples.length).toBeGreaterThan(0);
});

describe('a file of the Firefox Profiler', () => {
  const profile = read({ meta, libs, shared, threads });

  it('of version 70 has its stacks, with inlined calls', () => {
    expect(profile.samples.map(({ stack }) => stackNames(profile, stack).join(';'))).toEqual([
      'main;work;leaf',
      'main',
      '',
    ]);
    const [inner, main] = [...profile.stacks[profile.samples[0]!.stack]!].map((at) => profile.locations[at]!);
    expect(inner!.lines.map(({ line, column }) => [line, column])).toEqual([
      [7, 9],
      [5, 0],
    ]);
    expect([inner!.address, main!.address]).toEqual([4096n, 0n]);
    expect(profile.mappings[inner!.mapping]).toMatchObject({
      filename: '/lib/libfoo.so',
      gnuBuildId: 'c0ffee',
    });
    expect(profile.functions.map(({ name, filename }) => `${name} ${filename}`)).toEqual([
      ' ',
      'leaf ',
      'work a.c',
      'main a.c',
    ]);
    expect(main!.frameType).toBe('kernel');
  });

  it('has the times that its differences add up to', () => {
    expect(profile.samples.map(({ timestamps }) => timestamps)).toEqual([
      [1_001_000_000n],
      [1_001_500_000n],
      [1_003_500_000n],
    ]);
    expect(profile.samples[0]).toMatchObject({ tid: 8, threadName: 'Worker' });
  });

  it.each([
    [{ prefixOffset: [0, 5, 1] }, /stack 1 is said to be called by -4/],
    [{ prefix: [null, 1, 0], prefixOffset: undefined }, /stack 1 is said to be called by 1/],
    [{ frame: [0, 9, 2] }, /frame 9 is not among the 3/],
  ])('is refused where its stacks go round in circles or nowhere: %j', (change, message) => {
    const stackTable = { ...shared.stackTable, ...change };
    expect(() => read({ meta, libs, shared: { ...shared, stackTable }, threads })).toThrow(message);
  });
});

describe('what is written', () => {
  const write = (profile: Profile) =>
    JSON.parse(Buffer.from(writeProfile('a.firefox.json', profile)).toString());
  const folded = () => {
    const profile = readProfile('a.folded', Buffer.from('app;main;parse 3\napp;main 1\n'));
    return Object.assign(profile, { type: cpuType(10_000_000n) });
  };

  it('stands one behind the other where no times were kept, and has none when it is read back', () => {
    const profile = folded();
    const [thread] = write(profile).threads;
    expect(thread.samples.time).toEqual([0, 10, 20, 30]);
    expect(thread.samples.weight).toEqual([1, 1, 1, 1]);
    expect(read(write(profile)).samples.map(({ value, timestamps }) => [value, timestamps])).toEqual(
      profile.samples.map(({ value }) => [value, []]),
    );
  });

  it('stays bounded where a stack has many events', () => {
    const { samples } = write(readProfile('a.folded', Buffer.from('a;b 5000000\na 5\n'))).threads[0];
    expect(samples.weight).toEqual([5_000_000, 5]);
    expect(samples.time).toEqual([0, 5_000_000]);
  });

  it('says how much CPU time it stands for, if that is what was counted', () => {
    const profile = folded();
    expect(write(profile).threads[0].samples.threadCPUDelta).toEqual([1e7, 1e7, 1e7, 1e7]);
    const waits = {
      ...profile,
      type: { ...cpuType(1n), periodType: { type: 'off-cpu', unit: 'nanoseconds' } },
    };
    expect(write(waits).threads[0].samples.threadCPUDelta).toBeUndefined();
  });
});
