import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { Profile as Pprof, StringTable } from 'pprof-format';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { arbitraryProfile } from '../../../test/support/arbitrary-profile.ts';
import { frameNames, processName, stackNames } from '../model/frame-name.ts';
import { emptyMapping, emptyProcess, emptyProfile, type Profile, type Sample } from '../model/profile.ts';
import { cpuType, typeName } from '../model/profile-type.ts';
import { checkFormat, readProfile, readProfiles, writeProfile } from './formats.ts';

const FILES = [
  ...['a.pb.gz', 'a.pprof', 'a.folded', 'a.otlp', 'a.otlp.json'],
  ...['a.speedscope.json', 'a.firefox.json', 'a.trace.json'],
];

/** A pprof file whose one stack is so many times the same place, at which the last of the functions is compiled into the others. */
function inlined(names: readonly string[], calls: number): Uint8Array {
  const lines = names.map((_, i) => ({ func: names.length - i, line: 0, column: 0 }));
  return writeProfile('a.pb', {
    ...emptyProfile(),
    type: cpuType(10_000_000n),
    functions: ['', ...names].map((name) => ({ name, systemName: '', filename: '', startLine: 0 })),
    locations: [...emptyProfile().locations, { mapping: 0, address: 1n, frameType: 'native', lines }],
    stacks: [new Uint32Array(0), new Uint32Array(calls).fill(1)],
    samples: [{ stack: 1, process: 0, tid: 0, threadName: '', cpu: -1, value: 3, timestamps: [] }],
  });
}

/** `main` calls `foo` with `bar` in line, in a library; half of it enters the kernel; one frame has no name. */
function exampleProfile(): Profile {
  const line = (func: number, at: number) => ({ func, line: at, column: 0 });
  const sample = (fields: Partial<Sample>): Sample => ({
    stack: 1,
    process: 1,
    tid: 43,
    threadName: 'worker',
    cpu: 2,
    value: 3,
    timestamps: [],
    ...fields,
  });
  return {
    ...emptyProfile(),
    timeUnixNano: 1_700_000_000_000_000_000n,
    durationNano: 5_000_000_000n,
    type: cpuType(10_000_000n),
    mappings: [
      emptyMapping(),
      {
        ...emptyMapping(),
        memoryStart: 0x1000n,
        memoryLimit: 0x9000n,
        filename: '/opt/app',
        gnuBuildId: 'c0ffee',
      },
      { ...emptyMapping(), filename: 'vmlinux' },
    ],
    functions: ['', 'main', 'foo', 'bar', 'vfs_read', 'a;b\nc'].map((name) => ({
      name,
      systemName: '',
      filename: name === 'main' ? 'main.c' : '',
      startLine: 0,
    })),
    locations: [
      ...emptyProfile().locations,
      { mapping: 1, address: 0x1100n, frameType: 'native', lines: [line(1, 7)] },
      { mapping: 1, address: 0x1200n, frameType: 'native', lines: [line(3, 8), line(2, 9)] },
      { mapping: 2, address: 0x30n, frameType: 'kernel', lines: [line(4, 0)] },
      { mapping: 1, address: 0x1300n, frameType: 'native', lines: [] },
      { mapping: 0, address: 0n, frameType: 'native', lines: [line(5, 0)] },
    ],
    stacks: [[], [3, 2, 1], [4, 1], [5, 1]].map((stack) => Uint32Array.from(stack)),
    processes: [emptyProcess(), { ...emptyProcess(), pid: 42, executableName: 'app' }],
    samples: [
      sample({ timestamps: [1n, 2n, 3n].map((n) => 1_700_000_000_000_000_000n + n) }),
      sample({ stack: 2, value: 2 }),
      sample({ stack: 3, tid: 44, threadName: '', value: 1 }),
    ],
  };
}

/** Events by process and names of all frames, root first: what every format holds. */
function countByNames(profile: Profile, rename = (name: string): string => name): Record<string, number> {
  const counts: Record<string, number> = Object.create(null);
  for (const { stack, process, value } of profile.samples) {
    const names = stackNames(profile, stack, (name, location) =>
      profile.locations[location]!.frameType === 'kernel' ? `${name}_[k]` : name,
    );
    const key = [processName(profile, process), ...names].map(rename).join(';');
    counts[key] = (counts[key] ?? 0) + value;
  }
  return counts;
}

