/** Which release a checkout makes. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

export interface Release {
  version: string;
  commit: string;
  /** Seconds, of the commit. */
  epoch: number;
}

/**
 * A commit with a tag such as v1.2.3 is that version, others the one of package.json. Changes that are not committed are said.
 *
 * @param root of the checkout
 */
export function currentRelease(root: string, environment = process.env): Release {
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
  const [tag] = git('tag', '--points-at', 'HEAD', '--list', 'v[0-9]*', '--sort=-version:refname').split('\n');
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  const isChanged = git('status', '--porcelain', '--untracked-files=no') !== '';
  return {
    version: tag ? tag.slice(1) : version,
    commit: git('rev-parse', '--short=12', 'HEAD') + (isChanged ? '-changed' : ''),
    epoch: Number(environment['SOURCE_DATE_EPOCH'] ?? git('log', '-1', '--format=%ct')),
  };
}
