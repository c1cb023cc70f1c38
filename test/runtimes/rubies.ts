/** The Rubies to test: the machine's own, or those of all of Debian's suites; where there is a JIT, with it, too. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { TestedBuild } from '../../scripts/runtime-support.ts';
import { describeInstallation } from './builds.ts';
import { fetchPackages, type Interpreter, inRoot, isWholeMatrix, ROOTS } from './package-roots.ts';

export interface Ruby extends Interpreter {
  title: string;
  /** 301 of 3.1. */
  number: number;
  build: TestedBuild;
  hasJit: boolean;
}

const SUITES: readonly { suite: string; version: string }[] = [
  { suite: 'bullseye', version: '2.7' },
  { suite: 'trixie', version: '3.3' },
  { suite: 'sid', version: '3.3' },
];
const OWN = '/usr/bin/ruby';

export function findRubies(): Ruby[] {
  return [...ownRuby(), ...(isWholeMatrix ? SUITES.flatMap(debianRuby) : [])];
}

function ownRuby(): Ruby[] {
  if (existsSync(OWN))
    return describeRuby(describeInstallation(), { command: [OWN], place: (script) => script });
  console.log(`skipped: ${OWN} is not installed`);
  return [];
}

function debianRuby({ suite, version }: (typeof SUITES)[number]): Ruby[] {
  const root = fetchPackages(join(ROOTS, 'ruby'), suite, [`ruby${version}`]);
  return root ? describeRuby(`Debian ${suite}`, inRoot(root, `/usr/bin/ruby${version}`)) : [];
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
