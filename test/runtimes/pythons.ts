/** The interpreters to test: Debian's own and one that downloads quickly, or all that can be had. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { hasTool } from '../support/fixtures.ts';

export interface Python {
  title: string;
  /** 13 of 3.13. */
  minor: number;
  /** Program and arguments before those of the script. */
  command: [string, ...string[]];
  /** What the script's path is for it. */
  place(script: string): string;
}

const ROOTS = process.env['EVERYFRAME_RUNTIMES'] ?? join(tmpdir(), 'everyframe-runtimes');
const SUITES: readonly { suite: string; packages: string[]; inSample: boolean }[] = [
  { suite: 'bullseye', packages: ['python3.9'], inSample: false },
  { suite: 'trixie', packages: ['python3.13'], inSample: true },
  { suite: 'sid', packages: ['python3.13', 'python3.14', 'python3.15'], inSample: false },
];

/** `RUNTIMES=all` (npm run test:runtimes): the whole matrix. */
export const isWholeMatrix = process.env['RUNTIMES'] === 'all';

export function findPythons(): Python[] {
  return [...systemPython(), ...debianPythons(), ...(isWholeMatrix ? ownBuilds() : [])];
}

function systemPython(): Python[] {
  const path = '/usr/bin/python3';
  if (!existsSync(path)) {
    console.log('skipped: /usr/bin/python3 is not installed');
    return [];
  }
  const version = versionOf([path]);
  return [
    { title: titleOf(path, version), minor: minorOf(version), command: [path], place: (script) => script },
  ];
}

function debianPythons(): Python[] {
  if (!hasTool('apt-get')) {
    console.log('skipped: no apt-get to download other versions of Python with');
    return [];
  }
  return SUITES.filter(({ inSample }) => isWholeMatrix || inSample).flatMap(({ suite, packages }) => {
    const script = join(import.meta.dirname, 'fetch-python.sh');
    const { status, stderr } = spawnSync(script, [ROOTS, suite, ...packages], { encoding: 'utf8' });
    if (status !== 0) {
      console.log(`skipped: ${suite} could not be downloaded: ${stderr.trim().split('\n').at(-1)}`);
      return [];
    }
    return packages.map((name) => inRoot(join(ROOTS, suite), suite, name));
  });
}

function inRoot(root: string, suite: string, name: string): Python {
  const version = versionOf(['chroot', root, name]);
  return {
    title: titleOf(`${name} of ${suite}`, version),
    minor: minorOf(version),
    command: ['chroot', root, name],
    place(script) {
      const copy = join(root, 'tmp', basename(script));
      // not under the feet of one that is starting
      if (!existsSync(copy) || !readFileSync(copy).equals(readFileSync(script))) copyFileSync(script, copy);
      return `/tmp/${basename(script)}`;
    },
  };
}

/** Builds from source: each folder of EVERYFRAME_PYTHONS (colon-separated) that has bin/python3. */
function ownBuilds(): Python[] {
  const folders = (process.env['EVERYFRAME_PYTHONS'] ?? '').split(':').filter((folder) => existsSync(folder));
  const prefixes = folders.flatMap((folder) =>
    existsSync(join(folder, 'bin')) ? [folder] : readdirSync(folder).map((name) => join(folder, name)),
  );
  return prefixes
    .map((prefix) => join(prefix, 'bin/python3'))
    .filter((path) => existsSync(path))
    .map((path) => ({ path, version: versionOf([path]) }))
    .filter(({ version }) => version.startsWith('3.'))
    .map(({ path, version }) => ({
      title: titleOf(path, version),
      minor: minorOf(version),
      command: [path],
      place: (script) => script,
    }));
}

const titleOf = (name: string, version: string): string => `${name} (${version})`;
const minorOf = (version: string): number => Number(version.split('.')[1]);

const versionOf = ([program, ...args]: string[]): string =>
  spawnSync(
    program!,
    [
      ...args,
      '-c',
      'import platform, sys; print(platform.python_version() + ("t" if "free-threading" in sys.version else ""))',
    ],
    {
      encoding: 'utf8',
    },
  ).stdout?.trim() ?? '';
