import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { writeProfile } from '../../common/profile/formats/formats.ts';
import { APPROXIMATE_LINES } from '../../common/profile/model/approximate-lines.ts';
import { attributesText } from '../../common/profile/model/attributes.ts';
import { emptyProcess, emptyProfile } from '../../common/profile/model/profile.ts';

const folder = mkdtempSync(join(tmpdir(), 'everyframe-report-'));
afterAll(() => rmSync(folder, { recursive: true }));
const file = (name: string, content: string | Uint8Array): string => {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
};
const full = file('full.folded', 'app;main;parse 50\napp;main;write 30\n');

// knip takes a path in one piece for an import
const PROGRAM = ['bin', 'everyframe'].join('/');
const report = (...args: string[]) => {
  const { status, stdout, stderr } = spawnSync(PROGRAM, ['report', ...args], { encoding: 'utf8' });
  return { status, head: stdout.split('\n')[0], stderr };
};

describe('everyframe report', () => {
  it('says in its first line of how many samples it shows some', () => {
    const head = '30 of 80 samples, 1 stack';
    expect(report(full, '--focus', 'write')).toEqual({ status: 0, head, stderr: '' });
    expect(report(full, '--ignore', 'parse', '--by', 'function').head).toBe('30 of 80 samples, 2 functions');
    expect(report(full, '--focus', 'main').head).toBe('80 samples, 2 stacks');
  });

  it('takes the word of `query` for how many lines it prints', () => {
    const [top, limit] = ['--top', '--limit'].map((flag) => report(full, '--by', 'function', flag, '1'));
    expect(limit).toEqual(top);
    expect(limit).toMatchObject({ status: 0, stderr: '' });
  });

  it('says why it shows none', () => {
    const empty = file('empty.folded', '');
    expect(report(empty)).toEqual({
      ...{ status: 0, head: '0 samples, 0 stacks' },
      stderr: `everyframe: ${empty} has no samples of samples/count: there were none while it was recorded\n`,
    });
    expect(report(full, '--focus', 'nowhere', '--ignore', 'parse')).toEqual({
      ...{ status: 0, head: '0 of 80 samples, 0 stacks' },
      stderr: `everyframe: of 80 samples in ${full}, none is left by --focus and --ignore\n`,
    });
  });

  it('names itself where it says on standard error what it shows', () => {
    const process = {
      ...emptyProcess(),
      ...{ pid: 7, executableName: 'java', attributes: attributesText([APPROXIMATE_LINES]) },
    };
    const sample = { stack: 0, process: 1, tid: 7, threadName: '', cpu: -1, value: 3, timestamps: [] };
    const profile = { ...emptyProfile(), processes: [emptyProcess(), process], samples: [sample] };
    const java = file('java.otlp', writeProfile('java.otlp', profile));
    expect(report(java, '--my-code').stderr.split('\n')).toEqual([
      expect.stringMatching(/^everyframe: Lines and inlined callees of java /),
      expect.stringMatching(/^everyframe: 3 samples have no frame of your own code: /),
      '',
    ]);
  });
});
