/**
 * The PHPs to test: the machine's own, those of EVERYFRAME_PHPS, in the whole matrix also those of Debian's and Ubuntu's suites and
 * builds with threads from source; each with and without its JIT.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { TestedBuild } from '../../scripts/runtime-support.ts';
import { FOLDER } from './folder.ts';
import { describeInstallation } from './installation.ts';
import { fetchPackages, type Interpreter, inRoot, isWholeMatrix, originOf, ROOTS } from './package-roots.ts';

export interface Php extends Interpreter {
  title: string;
  /** 802 of 8.2. */
  number: number;
  build: TestedBuild;
  /** Of opcache.jit; '' without opcache. */
  jit: '' | 'tracing' | 'function';
  hasThreads: boolean;
  /** Where a build from source was installed. */
  prefix: string | undefined;
}

const SUITES: readonly { suite: string; version: string }[] = [
  { suite: 'bullseye', version: '7.4' },
  { suite: 'jammy', version: '8.1' },
  { suite: 'noble', version: '8.3' },
  { suite: 'trixie', version: '8.4' },
  { suite: 'sid', version: '8.4' },
  { suite: 'resolute', version: '8.5' },
  { suite: 'experimental', version: '8.5' },
  { suite: 'experimental', version: '8.6' },
];
/** From 8.5 on opcache is part of PHP. */
const hasOpcacheInside = (number: number): boolean => number >= 805;
/** With threads, which no package has. */
const SOURCES = ['7.4.33', '8.2.32', '8.5.4'];
const OWN = '/usr/bin/php';
const inPlace = (program: string): Interpreter => ({ command: [program], place: (script) => script });

export function findPhps(): Php[] {
  return [
    ...ownPhp(),
    ...builtPhps(),
    ...(isWholeMatrix ? [...SUITES.flatMap(packagedPhp), ...SOURCES.flatMap(buildPhp)] : []),
  ];
}

function ownPhp(): Php[] {
  if (existsSync(OWN)) return describePhp(describeInstallation(), inPlace(OWN));
  console.log(`skipped: ${OWN} is not installed`);
  return [];
}

/** Each folder of EVERYFRAME_PHPS (colon-separated) that has bin/php. */
function builtPhps(): Php[] {
  const folders = (process.env['EVERYFRAME_PHPS'] ?? '').split(':');
  return folders
    .map((prefix) => ({ prefix, program: join(prefix, 'bin/php') }))
    .filter(({ program }) => existsSync(program))
    .flatMap(({ prefix, program }) => describePhp('from source', inPlace(program), prefix));
}

function buildPhp(version: string): Php[] {
  const folder = join(ROOTS, 'php-zts');
  const script = join(FOLDER, 'build-php.sh');
  const { status, stderr } = spawnSync(script, [folder, version], { encoding: 'utf8' });
  const prefix = join(folder, version);
  if (status === 0) return describePhp('from source', inPlace(join(prefix, 'bin/php')), prefix);
  console.log(`skipped: PHP ${version} with threads could not be built: ${stderr.trim().split('\n').at(-1)}`);
  return [];
}

function packagedPhp({ suite, version }: (typeof SUITES)[number]): Php[] {
  const modules = hasOpcacheInside(numberOf(version)) ? [] : [`php${version}-opcache`];
  const root = fetchPackages(join(ROOTS, `php${version}`), suite, [`php${version}-cli`, ...modules]);
  return root ? describePhp(originOf(suite), inRoot(root, `/usr/bin/php${version}`)) : [];
}

function numberOf(version: string): number {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major * 100 + minor;
}

/** Without its settings, which differ by machine. */
function describePhp(origin: string, { command, place }: Interpreter, prefix?: string): Php[] {
  const [program, ...args] = command;
  const printed = (name: string): string =>
    spawnSync(program, [...args, '-n', '-r', `echo ${name};`], { encoding: 'utf8' }).stdout;
  // Ubuntu appends its own
  const version = printed('PHP_VERSION').split('-')[0]!;
  const number = numberOf(version);
  const hasThreads = printed('PHP_ZTS') === '1';
  const opcache = hasOpcacheInside(number)
    ? []
    : ['-d', `zend_extension=${printed('PHP_EXTENSION_DIR')}/opcache.so`];
  const withJit = [...opcache, '-d', 'opcache.enable_cli=1', '-d', 'opcache.jit_buffer_size=16M'];
  const modes = number >= 800 ? (['', 'tracing', 'function'] as const) : ([''] as const);
  return modes.map((jit) => {
    const variant = `${hasThreads ? ', ZTS' : ''}${jit && `, ${jit} JIT`}`;
    const settings = jit ? [...withJit, '-d', `opcache.jit=${jit}`] : [];
    return {
      command: [program, ...args, '-n', ...settings] as Interpreter['command'],
      place,
      title: `PHP ${version} (${origin})${variant}`,
      number,
      jit,
      hasThreads,
      prefix,
      build: {
        runtime: 'php',
        series: `PHP ${version.split('.').slice(0, 2).join('.')}${variant}`,
        origin,
        version,
        // of 8.6.0RC3 the agent reads 8.6.0
        runtimeVersion: /^[\d.]+/.exec(version)?.[0] ?? version,
      },
    };
  });
}
