import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { processName, stackNames } from '../model/frame-name.ts';
import type { Profile } from '../model/profile.ts';
import { readProfile, readProfiles } from './formats.ts';

const read = (text: string): Profile => readProfile('a.perf', Buffer.from(text));

/** Two threads of a process, whose names look like fields. */
const THREADS = [
  { comm: 'pool-1-thread 7', tid: 18902 },
  { comm: 'x 1/2 [003]', tid: 18904 },
  { comm: '(a) [b]', tid: 18903 },
];
const FRAMES = [
  ['1185', 'leaf', '0x1c', '/tmp/g/w (1) [x]'],
  ['1eebd', 'foo(int, char (*) [3])', '0x9', '/opt/a) b'],
  ['ffffffff81000000', 'vfs_read', '0x1', '[kernel.kallsyms]'],
] as const;

interface Fields {
  comm: boolean;
  ids: '' | 'tid' | 'both';
  cpu: boolean;
  time: boolean;
  period: boolean;
  event: boolean;
  symoff: boolean;
  dso: boolean;
}

/** As perf 6.1 prints them. */
function printed({ comm, ids, cpu, time, period, event, symoff, dso }: Fields): string {
  const frames = FRAMES.map(
    ([address, name, offset, file]) =>
      `\t${address.padStart(16)} ${name}${symoff ? `+${offset}` : ''}${dso ? ` (${file})` : ''}\n`,
  ).join('');
  return THREADS.map((thread, i) => {
    const head = [
      comm ? `${thread.comm} ` : '',
      ids === 'both' ? `18899/${thread.tid} ` : ids === 'tid' ? `${String(thread.tid).padStart(5)} ` : '',
      cpu ? `[00${i}] ` : '',
      time ? `${`1825.29002${i}`.padStart(12)}: ` : '',
      period ? `${'2004008'.padStart(10)} ` : '',
      event ? 'cpu-clock:u: ' : '',
    ];
    return `${head.join('')}\n${frames}\n`;
  }).join('');
}

const flag = fc.boolean();
const anyFields: fc.Arbitrary<Fields> = fc.record({
  ids: fc.constantFrom('', 'tid', 'both'),
  ...{ comm: flag, cpu: flag, time: flag, period: flag, event: flag, symoff: flag, dso: flag },
});

