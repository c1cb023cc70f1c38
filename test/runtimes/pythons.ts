/** The interpreters to test: Debian's own and one that downloads quickly, or all that can be had. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import type { TestedBuild } from '../../scripts/runtime-support.ts';
import { FOLDER } from './folder.ts';
import { describeInstallation } from './installation.ts';
import { fetchPackages, type Interpreter, inRoot, isWholeMatrix, originOf, ROOTS } from './package-roots.ts';

export interface Python extends Interpreter {
  title: string;
  /** 13 of 3.13. */
  minor: number;
  build: TestedBuild;
}

const SUITES: readonly { suite: string; packages: string[]; inSample: boolean }[] = [
  { suite: 'bullseye', packages: ['python3.9'], inSample: false },
  { suite: 'focal', packages: ['python3.8'], inSample: false },
  { suite: 'jammy', packages: ['python3.10'], inSample: false },
  { suite: 'noble', packages: ['python3.12'], inSample: false },
  { suite: 'trixie', packages: ['python3.13'], inSample: true },
  { suite: 'resolute', packages: ['python3.14'], inSample: false },
  { suite: 'sid', packages: ['python3.13', 'python3.14', 'python3.15'], inSample: false },
];

/** What no package has, from the source that Debian's mirror has; minutes each, once. */
const SOURCES: readonly { version: string; variant: 'free-threaded' | 'musl' }[] = [
  { version: '3.13.5', variant: 'free-threaded' },
  { version: '3.14.7', variant: 'free-threaded' },
  { version: '3.15.0rc2', variant: 'free-threaded' },
  { version: '3.13.5', variant: 'musl' },
];
const FROM_SOURCE = 'built from source';

export function findPythons(): Python[] {
  return [
    ...systemPython(),
    ...packagedPythons(),
    ...(isWholeMatrix ? [...SOURCES.flatMap(buildPython), ...ownBuilds()] : []),
  ];
}

function systemPython(): Python[] {
  const path = '/usr/bin/python3';
  if (existsSync(path)) return [describePython(describeInstallation(), inPlace(path))];
  console.log('skipped: /usr/bin/python3 is not installed');
  return [];
}

const inPlace = (path: string): Interpreter => ({ command: [path], place: (script) => script });

function packagedPythons(): Python[] {
  return SUITES.filter(({ inSample }) => isWholeMatrix || inSample).flatMap(({ suite, packages }) => {
    const root = fetchPackages(ROOTS, suite, packages);
    return root ? packages.map((name) => describePython(originOf(suite), inRoot(root, name))) : [];
  });
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
    .map((path) => describePython(FROM_SOURCE, inPlace(path)))
    .filter(({ build }) => build.version.startsWith('3.'));
}

function buildPython({ version, variant }: (typeof SOURCES)[number]): Python[] {
  const folder = join(ROOTS, 'python');
  const script = join(FOLDER, 'build-python.sh');
  const { status, stderr } = spawnSync(script, [folder, version, variant], { encoding: 'utf8' });
  if (status !== 0) {
    const reason = stderr.trim().split('\n').at(-1);
    console.log(`skipped: Python ${version}, ${variant}, could not be built: ${reason}`);
    return [];
  }
  const interpreter = inPlace(join(folder, `${version}-${variant}`, 'bin/python3'));
  return [describePython(variant === 'musl' ? `${FROM_SOURCE}, musl` : FROM_SOURCE, interpreter)];
}

function describePython(origin: string, interpreter: Interpreter): Python {
  const version = versionOf(interpreter.command);
  const minor = Number.parseInt(version.split('.')[1]!, 10);
  const series = `Python 3.${minor}${version.endsWith('t') ? 't' : ''}`;
  return {
    ...interpreter,
    title: `Python ${version} (${origin})`,
    minor,
    build: { runtime: 'cpython', series, origin, version, runtimeVersion: version.replace(/rc\d+/, '') },
  };
}

const VERSION =
  'import platform, sys; print(platform.python_version() + ("t" if "free-threading" in sys.version else ""))';

const versionOf = ([program, ...args]: readonly [string, ...string[]]): string =>
  spawnSync(program, [...args, '-c', VERSION], { encoding: 'utf8' }).stdout?.trim() ?? '';
