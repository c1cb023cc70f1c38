/** The Perls to test: the machine's own, or those of all of Debian's suites. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { TestedBuild } from '../../scripts/runtime-support.ts';
import { describeInstallation } from './builds.ts';
import { fetchPackages, type Interpreter, inRoot, isWholeMatrix, ROOTS } from './debian-roots.ts';

export interface Perl extends Interpreter {
  title: string;
  build: TestedBuild;
}

const SUITES = ['bullseye', 'trixie', 'sid'];
const OWN = '/usr/bin/perl';

export function findPerls(): Perl[] {
  return [...ownPerl(), ...(isWholeMatrix ? SUITES.flatMap(debianPerl) : [])];
}

function ownPerl(): Perl[] {
  if (existsSync(OWN))
    return [describePerl(describeInstallation(), { command: [OWN], place: (script) => script })];
  console.log(`skipped: ${OWN} is not installed`);
  return [];
}

function debianPerl(suite: string): Perl[] {
  const root = fetchPackages(join(ROOTS, 'perl'), suite, ['perl']);
  return root ? [describePerl(`Debian ${suite}`, inRoot(root, OWN))] : [];
}

function describePerl(origin: string, interpreter: Interpreter): Perl {
  // other suites lack this machine's locale
  const command: Perl['command'] = ['env', 'LC_ALL=C', ...interpreter.command];
  const [program, ...args] = command;
  const { stdout } = spawnSync(program, [...args, '-v'], { encoding: 'utf8' });
  const version = /\(v([\d.]+)\)/.exec(stdout)?.[1] ?? '';
  const series = `Perl ${version.split('.').slice(0, 2).join('.')}`;
  return {
    ...interpreter,
    command,
    title: `Perl ${version} (${origin})`,
    build: { runtime: 'perl', series, origin, version, runtimeVersion: version },
  };
}
