import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'everyframe-diff-'));
afterAll(() => rmSync(folder, { recursive: true }));
const file = (name: string, text: string): string => {
  const path = join(folder, `${name}.folded`);
  writeFileSync(path, text);
  return path;
};
const before = file('before', 'app;parse 50\napp;write 50\n');
const after = file('after', 'app;parse 70\napp;write 30\n');
const empty = file('empty', '');

// knip takes a path in one piece for an import
const PROGRAM = ['bin', 'everyframe'].join('/');
const run = (...args: string[]) => spawnSync(PROGRAM, ['diff', ...args], { encoding: 'utf8' });
const diff = (...args: string[]) => {
  const { status, stderr } = run(...args);
  return { status, stderr };
};

describe('everyframe diff as a gate', () => {
  it.each([
    [['--fail-on', '20%'], 3],
    [['--fail-on', '21%'], 0],
    [[], 0],
  ])('with %j exits with %i', (flags, status) => {
    expect(diff(before, after, ...flags)).toEqual({ status, stderr: '' });
  });

  it('says which changes may be chance', () => {
    const few = file('few', 'app;parse 7\napp;write 3\n');
    const { stdout } = run(before, few, '--fail-on', '5');
    expect(stdout).toMatch(/ ~\+20 +\+40 % .* parse\(\)\n/);
    expect(stdout).toContain(
      '~ so few samples differ by as much without any change, in one of twenty cases\n',
    );
    expect(stdout).toContain(
      '1 grew by 5 points or more, counted with all that they call (1 perhaps by chance: ~)',
    );
    expect(run(before, after, '--fail-on', '5').stdout).not.toContain('~');
    const { rows } = JSON.parse(run(before, few, '--json').stdout);
    expect(rows[0]).toMatchObject({ selfChange: 0.2, selfMayBeChance: true, mayBeChance: true });
  });

  it('fails where there is nothing to compare, rather than to pass', () => {
    expect(diff(before, empty, '--fail-on', '5')).toEqual({
      status: 1,
      stderr: `everyframe: ${empty} has no samples: --fail-on has nothing to compare\n`,
    });
    expect(diff(before, after, '--fail-on', '5', '--focus', 'nowhere').stderr).toContain(
      'before.folded has no samples that --focus and --ignore leave',
    );
    expect(diff(before, empty).status).toBe(0);
  });
});
