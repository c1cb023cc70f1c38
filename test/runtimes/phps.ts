/** The PHPs to test: the machine's own, or those of all of Debian's suites; each with and without its JIT. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { TestedBuild } from '../../scripts/runtime-support.ts';
import { describeInstallation } from './builds.ts';
import { fetchPackages, type Interpreter, inRoot, isWholeMatrix, ROOTS } from './debian-roots.ts';

export interface Php extends Interpreter {
  title: string;
  /** 802 of 8.2. */
  number: number;
  build: TestedBuild;
  /** Of opcache.jit; '' without opcache. */
  jit: '' | 'tracing' | 'function';
}

const SUITES: readonly { suite: string; version: string }[] = [
  { suite: 'bullseye', version: '7.4' },
  { suite: 'trixie', version: '8.4' },
  { suite: 'sid', version: '8.4' },
];
const OWN = '/usr/bin/php';

export function findPhps(): Php[] {
  return [...ownPhp(), ...(isWholeMatrix ? SUITES.flatMap(debianPhp) : [])];
}

function ownPhp(): Php[] {
  if (existsSync(OWN))
    return describePhp(describeInstallation(), { command: [OWN], place: (script) => script });
  console.log(`skipped: ${OWN} is not installed`);
  return [];
}

function debianPhp({ suite, version }: (typeof SUITES)[number]): Php[] {
  const root = fetchPackages(join(ROOTS, 'php'), suite, [`php${version}-cli`, `php${version}-opcache`]);
  return root ? describePhp(`Debian ${suite}`, inRoot(root, `/usr/bin/php${version}`)) : [];
}

/** Without its settings, which differ by machine. */
function describePhp(origin: string, { command, place }: Interpreter): Php[] {
  const [program, ...args] = command;
  const printed = (name: string): string =>
    spawnSync(program, [...args, '-n', '-r', `echo ${name};`], { encoding: 'utf8' }).stdout;
  const version = printed('PHP_VERSION');
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const withJit = [
    '-d',
    `zend_extension=${printed('PHP_EXTENSION_DIR')}/opcache.so`,
    '-d',
    'opcache.enable_cli=1',
  ];
  const modes = major >= 8 ? (['', 'tracing', 'function'] as const) : ([''] as const);
  return modes.map((jit) => {
    const settings = jit ? [...withJit, '-d', 'opcache.jit_buffer_size=16M', '-d', `opcache.jit=${jit}`] : [];
    return {
      command: [program, ...args, '-n', ...settings] as Interpreter['command'],
      place,
      title: `PHP ${version} (${origin})${jit && `, ${jit} JIT`}`,
      number: major * 100 + minor,
      jit,
      build: {
        runtime: 'php',
        series: `PHP ${major}.${minor}${jit && `, ${jit} JIT`}`,
        origin,
        version,
        runtimeVersion: version,
      },
    };
  });
}
