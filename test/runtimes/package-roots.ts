/** Packages of other suites, of Debian and of Ubuntu, each suite in a folder that programs run in by chroot. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { hasTool } from '../support/fixtures.ts';
import { FOLDER } from './folder.ts';

export const ROOTS = process.env['EVERYFRAME_RUNTIMES'] ?? join(tmpdir(), 'everyframe-runtimes');

/** `RUNTIMES=all` (npm run test:runtimes): the whole matrix. */
export const isWholeMatrix = process.env['RUNTIMES'] === 'all';

/** An interpreter that tests run. */
export interface Interpreter {
  /** Program and arguments before those of the script. */
  command: [string, ...string[]];
  /** What the script's path is for it. */
  place(script: string): string;
}

/** As in test/kernels/suite-source.sh. */
const UBUNTU_SUITES: ReadonlySet<string> = new Set(['focal', 'jammy', 'noble', 'questing', 'resolute']);

/** Who built the packages of a suite: `Ubuntu noble`. */
export function originOf(suite: string): string {
  return `${UBUNTU_SUITES.has(suite) ? 'Ubuntu' : 'Debian'} ${suite}`;
}

/** Path of the folder; undefined, and a printed reason, where it can't be had. */
export function fetchPackages(
  folder: string,
  suite: string,
  packages: readonly string[],
): string | undefined {
  if (!hasTool('apt-get')) {
    console.log(`skipped: no apt-get to download ${packages.join(', ')} of ${suite} with`);
    return undefined;
  }
  const script = join(FOLDER, 'fetch-packages.sh');
  const { status, stderr } = spawnSync(script, [folder, suite, ...packages], { encoding: 'utf8' });
  if (status === 0) return join(folder, suite);
  console.log(`skipped: ${suite} could not be downloaded: ${stderr.trim().split('\n').at(-1)}`);
  return undefined;
}

/** In a mount namespace of its own, where the root has /proc and /dev: programs read their clocks there, and /dev/null. */
const IN_ROOT = 'mount --bind /proc "$0/proc" && mount --bind /dev "$0/dev" && exec chroot "$0" "$@"';

export function inRoot(root: string, program: string): Interpreter {
  return {
    command: ['unshare', '--mount', 'sh', '-c', IN_ROOT, root, program],
    place(script) {
      const copy = join(root, 'tmp', basename(script));
      mkdirSync(join(root, 'tmp'), { recursive: true });
      // not under the feet of one that is starting
      if (!existsSync(copy) || !readFileSync(copy).equals(readFileSync(script))) copyFileSync(script, copy);
      return `/tmp/${basename(script)}`;
    },
  };
}