describe('perf script', () => {
  it('is read with any of its fields, whatever threads and files are called', () => {
    fc.assert(
      fc.property(anyFields, (fields) => {
        const profile = read(printed(fields));
        expect(profile.samples.map(({ value }) => value).reduce((a, b) => a + b)).toBe(3);
        for (const [i, { comm, tid }] of (fields.comm || fields.ids ? THREADS : []).entries()) {
          const sample = profile.samples[i]!;
          if (fields.comm) expect(sample.threadName).toBe(comm);
          // alone, a number as wide as an ID may be one
          if (fields.ids && (fields.comm || !fields.period || fields.time)) expect(sample.tid).toBe(tid);
          if (fields.cpu) expect(sample.cpu).toBe(i);
          if (fields.time) expect(sample.timestamps).toEqual([1_825_290_020_000n + BigInt(i) * 1000n]);
        }
        const names = stackNames(profile, profile.samples[0]!.stack);
        expect(names).toEqual(['vfs_read', 'foo(int, char (*) [3])', 'leaf']);
        const files = [...profile.stacks[profile.samples[0]!.stack]!].map(
          (at) => profile.mappings[profile.locations[at]!.mapping]!.filename,
        );
        expect(files).toEqual(fields.dso ? ['/tmp/g/w (1) [x]', '/opt/a) b', 'vmlinux'] : ['', '', '']);
      }),
      { numRuns: 300 },
    );
  });

  it('reads the frame in the line of its event, source lines, and addresses without a name', () => {
    const text = `   worker 12 18901  1825.302279:    2004008 cpu-clock:      55f60c482180 leaf+0x17 (/tmp/g/w)
     (a) [b] 18903  1825.308040:    2004008 cpu-clock:      55f60c482180 [unknown] (/tmp/g/w)
`;
    const profile = read(text);
    expect(profile.samples.map(({ threadName, tid }) => [threadName, tid])).toEqual([
      ['worker 12', 18901],
      ['(a) [b]', 18903],
    ]);
    expect(stackNames(profile, profile.samples[0]!.stack)).toEqual(['leaf']);
    expect(stackNames(profile, profile.samples[1]!.stack)).toEqual(['w+0x55f60c482180']);
    const lines = read(
      'w 1 5.000000: cycles: \n\t    1185 leaf (/w)\n  w.c:6\n\t    119a mid (/w)\n  w.c:8\n\n',
    );
    expect(lines.locations.slice(1).map(({ lines }) => lines[0]!.line)).toEqual([8, 6]);
  });

  it('calls a process by its main thread, and skips records that are not samples', () => {
    const event = (comm: string, tid: number): string =>
      `${comm} 10/${tid} 5.000000: cycles: \n\t 1185 f (/w)\n\n`;
    const noise = `java 10/10 0.000000: PERF_RECORD_MMAP2 10/10: [0x1(0x2) @ 0 fe:01 1 1]: r-xp /w\n`.repeat(
      500,
    );
    const profile = read(noise + event('VM Periodic Tas', 12) + event('java', 10) + event('GC Thread#0', 13));
    expect(profile.samples).toHaveLength(3);
    expect(new Set(profile.samples.map(({ process }) => processName(profile, process)))).toEqual(
      new Set(['java']),
    );
  });

  it('takes any text in bounded time', () => {
    const part = fc.constantFrom(' ', '\t', '\n', '1', '.000000:', '[001]', 'a', ':', '/', '(', ')', '+0x1');
    fc.assert(
      fc.property(fc.array(part, { maxLength: 200 }), (parts) => {
        try {
          read(parts.join(''));
        } catch (error) {
          expect((error as Error).message).toMatch(/^a\.perf is not a /);
        }
      }),
      { numRuns: 200 },
    );
    for (const unit of [' ', '1 ', ' 1.000000:', ': ', '[001] ', '\t1 ('])
      expect(() => read(`${unit.repeat(300_000)}\n`)).not.toThrow(/timeout/);
  });
});

const hasPerf =
  spawnSync('perf', ['record', '-o', '/dev/null', '-e', 'cpu-clock', 'true'], { stdio: 'ignore' }).status ===
  0;
if (!hasPerf)
  console.log('skipped: perf records nothing here (linux-perf is not installed, or may not sample)');

describe.runIf(hasPerf)('perf itself', () => {
  it('and this reader count the same samples', () => {
    const folder = mkdtempSync(join(tmpdir(), 'everyframe-perf-'));
    try {
      const data = join(folder, 'p.data');
      const run = (...args: string[]): string =>
        spawnSync('perf', args, { encoding: 'utf8', maxBuffer: 1 << 28 }).stdout;
      const load = 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done';
      run('record', '-q', '-e', 'cpu-clock', '-F', '499', '-g', '-o', data, 'sh', '-c', load);
      const count = run('script', '-i', data, '-F', 'comm').split('\n').filter(Boolean).length;
      for (const fields of [
        'comm,tid,time,event,ip,sym,dso',
        'ip,sym',
        'comm,pid,tid,period,ip,sym,symoff',
      ]) {
        const { samples } = read(run('script', '-i', data, '-F', fields));
        expect(
          samples.reduce((sum, one) => sum + one.value, 0),
          fields,
        ).toBe(count);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

it('leaves out an event that stands for more than a value can say, and a time that no clock has', () => {
  const event = (time: string, period: string): string =>
    `x 1/1 ${time}: ${period} page-faults: \n\t1 a (/x)\n\n`;
  const text = `${event('1.000000', '9'.repeat(30))}${event('2.000000', '7')}${event('999999999999.999999', '5')}`;
  const { profiles, problems } = readProfiles('a.perf', Buffer.from(text));
  expect([...problems]).toEqual([['an event stands for more than 2^63 of them', 1]]);
  expect(profiles[0]!.samples).toMatchObject([{ value: 7, timestamps: [2_000_000_000n] }, { value: 5 }]);
});
