import { describe, expect, it } from 'vitest';
import { readProfile, writeProfile } from '../formats/formats.ts';
import { attributesText } from '../model/attributes.ts';
import type { Profile } from '../model/profile.ts';
import { PROGRAM_LABEL } from '../model/sample-attributes.ts';
import { diffProfiles, formatDiff } from './diff-data.ts';
import { formatReport, type ReportOptions } from './inclusive-shares.ts';
import { reportJson, select } from './report-data.ts';

const report = (profile: Profile, options: ReportOptions): string =>
  [...formatReport(profile, options)].join('');

const folded = (text: string): Profile => readProfile('a.folded', Buffer.from(text));
const BEFORE = folded('app;main;parse 50\napp;main;write;vfs_write_[k] 50\n');
const AFTER = folded('app;main;parse 150\napp;main;write;vfs_write_[k] 40\napp;main;log 10\n');
const OPTIONS = { by: 'function' as const, threshold: 0.01, failOn: 0.2, top: 40 };

it('lets no control character of a name reach the terminal', () => {
  const hostile = folded('app;ma\x1b[2Jin;wo\x07rk 1\n');
  expect(report(hostile, { by: 'stack' })).toMatch(/^ +0% +100% {2}ma\?\[2Jin\n +100% +100% {3}wo\?rk\(\)$/m);
  const { rows } = diffProfiles(BEFORE, hostile, OPTIONS);
  expect(rows.map(({ name }) => name)).toContain('wo\x07rk()');
  expect(formatDiff(diffProfiles(BEFORE, hostile, OPTIONS))).toMatch(/wo\?rk\(\)\n/);
});

describe('report', () => {
  it('sums samples by their labels, those of a program under the names that it gave', () => {
    const profile = folded('a;f 1\nb;f 2\nc;f 3\n');
    profile.processes[1]!.attributes = attributesText([
      [`${PROGRAM_LABEL}who`, 'x'],
      ['thread.state', 'running'],
    ]);
    profile.processes[2]!.attributes = attributesText([[`${PROGRAM_LABEL}who`, 'y']]);
    expect(report(profile, { by: 'labels' })).toBe(
      '6 samples, 3 sets of labels\n50% [no labels]\n33.3% who=y\n16.7% who=x thread.state=running\n',
    );
  });

  it('knows the libraries of runtimes, which have no binary, as the page does', () => {
    const profile = folded('java;com.shop.Cart.add;malloc 3\nphp;handle 1\n');
    const typeOf = { 'com.shop.Cart.add': 'jvm', handle: 'php', malloc: 'native' } as const;
    for (const location of profile.locations)
      for (const { func } of location.lines) {
        const { name } = profile.functions[func]!;
        if (Object.hasOwn(typeOf, name)) location.frameType = typeOf[name as keyof typeof typeOf];
        if (name === 'handle') profile.functions[func]!.filename = '/srv/vendor/laravel/framework/x.php';
      }
    expect(report(profile, { by: 'library', sort: 'total' })).toBe(
      [
        '4 samples, 3 libraries',
        '   self   total  library',
        '    75%     75%  unknown',
        '     0%     75%  com.shop',
        '    25%     25%  laravel/framework',
        '',
      ].join('\n'),
    );
  });

  it('has self counts that add up to the samples, also where it is cut', () => {
    const json = reportJson(AFTER, AFTER, { by: 'function', top: 2 });
    const self = json.rows.reduce((sum, row) => sum + row.self, json.truncated.self);
    expect(self).toBe(200);
    expect(json).toMatchObject({ schema: 'everyframe.report/1', samples: { file: 200, selected: 200 } });
    expect(json.rows).toEqual([
      { name: 'main()', total: 200, self: 0, share: 1 },
      { name: 'parse()', total: 150, self: 150, share: 0.75 },
    ]);
    expect(json.truncated).toEqual({ rows: 3, self: 50 });
    expect(report(AFTER, { by: 'function', top: 1 })).toBe(
      [
        '200 samples, 5 functions',
        '   self   total  function',
        '    75%     75%  parse()',
        '    25%          … 4 more',
        '',
        'total: it and all that it calls',
        '100% main()',
        '… 4 more',
        '',
      ].join('\n'),
    );
    expect(report(AFTER, { by: 'function', sort: 'name', minShare: 0.1 }).split('\n').slice(2, 4)).toEqual([
      '     0%    100%  main()',
      '    75%     75%  parse()',
    ]);
  });

  it('counts neither stacks of other types of the file nor what they call', () => {
    const rows = AFTER.stacks.length;
    const [first] = AFTER.samples;
    const one = { ...AFTER, samples: [first!, { ...first!, stack: rows - 1, value: 1e-3 }] };
    expect(report(one, { by: 'stack' }).split('\n')).toEqual([
      ...['150 samples, 2 stacks', '   self   total  stack', '     0%    100%  main()'],
      ...['   100%    100%   parse()', '        0.0007%   … 1 more, 0.0007%', ''],
    ]);
  });

  it('counts processes by their names, and says how many there are', () => {
    const profile = folded('sh;f 1\nsh;g 2\napp;f 3\n');
    const head = (one: Profile): string => report(one, { by: 'process' }).split('\n')[0]!;
    expect(head(profile)).toBe('6 samples, 2 processes');
    const twice = { ...profile.processes[1]!, pid: 8 };
    const processes = [...profile.processes.map((one, i) => ({ ...one, pid: i })), twice];
    const samples = profile.samples.map((one, i) =>
      i === 0 ? { ...one, process: processes.length - 1 } : one,
    );
    expect(head({ ...profile, processes })).toBe('6 samples, 2 processes');
    expect(head({ ...profile, processes, samples })).toBe('6 samples, 2 names of 3 processes');
    expect(report(folded('sh;f 1\n'), { by: 'labels' })).toBe(
      '1 sample, 1 set of labels\n100% [no labels]\n',
    );
  });

  it.each(['function', 'stack', 'process', 'thread', 'labels', 'library', 'line'] as const)(
    'by %s is known as a report where it is read again',
    (by) => {
      for (const fileTotal of [200, 1e6]) {
        const text = [...formatReport(AFTER, { by, fileTotal })].join('');
        expect(() => readProfile('a.txt', Buffer.from(text))).toThrow('it is a report');
      }
    },
  );

  it('selects samples by what is on their stacks', () => {
    const selected = select(AFTER, { focus: /^write$/, ignore: /log/ });
    expect(reportJson(AFTER, selected, { by: 'function', top: 9 }).samples).toEqual({
      file: 200,
      selected: 40,
    });
    expect(report(select(AFTER, { ignore: /write/ }), { by: 'function' })).toMatch(
      /^160 samples, 3 functions/,
    );
  });

  it('has short names where there are mangled ones, and selects by them', () => {
    const functions = BEFORE.functions.map((func) =>
      func.name === 'parse'
        ? { ...func, name: 'int Parser<char>::parse<int>(int)', systemName: '_ZN6ParserIcE5parseIiEEiT_' }
        : func,
    );
    const short = select({ ...BEFORE, functions }, { shortNames: true, focus: /^Parser::parse$/ });
    expect(reportJson(BEFORE, short, { by: 'function', top: 9 }).rows).toEqual([
      { name: 'Parser::parse()', total: 50, self: 50, share: 1 },
      { name: 'main()', total: 50, self: 0, share: 1 },
    ]);
  });

  it('hides the kernel and libraries, and keeps their time', () => {
    const mine = select(BEFORE, { myCode: true });
    expect(reportJson(BEFORE, mine, { by: 'function', top: 9 }).rows).toEqual([
      { name: 'main()', total: 100, self: 0, share: 1 },
      { name: 'parse()', total: 50, self: 50, share: 0.5 },
      { name: 'write()', total: 50, self: 50, share: 0.5 },
    ]);
  });
});

describe('a stack that was cut', () => {
  const cut = folded('app;[cut: deeper than the limit];main 3\n');

  it.each(['a.folded', 'a.pb.gz', 'a.speedscope.json', 'a.trace.json', 'a.firefox.json', 'a.otlp'])(
    'has a marker, which is not own code, also when read from %s',
    (file) => {
      const profile = readProfile(file, writeProfile(file, cut));
      const mine = select(profile, { myCode: true });
      expect(reportJson(profile, mine, { by: 'function', top: 9 }).rows).toEqual([
        { name: 'main()', total: 3, self: 3, share: 1 },
      ]);
    },
  );
});

describe('diff', () => {
  it('compares shares, not counts', () => {
    const diff = diffProfiles(BEFORE, AFTER, OPTIONS);
    expect(diff.rows.map(({ name, change }) => [name, change])).toEqual([
      ['vfs_write()', -0.3],
      ['parse()', 0.25],
      ['log()', 0.05],
      ['write()', -0.3],
    ]);
    expect(diff.regressions).toBe(1);
    expect(formatDiff(diff)).toMatch(/^ +\+25 +\+50 % {2}50% → 75% +\+25 +\+50 % {2}50% → 75% +parse\(\)$/m);
    expect(formatDiff(diff)).toMatch(/^ +\+5 +new {2}0% → 5% .*log\(\)$/m);
  });

  it('fits a terminal of 80 columns, and is whole elsewhere', () => {
    const name = 'std::vector<std::basic_string<char>>::emplace_back(char const*, int)';
    const diff = diffProfiles(BEFORE, folded(`app;main;${name} 100\n`), OPTIONS);
    const [, ...rows] = formatDiff(diff, 80).split('\n');
    const table = rows.filter((row) => row.startsWith(' '));
    expect(Math.max(...table.map((row) => row.length))).toBe(80);
    expect(table[0]).toMatch(/^ self points +percent {2}total points +percent {2}function$/);
    expect(table).toContainEqual(expect.stringMatching(/^ +\+100 +new +\+100 +new {2}std::vector<.*…$/));
    for (const width of [undefined, 200]) expect(formatDiff(diff, width)).toContain(name);
  });

  it('has one point, and more points', () => {
    const text = (failOn: number): string => formatDiff(diffProfiles(BEFORE, AFTER, { ...OPTIONS, failOn }));
    expect(text(0.01)).toMatch(/changes by function of 1 point or more .*2 grew by 1 point or more,/s);
    expect(text(0.2)).toMatch(/1 grew by 20 points or more,/);
  });

  it('of a profile with itself, at any rate, is empty', () => {
    const twice = folded('app;main;parse 100\napp;main;write;vfs_write_[k] 100\n');
    expect(diffProfiles(BEFORE, twice, OPTIONS)).toMatchObject({ rows: [], regressions: 0 });
  });

  it('says how much it leaves out', () => {
    expect(diffProfiles(BEFORE, AFTER, { ...OPTIONS, top: 1 }).truncated).toEqual({ rows: 3 });
    expect(diffProfiles(BEFORE, AFTER, { ...OPTIONS, threshold: 0.1 }).rows).toHaveLength(3);
    expect(diffProfiles(BEFORE, AFTER, { ...OPTIONS, by: 'stack' }).rows.map(({ name }) => name)).toContain(
      'main();write()',
    );
  });
});