const clean = (name: string): string => name.replaceAll(';', ':').replace(/[\r\n]+/g, ' ');

describe('formats', () => {
  it.each(FILES)('%s is read back as it was written', (file) => {
    const back = readProfile(file, writeProfile(file, exampleProfile()));
    const rename = file.endsWith('folded') ? clean : undefined;
    expect(countByNames(back)).toEqual(countByNames(exampleProfile(), rename));
    expect(countByNames(back)).toMatchObject({
      'app;main;foo;bar;vfs_read_[k]': 3,
      'app;main;app+0x1300': 2,
    });
  });

  it.each(['a.pb.gz', 'a.otlp', 'a.otlp.json'])('%s keeps times, threads and where frames are', (file) => {
    const example = exampleProfile();
    const back = readProfile(file, writeProfile(file, example));
    const { timeUnixNano, durationNano, type } = example;
    expect(back).toMatchObject({ timeUnixNano, durationNano, type });
    expect(back.samples.map(({ tid, threadName, value }) => [tid, threadName, value])).toEqual([
      [43, 'worker', 3],
      [43, 'worker', 2],
      [44, '', 1],
    ]);
    const [kernel, inlined, main] = [...back.stacks[back.samples[0]!.stack]!].map(
      (at) => back.locations[at]!,
    );
    expect(back.mappings[kernel!.mapping]!.filename).toBe('vmlinux');
    expect(back.mappings[inlined!.mapping]).toEqual(example.mappings[1]);
    expect([main!.address, main!.lines[0]!.line]).toEqual([0x1100n, 7]);
    expect(back.processes.find(({ pid }) => pid === 42)!.executableName).toBe('app');
  });

  it('reads back any profile, in every format', () => {
    // folded stacks have no empty names, a trace has no place for an empty stack and for months of nanoseconds
    const file = fc.constantFrom(...FILES.filter((name) => !/folded|trace/.test(name)));
    fc.assert(
      fc.property(arbitraryProfile, file, (profile, name) => {
        // a pprof file shows the kernel's frames by their mapping, which is of one kind
        const locations = profile.locations.map((location) => ({
          ...location,
          frameType: 'native' as const,
        }));
        const one = {
          ...profile,
          locations,
          // one execution of a process has one name
          processes: profile.processes.map((p, i) => (i === 0 ? p : { ...p, pid: i })),
          mappings: profile.mappings.map((m, i) => (i === 0 ? m : { ...m, filename: 'f' })),
        };
        expect(countByNames(readProfile(name, writeProfile(name, one)))).toEqual(countByNames(one));
      }),
      { numRuns: 200 },
    );
  });

  it('reads back any profile from folded stacks, but for what the format has no room for', () => {
    fc.assert(
      fc.property(arbitraryProfile, (profile) => {
        const once = writeProfile('a.folded', profile);
        expect(writeProfile('a.folded', readProfile('a.folded', once))).toEqual(once);
        const total = (one: Profile): number => one.samples.reduce((sum, { value }) => sum + value, 0);
        expect(total(readProfile('a.folded', once))).toBe(total(profile));
      }),
      { numRuns: 200 },
    );
  });

  it('names the formats where a name is of none', () => {
    expect(() => checkFormat('profile.json')).toThrow(
      'profile.json: unknown output format: end the name with one of .pb.gz, .pprof, .pb, .folded,',
    );
  });

  it.each(['a.pb.gz', 'a.pb', 'a.otlp', 'a.otlp.json'])('says that an empty %s is empty', (name) => {
    expect(() => readProfile(name, new Uint8Array())).toThrow(`${name} is empty`);
  });

  it('takes no other protobuf message for pprof, and no array of anything for a trace', () => {
    const otlp = writeProfile('a.otlp', exampleProfile());
    expect(() => readProfile('a.pb', otlp)).toThrow('a.pb is not a .pb.gz profile: ');
    expect(() => readProfile('a.trace.json', Buffer.from('[[],{"a":1}]'))).toThrow('it is none of');
    expect(readProfile('a.json', Buffer.from('[{"ph":"M"}]')).samples).toEqual([]);
  });

  it('cuts the middle out of stacks that are too deep, and says so: both ends keep their totals', () => {
    const deep = Array.from({ length: 100_000 }, (_, i) => `f${i}`).join(';');
    const profile = readProfile('a.folded', Buffer.from(`app;${deep} 2\napp;f1 1\n`));
    const names = profile.samples.map(({ stack }) => stackNames(profile, stack));
    expect(names.map((one) => one.length)).toEqual([65_536, 1]);
    expect([names[0]![0], names[0]!.at(-1)]).toEqual(['f0', 'f99999']);
    expect(names[0]!.filter((name) => name.startsWith('[cut:'))).toHaveLength(1);
  });

  it('does not take what is left of a pprof file for all of it', () => {
    const bytes = gunzipSync(inlined(['a', 'b'], 3));
    const outcomes = Array.from(bytes, (_, end) => {
      try {
        return typeName(readProfile('a.pb', bytes.subarray(0, end)).type);
      } catch (error) {
        return (error as Error).message.replace(/.*: |string \d+ and has \d+/g, '');
      }
    });
    // between two fields behind the names of all types, nothing says that there was more
    const types = ['samples/count', 'cpu/nanoseconds'];
    expect(new Set(outcomes)).toEqual(new Set(['a.pb is empty', 'it is cut', ...types]));
  });

  it('leaves out trace events whose times are not numbers', () => {
    const trace =
      '[{"ph":"X","name":"a","ts":1e400,"dur":1},{"ph":"X","name":"b","ts":-1e308,"dur":1e308},{"ph":"X","name":"c","ts":5,"dur":3},{"ph":"B","name":"d","ts":"x"},{"ph":"E","ts":9}]';
    const { samples } = readProfile('a.trace.json', Buffer.from(trace));
    expect(samples.map(({ value }) => value)).toEqual([3000]);
  });

  it('counts calls that were compiled into each other for the depth, and cuts long chains of them', () => {
    const names = Array.from({ length: 3000 }, (_, i) => `f${i}`);
    const profile = readProfile('a.pb', inlined(names, 1));
    const [stack] = profile.samples.map((sample) => stackNames(profile, sample.stack));
    expect([stack!.length, stack![0], stack!.at(-1)]).toEqual([1024, 'f0', 'f2999']);
    expect(stack!.filter((name) => name.startsWith('[cut:'))).toHaveLength(1);
    const deep = readProfile('a.pb', inlined(names.slice(0, 100), 2000));
    const [all] = deep.samples.map((sample) => stackNames(deep, sample.stack));
    expect(all!.length).toBeGreaterThan(65_000);
    expect(all!.length).toBeLessThanOrEqual(65_536);
    expect([all![0], all!.at(-1)]).toEqual(['f0', 'f99']);
  });

  it('takes endings in any case, and a format that was named, whatever the name ends in', () => {
    const profile = exampleProfile();
    expect(countByNames(readProfile('A.PB.GZ', writeProfile('A.PB.GZ', profile)))).toEqual(
      countByNames(profile),
    );
    expect(readProfile('a.out', Buffer.from('a;b 3\n'), { from: 'folded' }).samples).toMatchObject([
      { value: 3 },
    ]);
    expect(readProfile('a.folded.gz', gzipSync('a;b 3\n')).samples).toMatchObject([{ value: 3 }]);
  });

  it('says that pictures are not profiles', () => {
    expect(() => readProfile('a.html', Buffer.from('<html>'))).toThrow(
      "a.html is for looking at, in a browser, and can't be read again: name the .pb.gz",
    );
  });

  it('says that a report is not a profile', () => {
    const report = writeProfile('a.txt', exampleProfile());
    expect(() => readProfile('a.txt', report)).toThrow(/^a\.txt is .* it is a report, .* name the \.pb\.gz/);
  });

  it.each([
    ['a.pb.gz', Buffer.from([0x1f, 0x8b, 1, 2]), /^a\.pb\.gz can't be unpacked: /],
    ['a.folded', Buffer.from('a;b 3\nno count\n'), /^a\.folded is not .*line 2 /],
    ['a.folded', Buffer.from('a;b 99999999999999999999\n'), /line 1 /],
    ['a.otlp', Buffer.from([0xff, 0xff]), /^a\.otlp is not a \.otlp profile: /],
  ])('says what is wrong with %s', (file, bytes, message) => {
    expect(() => readProfile(file, bytes)).toThrow(message);
  });
});

describe('a Chrome trace', () => {
  it('holds every event as one period, however close they were', () => {
    const example = exampleProfile();
    const trace = JSON.parse(Buffer.from(writeProfile('a.trace.json', example)).toString());
    const complete = trace.traceEvents.filter(({ ph }: { ph: string }) => ph === 'X');
    const root = complete.filter(({ name }: { name: string }) => name === 'main');
    expect(root.map(({ dur }: { dur: number }) => dur).reduce((a: number, b: number) => a + b)).toBe(60_000);
    expect(complete.map(({ name }: { name: string }) => name)).toContain('vfs_read_[k]');
  });

  it('of another program is read by the time of its own that each event took', () => {
    const traceEvents = [
      { ph: 'M', pid: 1, tid: 2, name: 'thread_name', args: { name: 'Main' } },
      { ph: 'B', pid: 1, tid: 2, name: 'outer', ts: 10 },
      { ph: 'X', pid: 1, tid: 2, name: 'inner', ts: 12, dur: 3 },
      { ph: 'E', pid: 1, tid: 2, ts: 20 },
      { ph: 'i', pid: 1, tid: 2, name: 'instant', ts: 21 },
    ];
    const profile = readProfile('a.json', Buffer.from(JSON.stringify({ traceEvents })));
    expect(countByNames(profile)).toEqual({ 'Main;outer': 7000, 'Main;outer;inner': 3000 });
  });
});

describe('perf script', () => {
  const TEXT = `# ========
# captured on: today
sh -c 1234/1235 [001]  5.000100:     250000 cpu-clock:u:
\t    7f00aa main+0x1a (/usr/bin/app)
\t    7f00bb [unknown] (/usr/lib/libc.so.6)

sh -c 1234/1235 [000]  5.010100:     250000 cpu-clock:
\tffffffff81 vfs_read+0x1 ([kernel.kallsyms])
\tffffffffc0 ext4_read+0x2 ([ext4])
\t    7f00cc foo(int, char (*) [3]) (inlined)
\t    7f00aa main+0x1a (/usr/bin/app)

swapper     0 [000]  5.020000:          1 cycles:
\tffffffff99 default_idle+0x9 ([kernel.kallsyms])
`;

  it('is read with its threads, times and kernel frames', () => {
    const profile = readProfile('a.perf', Buffer.from(TEXT));
    expect(countByNames(profile)).toEqual({
      'sh -c;libc.so.6+0x7f00bb;main': 1,
      'sh -c;main;foo(int, char (*) [3]);ext4_read_[k];vfs_read_[k]': 1,
      'swapper;default_idle_[k]': 1,
    });
    expect(profile.samples[0]).toMatchObject({ tid: 1235, cpu: 1, timestamps: [5_000_100_000n] });
    expect(profile.durationNano).toBe(19_900_000n);
  });

  it('keeps events that are not CPU time apart, by as many as each stands for', () => {
    const text = TEXT.replace('1 cycles:', '40 cache-misses:pp:').replace(
      '250000 cpu-clock:\n',
      '1 sched:sched_switch: a ==> b\n',
    );
    const { profiles, main } = readProfiles('a.perf', Buffer.from(text));
    expect(profiles.map(({ type, samples }) => [typeName(type), samples.map(({ value }) => value)])).toEqual([
      ['samples/count', [1]],
      ['sched:sched_switch/count', [1]],
      ['cache-misses/count', [40]],
    ]);
    expect(main).toBe(0);
    expect(profiles[2]!.samples[0]).toMatchObject({ timestamps: [5_020_000_000n], values: [40] });
  });

  it('is known in a .txt, and refused where it is something else', () => {
    expect(countByNames(readProfile('a.txt', Buffer.from(TEXT)))['swapper;default_idle_[k]']).toBe(1);
    expect(() => readProfile('a.perf', Buffer.from('a;b 3\n'))).toThrow(/it has no event of perf script/);
  });
});

describe('JSON', () => {
  it.each([
    ['[1', /a\.json is not a \.json profile: /],
    [
      '{"shared":{"frames":[]},"profiles":[{"type":"sampled","samples":[[7]]}]}',
      /frame 7 is not among the 0/,
    ],
    ['{"meta":{},"threads":[]}', /not a processed profile/],
    ['{"x":1}', /none of OTLP's, speedscope's/],
  ])('says what is wrong with %s', (text, message) => {
    expect(() => readProfile('a.json', Buffer.from(text))).toThrow(message);
  });

  it('reads speedscope files of other programs: opening and closing events, milliseconds', () => {
    const events = [
      { type: 'O', at: 0, frame: 0 },
      { type: 'O', at: 1, frame: 1 },
      { type: 'C', at: 3, frame: 1 },
      { type: 'C', at: 4, frame: 0 },
    ];
    const file = {
      shared: { frames: [{ name: 'a' }, { name: 'b' }] },
      profiles: [{ type: 'evented', name: 'app', unit: 'milliseconds', startValue: 0, events }],
    };
    const profile = readProfile('a.speedscope.json', Buffer.from(JSON.stringify(file)));
    expect(countByNames(profile)).toEqual({ 'app;a': 2e6, 'app;a;b': 2e6 });
  });
});

describe('speedscope files of other programs', () => {
  it('have a profile for each kind of unit: bytes and times are not a sum', () => {
    const sampled = (unit: string, weight: number) => ({
      ...{ type: 'sampled', name: unit, unit, startValue: 0, endValue: weight },
      ...{ samples: [[0]], weights: [weight] },
    });
    const profiles = [
      sampled('bytes', 4096),
      sampled('seconds', 2),
      sampled('milliseconds', 5),
      sampled('none', 3),
    ];
    const file = { shared: { frames: [{ name: 'a' }] }, profiles };
    const read = readProfiles('a.speedscope.json', Buffer.from(JSON.stringify(file)));
    expect(
      read.profiles.map(({ type, samples }) => [typeName(type), samples.map(({ value }) => value)]),
    ).toEqual([
      ['memory/bytes', [4096]],
      ['cpu/nanoseconds', [2e9, 5e6]],
      ['samples/count', [3]],
    ]);
  });
});

describe("the Firefox Profiler's processed format", () => {
  it('has tables whose columns are as long as they say, and indices inside them', () => {
    const file = JSON.parse(Buffer.from(writeProfile('a.firefox.json', exampleProfile())).toString());
    expect(file.meta).toMatchObject({ preprocessedProfileVersion: 48, interval: 10, symbolicated: true });
    for (const thread of file.threads) {
      const { stackTable, frameTable, funcTable, stringArray, samples } = thread;
      for (const table of [stackTable, frameTable, funcTable, samples, thread.markers, thread.resourceTable])
        for (const column of Object.values(table).filter(Array.isArray))
          expect(column).toHaveLength(table.length);
      stackTable.prefix.forEach(
        (prefix: number | null, i: number) => void expect(prefix ?? -1).toBeLessThan(i),
      );
      expect(Math.max(...samples.stack)).toBeLessThan(stackTable.length);
      expect(Math.max(...stackTable.frame)).toBeLessThan(frameTable.length);
      expect(Math.max(...frameTable.func)).toBeLessThan(funcTable.length);
      expect(Math.max(...funcTable.name)).toBeLessThan(stringArray.length);
      expect(Math.max(...frameTable.category)).toBeLessThan(file.meta.categories.length);
      expect(samples.time.toSorted((a: number, b: number) => a - b)).toEqual(samples.time);
      expect(typeof thread.pid).toBe('string');
    }
  });
});

const hasProtoc = spawnSync('protoc', ['--version']).status === 0;
if (!hasProtoc) console.log('skipped: protoc decodes OTLP (protobuf-compiler is not installed)');

describe.runIf(hasProtoc)('protoc', () => {
  it('decodes what is written as OTLP', () => {
    const example = exampleProfile();
    const links = [...example.links, { traceId: '41'.repeat(16), spanId: '42'.repeat(8) }];
    const linked = { ...example, links, samples: example.samples.map((one) => ({ ...one, link: 1 })) };
    const { stdout, stderr, status } = spawnSync(
      'protoc',
      [
        '--decode=opentelemetry.proto.collector.profiles.v1development.ExportProfilesServiceRequest',
        ...['-I', 'proto', 'opentelemetry/proto/collector/profiles/v1development/profiles_service.proto'],
      ],
      { input: writeProfile('a.otlp', linked), encoding: 'utf8' },
    );
    expect(status, stderr).toBe(0);
    expect(stdout).toMatch(/string_table: "vfs_read"/);
    expect(stdout).toMatch(/link_table \{\s*\}\s*link_table \{\s*trace_id: "A{16}"\s*span_id: "B{8}"\s*\}/);
    expect(stdout.match(/link_index: 1$/gm)).toHaveLength(example.samples.length);
    expect(stdout).not.toMatch(/^\s*\d+: /m);
  });
});

describe('folded stacks', () => {
  it("follow FlameGraph's convention", () => {
    const text = Buffer.from(writeProfile('a.folded', exampleProfile())).toString();
    expect(text).toBe('app;main;a:b c 1\napp;main;app+0x1300 2\napp;main;foo;bar;vfs_read_[k] 3\n');
  });

  it('are read with their counts, whatever wrote them', () => {
    const profile = readProfile(
      'a.txt',
      Buffer.from('sh;main;a b;f(int) 7\r\n\nsh 1\nsh;main;a b;f(int) 1\nx;y 0\n'),
    );
    expect(countByNames(profile)).toEqual({ 'sh;main;a b;f(int)': 8, sh: 1 });
  });
});

describe('frameNames', () => {
  it('has the innermost inlined function first, and a place where there is no name', () => {
    const profile = exampleProfile();
    expect(frameNames(profile, 2)).toEqual(['bar', 'foo']);
    expect(frameNames(profile, 4)).toEqual(['app+0x1300']);
    expect(frameNames(profile, 0)).toEqual(['[unknown]+0x0']);
    expect(stackNames(profile, 1)).toEqual(['main', 'foo', 'bar', 'vfs_read']);
  });
});

/** A stack for each function. */
function leaves(names: readonly string[], systemNameOf: (name: string) => string): Profile {
  const example = exampleProfile();
  const functions = names.map((name) => ({
    name,
    systemName: systemNameOf(name),
    filename: '',
    startLine: 0,
  }));
  const lines = names.map((_, i) => [{ func: i + 1, line: 0, column: 0 }]);
  return {
    ...example,
    functions: [example.functions[0]!, ...functions],
    locations: [
      example.locations[0]!,
      ...lines.map((line) => ({ mapping: 0, address: 0n, frameType: 'native' as const, lines: line })),
    ],
    stacks: [new Uint32Array(0), ...names.map((_, i) => Uint32Array.of(i + 1))],
    samples: names.map((_, i) => ({ ...example.samples[1]!, stack: i + 1 })),
  };
}

const hasGo = spawnSync('go', ['version']).status === 0;
if (!hasGo) console.log('skipped: go tool pprof reads what is written (go is not installed)');

describe.runIf(hasGo)('go tool pprof', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'everyframe-pprof-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  function pprof(profile: Profile, ...flags: string[]): string {
    const file = join(folder, 'a.pb.gz');
    writeFileSync(file, writeProfile(file, profile));
    const { stdout, stderr, status } = spawnSync('go', ['tool', 'pprof', ...flags, file], {
      encoding: 'utf8',
      env: { ...process.env, PPROF_TMPDIR: folder },
    });
    expect(status, stderr).toBe(0);
    return stdout;
  }

  it('reads functions, inlines and CPU time', () => {
    const top = pprof(exampleProfile(), '-top', '-sample_index=cpu');
    expect(top).toMatch(/Showing nodes accounting for 60ms, 100% of 60ms total/);
    expect(top).toMatch(/30ms 50\.00% .* vfs_read/);
    expect(top).toMatch(/ 0 +0% .* 30ms 50\.00% +bar \(inline\)/);
    expect(top).toMatch(/ 0 +0% .* 60ms +100% +main/);
    expect(pprof(exampleProfile(), '-top', '-sample_index=samples')).toMatch(/of 6 total/);
  });

  it('shows counts where the period is not known', () => {
    const top = pprof({ ...exampleProfile(), type: cpuType(0n) }, '-top');
    expect(top).toMatch(/Type: samples\n/);
    expect(top).toMatch(/ 3 50\.00% .* vfs_read/);
  });

  const WHOLE = [
    ...['<module>', '<lambda>', 'Job.<locals>.run', 'block (2 levels) in <main>', '<top (required)>'],
    ...['<internal:gem_prelude>', '<T as core::iter::Iterator>::next', '[]::at', 'f(int)::{lambda#1}'],
    ...['std::map<int, long>::at(int)', 'main.Map[go.shape.int]', 'a.b.C.<init>', '[anon]', '(anonymous)'],
  ];

  it.each([
    ['no name beside it', (): string => ''],
    ['the same beside it', (name: string): string => name],
    ['a mangled one beside it', (): string => '_ZN1a1bEv'],
  ])('shows a name whole that has %s', (_what, systemNameOf) => {
    const names = (...flags: string[]): string[] => {
      const text = pprof(leaves(WHOLE, systemNameOf), ...flags);
      return WHOLE.filter((name) => text.includes(` ${name}\n`));
    };
    expect(names('-top')).toEqual(WHOLE);
    expect(names('-peek=.')).toEqual(WHOLE);
  });

  it('has mangled names read that nobody has read so far', () => {
    const top = pprof(
      leaves(['_ZN3app4workEi', '_RNvC6_123foo3bar', '_Render'], () => ''),
      '-top',
    );
    expect([...top.matchAll(/\d% +(\S+)$/gm)].map(([, name]) => name)).toEqual([
      ...['_Render', 'app::work', '123foo::bar'].sort(),
    ]);
  });

  it('reads labels, mappings and build IDs', () => {
    const raw = pprof(exampleProfile(), '-raw');
    expect(raw).toMatch(/pid:\[42\]/);
    expect(raw).toMatch(/tid:\[43\]/);
    expect(raw).toMatch(/thread:\[worker\]/);
    expect(raw).toMatch(/process:\[app\]/);
    expect(raw).toMatch(/0x1000\/0x9000\/0x0 \/opt\/app c0ffee/);
    expect(raw).toMatch(/\[kernel\.kallsyms\]/);
  });

  it('reads stacks with frames of which nothing is known, and kernel frames without a mapping', () => {
    const example = exampleProfile();
    example.locations[3]!.mapping = 0;
    example.stacks[2] = Uint32Array.of(0, 1);
    expect(pprof(example, '-top', '-sample_index=samples')).toMatch(/of 6 total/);
    const back = readProfile('a.pb.gz', writeProfile('a.pb.gz', example));
    expect(countByNames(back)).toEqual(countByNames(example));
  });
});

