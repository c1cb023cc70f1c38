/**
 * The Rubies to test: the machine's own, in the whole matrix also those of Debian's and Ubuntu's suites, and builds with YJIT from
 * source; where there is a JIT, with it, too.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { TestedBuild } from '../../scripts/runtime-support.ts';
import { FOLDER } from './folder.ts';
import { describeInstallation } from './installation.ts';
import { fetchPackages, type Interpreter, inRoot, isWholeMatrix, originOf, ROOTS } from './package-roots.ts';

export interface Ruby extends Interpreter {
  title: string;
  /** 301 of 3.1. */
  number: number;
  build: TestedBuild;
  hasJit: boolean;
}

const SUITES: readonly { suite: string; version: string }[] = [
  { suite: 'bullseye', version: '2.7' },
  { suite: 'jammy', version: '3.0' },
  { suite: 'noble', version: '3.2' },
  { suite: 'trixie', version: '3.3' },
  { suite: 'sid', version: '3.3' },
  { suite: 'experimental', version: '3.4' },
];
/** With YJIT, which packages lack from 3.2 on. */
const SOURCES = ['3.2.3', '3.3.8', '3.4.5'];
const OWN = '/usr/bin/ruby';
const inPlace = (program: string): Interpreter => ({ command: [program], place: (script) => script });

export function findRubies(): Ruby[] {
  return [
    ...ownRuby(),
    ...(isWholeMatrix ? [...SUITES.flatMap(packagedRuby), ...SOURCES.flatMap(buildRuby)] : []),
  ];
}

function ownRuby(): Ruby[] {
  if (existsSync(OWN)) return describeRuby(describeInstallation(), inPlace(OWN));
  console.log(`skipped: ${OWN} is not installed`);
  return [];
}

function packagedRuby({ suite, version }: (typeof SUITES)[number]): Ruby[] {
  const root = fetchPackages(join(ROOTS, 'ruby'), suite, [`ruby${version}`]);
  return root ? describeRuby(originOf(suite), inRoot(root, `/usr/bin/ruby${version}`)) : [];
}

function buildRuby(version: string): Ruby[] {
  const folder = join(ROOTS, 'ruby-yjit');
  const script = join(FOLDER, 'build-ruby.sh');
  const { status, stderr } = spawnSync(script, [folder, version], { encoding: 'utf8' });
  if (status === 0)
    return describeRuby('from source', inPlace(join(folder, version, 'bin/ruby'))).filter(
      ({ hasJit }) => hasJit,
    );
  console.log(`skipped: Ruby ${version} with YJIT could not be built: ${stderr.trim().split('\n').at(-1)}`);
  return [];
}

const JIT = ['--yjit', '--yjit-call-threshold=2'];

function describeRuby(origin: string, { command, place }: Interpreter): Ruby[] {
  const [program, ...args] = command;
  const run = (...more: string[]) => spawnSync(program, [...args, ...more], { encoding: 'utf8' });
  const version = run('-e', 'print RUBY_VERSION').stdout;
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const hasJit = run(...JIT, '-e', 'exit RubyVM::YJIT.enabled?').status === 0;
  return (hasJit ? [false, true] : [false]).map((jit) => ({
    command: [program, ...args, ...(jit ? JIT : [])] as Interpreter['command'],
    place,
    title: `Ruby ${version} (${origin})${jit ? ', YJIT' : ''}`,
    number: major * 100 + minor,
    hasJit: jit,
    build: {
      runtime: 'ruby',
      series: `Ruby ${major}.${minor}${jit ? ', YJIT' : ''}`,
      origin,
      version,
      runtimeVersion: version,
    },
  }));
}
