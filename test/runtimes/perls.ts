/** The Perls to test: the machine's own; in the whole matrix also those of Debian's other suites and of Ubuntu's, as program, as
 * library and for debugging, and one from source. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { TestedBuild } from '../../scripts/runtime-support.ts';
import { FOLDER } from './folder.ts';
import { describeInstallation } from './installation.ts';
import { fetchPackages, type Interpreter, inRoot, isWholeMatrix, originOf, ROOTS } from './package-roots.ts';

export interface Perl extends Interpreter {
  title: string;
  build: TestedBuild;
}

const SUITES = ['focal', 'bullseye', 'jammy', 'noble', 'trixie', 'resolute', 'sid'];
/** apt takes from there only what is asked for. */
const NEXT = { suite: 'experimental', packages: ['perl/experimental', 'libc6/sid'] };
const SOURCE = { version: '5.36.0', variant: 'unthreaded' };
const OWN = '/usr/bin/perl';
const inPlace = (path: string): Interpreter => ({ command: [path], place: (script) => script });

export function findPerls(): Perl[] {
  return [
    ...ownPerl(),
    ...(isWholeMatrix
      ? [...[...SUITES, NEXT.suite].flatMap(packagedPerl), ...debugPerl('sid'), ...buildPerl(SOURCE)]
      : []),
  ];
}

function ownPerl(): Perl[] {
  if (existsSync(OWN)) return [describePerl(describeInstallation(), inPlace(OWN))];
  console.log(`skipped: ${OWN} is not installed`);
  return [];
}

/** The program has all of Perl in it; another one has it from libperl.so, as mod_perl and PL/Perl do. */
function packagedPerl(suite: string): Perl[] {
  const root = fetchPackages(join(ROOTS, 'perl'), suite, suite === NEXT.suite ? NEXT.packages : ['perl']);
  if (!root) return [];
  const shared = readdirSync(join(root, 'usr/bin')).filter((name) => /^perl5\.\d+-/.test(name));
  return [
    describePerl(originOf(suite), inRoot(root, OWN)),
    ...shared.map((name) => describePerl(originOf(suite), inRoot(root, `/usr/bin/${name}`), 'libperl.so')),
  ];
}

/** With all that looks for errors in Perl itself. */
function debugPerl(suite: string): Perl[] {
  const root = fetchPackages(join(ROOTS, 'perl-debug'), suite, ['perl', 'perl-debug']);
  return root ? [describePerl(originOf(suite), inRoot(root, '/usr/bin/debugperl'), 'debugging')] : [];
}

function buildPerl({ version, variant }: typeof SOURCE): Perl[] {
  const folder = join(ROOTS, 'perl');
  const script = join(FOLDER, 'build-perl.sh');
  const { status, stderr } = spawnSync(script, [folder, version, variant], { encoding: 'utf8' });
  if (status === 0)
    return [describePerl('from source', inPlace(join(folder, `${version}-${variant}`, 'bin/perl')), variant)];
  console.log(
    `skipped: Perl ${version}, ${variant}, could not be built: ${stderr.trim().split('\n').at(-1)}`,
  );
  return [];
}

function describePerl(origin: string, interpreter: Interpreter, variant = ''): Perl {
  // other suites lack this machine's locale
  const command: Perl['command'] = ['env', 'LC_ALL=C', ...interpreter.command];
  const [program, ...args] = command;
  const { stdout } = spawnSync(program, [...args, '-v'], { encoding: 'utf8' });
  const version = /\(v([\d.]+)\)/.exec(stdout)?.[1] ?? '';
  const suffix = variant && `, ${variant}`;
  const series = `Perl ${version.split('.').slice(0, 2).join('.')}${suffix}`;
  return {
    ...interpreter,
    command,
    title: `Perl ${version} (${origin})${suffix}`,
    build: { runtime: 'perl', series, origin, version, runtimeVersion: version },
  };
}
