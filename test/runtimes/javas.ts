/** The JVMs to test: the one that is installed, or all that Debian has, and Ubuntu's. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import type { TestedBuild } from '../../scripts/runtime-support.ts';
import { hasTool, scratchFolder } from '../support/fixtures.ts';
import { FOLDER } from './folder.ts';
import { describeInstallation } from './installation.ts';
import { fetchPackages, type Interpreter, inRoot, isWholeMatrix, originOf, ROOTS } from './package-roots.ts';

export interface Java extends Interpreter {
  title: string;
  /** 17 of 17.0.15. */
  major: number;
  build: TestedBuild;
}

const SUITES: readonly { suite: string; versions: readonly number[] }[] = [
  { suite: 'bullseye', versions: [11, 17] },
  { suite: 'noble', versions: [8, 11, 17, 21, 25] },
  { suite: 'trixie', versions: [21, 25] },
  { suite: 'resolute', versions: [17, 21, 25, 26] },
  { suite: 'sid', versions: [8, 11, 17, 21, 25, 26, 27, 28] },
];

export function findJavas(): Java[] {
  if (!hasTool('javac')) {
    console.log('skipped: javac is not installed, which compiles the programs of the tests of Java');
    return [];
  }
  return [...installedJava(), ...(isWholeMatrix ? [...ownJavas(), ...packagedJavas()] : [])];
}

/** Folder with the classes of test/runtimes/hotspot, which run on every version. */
export function compileJava(): string {
  const sources = join(FOLDER, 'hotspot');
  const classes = join(scratchFolder, 'classes');
  const files = readdirSync(sources).map((name) => join(sources, name));
  const { status, stderr } = spawnSync('javac', ['--release', '8', '-d', classes, ...files], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`javac: ${stderr}`);
  return classes;
}

/** Where the JVM finds them. */
export function placeClasses({ place }: Java, classes: string): string {
  const placed = readdirSync(classes).map((name) => dirname(place(join(classes, name))));
  return placed[0]!;
}

function installedJava(): Java[] {
  if (!hasTool('java')) return [];
  return [describeJava(describeInstallation(), { command: ['java'], place: (path) => path })];
}

/** Each folder of EVERYFRAME_JAVAS (colon-separated) that has bin/java. */
function ownJavas(): Java[] {
  const folders = (process.env['EVERYFRAME_JAVAS'] ?? '').split(':').filter((folder) => folder !== '');
  return folders
    .map((folder) => join(folder, 'bin/java'))
    .filter((path) => existsSync(path))
    .map((path) => describeJava('another build', { command: [path], place: (file) => file }));
}

function packagedJavas(): Java[] {
  return SUITES.flatMap(({ suite, versions }) => {
    const packages = versions.map((version) => `openjdk-${version}-jre-headless`);
    const root = fetchPackages(join(ROOTS, 'java'), suite, packages);
    if (!root) return [];
    return versions.map((version) => {
      const home = `/usr/lib/jvm/java-${version}-openjdk-amd64`;
      return describeJava(originOf(suite), inRoot(root, `${home}${version === 8 ? '/jre' : ''}/bin/java`));
    });
  });
}

function describeJava(origin: string, interpreter: Interpreter): Java {
  const version = versionOf(interpreter.command);
  const major = Number.parseInt(version, 10);
  return {
    ...interpreter,
    title: `Java ${version} (${origin})`,
    major,
    build: { runtime: 'hotspot', series: `Java ${major}`, origin, version, runtimeVersion: version },
  };
}

/** `17.0.15`; as the agent says it: `8.0.504` of 1.8.0_504. */
function versionOf([program, ...args]: readonly [string, ...string[]]): string {
  const { stderr } = spawnSync(program, [...args, '-version'], { encoding: 'utf8' });
  const found = /version "(?:1\.(?=8))?(\d+)(?:\.(\d+))?(?:[._](\d+))?/.exec(stderr ?? '');
  return found ? [found[1], found[2] ?? 0, found[3] ?? 0].join('.') : '0.0.0';
}
