import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { currentRelease } from './release.ts';

const root = mkdtempSync(join(tmpdir(), 'everyframe-release-'));
afterAll(() => rmSync(root, { recursive: true }));
const git = (...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], {
    cwd: root,
    encoding: 'utf8',
  });

it('is versioned by its tag', () => {
  git('init', '--quiet');
  writeFileSync(join(root, 'package.json'), '{"version":"0.1.0"}');
  git('add', '.');
  git('commit', '--quiet', '--message', 'one');
  const untagged = currentRelease(root, {});
  expect(untagged).toMatchObject({ version: '0.1.0', epoch: Number(git('log', '-1', '--format=%ct')) });
  expect(untagged.commit).toMatch(/^[0-9a-f]{12}$/);
  for (const tag of ['nightly', 'v1.9.0', 'v1.10.0']) git('tag', tag);
  expect(currentRelease(root, {}).version).toBe('1.10.0');
  writeFileSync(join(root, 'package.json'), '{"version":"0.1.1"}');
  expect(currentRelease(root, { SOURCE_DATE_EPOCH: '12' })).toEqual({
    version: '1.10.0',
    commit: `${untagged.commit}-changed`,
    epoch: 12,
  });
});
