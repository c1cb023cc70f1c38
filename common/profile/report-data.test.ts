import { describe, expect, it } from 'vitest';
import { readProfile, writeProfile } from './formats.ts';
import type { Profile } from './profile.ts';
import { diffProfiles, formatDiff, reportJson, select } from './report-data.ts';
import { formatReport } from './residency.ts';

const folded = (text: string): Profile => readProfile('a.folded', Buffer.from(text));
const BEFORE = folded('app;main;parse 50\napp;main;write;vfs_write_[k] 50\n');
const AFTER = folded('app;main;parse 150\napp;main;write;vfs_write_[k] 40\napp;main;log 10\n');
const OPTIONS = { by: 'function' as const, threshold: 0.01, failOn: 0.2, top: 40 };

it('lets no control character of a name reach the terminal', () => {
  const hostile = folded('app;ma\x1b[2Jin;wo\x07rk 1\n');
  expect(formatReport(hostile, 'stack')).toBe('1 samples, 2 stacks\n100% ma?[2Jin;wo?rk()\n100% ma?[2Jin\n');
  const { rows } = diffProfiles(BEFORE, hostile, OPTIONS);
  expect(rows.map(({ name }) => name)).toContain('wo\x07rk()');
  expect(formatDiff(diffProfiles(BEFORE, hostile, OPTIONS))).toMatch(/wo\?rk\(\)\n/);
});

describe('report', () => {
  it('has self counts that add up to the samples, also where it is cut', () => {
    const report = reportJson(AFTER, AFTER, 'function', 2);
    const self = report.rows.reduce((sum, row) => sum + row.self, report.truncated.self);
    expect(self).toBe(200);
    expect(report).toMatchObject({ schema: 'everyframe.report/1', samples: { file: 200, selected: 200 } });
    expect(report.rows).toEqual([
      { name: 'main()', total: 200, self: 0, share: 1 },
      { name: 'parse()', total: 150, self: 150, share: 0.75 },
    ]);
    expect(report.truncated).toEqual({ rows: 3, self: 50 });
    expect(formatReport(AFTER, 'function', 1)).toBe('200 samples, 5 functions\n100% main()\n… and 4 more\n');
  });

  it('selects samples by what is on their stacks', () => {
    const selected = select(AFTER, { focus: /^write$/, ignore: /log/ });
    expect(reportJson(AFTER, selected, 'function', 9).samples).toEqual({ file: 200, selected: 40 });
    expect(formatReport(select(AFTER, { ignore: /write/ }), 'function')).toMatch(/^160 samples, 3 functions/);
  });

  it('has short names where there are mangled ones, and selects by them', () => {
    const functions = BEFORE.functions.map((func) =>
      func.name === 'parse'
        ? { ...func, name: 'int Parser<char>::parse<int>(int)', systemName: '_ZN6ParserIcE5parseIiEEiT_' }
        : func,
    );
    const short = select({ ...BEFORE, functions }, { shortNames: true, focus: /^Parser::parse$/ });
    expect(reportJson(BEFORE, short, 'function', 9).rows).toEqual([
      { name: 'Parser::parse()', total: 50, self: 50, share: 1 },
      { name: 'main()', total: 50, self: 0, share: 1 },
    ]);
  });

  it('hides the kernel and libraries, and keeps their time', () => {
    const mine = select(BEFORE, { myCode: true });
    expect(reportJson(BEFORE, mine, 'function', 9).rows).toEqual([
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
      expect(reportJson(profile, mine, 'function', 9).rows).toEqual([
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
      ['write()', -0.3],
      ['parse()', 0.25],
      ['log()', 0.05],
    ]);
    expect(diff.regressions).toBe(1);
    expect(formatDiff(diff)).toMatch(/ \+25% {2}50% → 75% +parse\(\)\n/);
  });

  it('of a profile with itself, at any rate, is empty', () => {
    const twice = folded('app;main;parse 100\napp;main;write;vfs_write_[k] 100\n');
    expect(diffProfiles(BEFORE, twice, OPTIONS)).toMatchObject({ rows: [], regressions: 0 });
  });

  it('says how much it leaves out', () => {
    expect(diffProfiles(BEFORE, AFTER, { ...OPTIONS, top: 1 }).truncated).toEqual({ rows: 3 });
    expect(diffProfiles(BEFORE, AFTER, { ...OPTIONS, threshold: 0.1 }).rows).toHaveLength(3);
    expect(diffProfiles(BEFORE, AFTER, { ...OPTIONS, by: 'stack' }).rows[0]!.name).toBe('main();write()');
  });
});
