import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { arbitraryProfile } from '../../test/support/arbitrary-profile.ts';
import { checkFormat, readProfile, writeProfile } from './formats.ts';
import { frameNames, processName, stackNames } from './frame-name.ts';
import { emptyMapping, emptyProcess, emptyProfile, type Profile, type Sample } from './profile.ts';

const FILES = ['a.pb.gz', 'a.pprof', 'a.folded', 'a.txt', 'a.otlp'];

/** `main` calls `foo` with `bar` in line, in a library; half of it enters the kernel; one frame has no name. */
function exampleProfile(): Profile {
  const line = (func: number, at: number) => ({ func, line: at, column: 0 });
  const sample = (fields: Partial<Sample>): Sample => ({
    stack: 1,
    process: 1,
    tid: 43,
    threadName: 'worker',
    cpu: 2,
    count: 3,
    timestamps: [],
    ...fields,
  });
  return {
    ...emptyProfile(),
    timeUnixNano: 1_700_000_000_000_000_000n,
    durationNano: 5_000_000_000n,
    period: 10_000_000n,
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
      sample({ stack: 2, count: 2 }),
      sample({ stack: 3, tid: 44, threadName: '', count: 1 }),
    ],
  };
}

/** Events by process and names of all frames, root first: what every format holds. */
function countByNames(profile: Profile, rename = (name: string): string => name): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { stack, process, count } of profile.samples) {
    const names = stackNames(profile, stack, (name, location) =>
      profile.locations[location]!.frameType === 'kernel' ? `${name}_[k]` : name,
    );
    const key = [processName(profile, process), ...names].map(rename).join(';');
    counts[key] = (counts[key] ?? 0) + count;
  }
  return counts;
}

const clean = (name: string): string => name.replaceAll(';', ':').replace(/[\r\n]+/g, ' ');

describe('formats', () => {
  it.each(FILES)('%s is read back as it was written', (file) => {
    const back = readProfile(file, writeProfile(file, exampleProfile()));
    const rename = file.endsWith('folded') || file.endsWith('txt') ? clean : undefined;
    expect(countByNames(back)).toEqual(countByNames(exampleProfile(), rename));
    expect(countByNames(back)).toMatchObject({
      'app;main;foo;bar;vfs_read_[k]': 3,
      'app;main;app+0x1300': 2,
    });
  });

  it.each(['a.pb.gz', 'a.otlp'])('%s keeps times, threads and where frames are', (file) => {
    const example = exampleProfile();
    const back = readProfile(file, writeProfile(file, example));
    const { timeUnixNano, durationNano, period, sampleType, periodType } = example;
    expect(back).toMatchObject({ timeUnixNano, durationNano, period, sampleType, periodType });
    expect(back.samples.map(({ tid, threadName, count }) => [tid, threadName, count])).toEqual([
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
    const file = fc.constantFrom('a.pb.gz', 'a.otlp');
    fc.assert(
      fc.property(arbitraryProfile, file, (profile, name) => {
        // a pprof file tells the kernel's frames by their mapping, which is of one kind
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
        const total = (one: Profile): number => one.samples.reduce((sum, { count }) => sum + count, 0);
        expect(total(readProfile('a.folded', once))).toBe(total(profile));
      }),
      { numRuns: 200 },
    );
  });

  it('names the formats where a name is of none', () => {
    expect(() => checkFormat('profile.json')).toThrow(
      'profile.json: its ending names no known format: use one of .pb.gz, .pprof, .folded, .txt, .otlp',
    );
  });

  it.each([
    ['a.pb.gz', Buffer.from([0x1f, 0x8b, 1, 2]), /^a\.pb\.gz is no \.pb\.gz profile: /],
    ['a.folded', Buffer.from('a;b 3\nno count\n'), /^a\.folded is no .*line 2 /],
    ['a.folded', Buffer.from('a;b 99999999999999999999\n'), /line 1 /],
    ['a.otlp', Buffer.from([0xff, 0xff]), /^a\.otlp is no \.otlp profile: /],
  ])('says what is wrong with %s', (file, bytes, message) => {
    expect(() => readProfile(file, bytes)).toThrow(message);
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

const hasGo = spawnSync('go', ['version']).status === 0;
if (!hasGo) process.stderr.write('skipped: go tool pprof reads what is written (go is not installed)\n');

describe.runIf(hasGo)('go tool pprof', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'everyframe-pprof-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  function pprof(profile: Profile, ...flags: string[]): string {
    const file = join(folder, 'a.pb.gz');
    writeFileSync(file, writeProfile(file, profile));
    const { stdout, stderr, status } = spawnSync('go', ['tool', 'pprof', '-symbolize=none', ...flags, file], {
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
});