describe('pprof files', () => {
  it('are gzipped', () => {
    expect(gunzipSync(writeProfile('a.pb.gz', exampleProfile())).includes('vfs_read')).toBe(true);
  });

  it('have numbers below 0, and labels of 64 bits', () => {
    const stringTable = new StringTable();
    const text = (value: string) => stringTable.dedup(value);
    const label = (key: string, num: number | bigint) => ({ key: text(key), num });
    const file = new Pprof({
      stringTable,
      sampleType: [{ type: text('samples'), unit: text('count') }],
      function: [{ id: 1, name: text('main'), startLine: -1 }],
      location: [{ id: 1, line: [{ functionId: 1, line: -1 }] }],
      sample: [
        {
          ...{ locationId: [1], value: [3] },
          label: [
            { key: text('pid'), str: text('web-1') },
            ...[label('tid', -5), label('request', 2n ** 60n), label('delta', -7)],
          ],
        },
      ],
    });
    const { functions, locations, processes, samples } = readProfile('a.pb', file.encode());
    expect([functions[1]!.startLine, locations[1]!.lines[0]!.line, samples[0]!.tid]).toEqual([0, 0, 0]);
    const { pid, attributes } = processes[samples[0]!.process]!;
    expect([pid, attributes]).toEqual([0, '["delta","-7","request","1152921504606846976"]']);
  });
});
