/**
 * The Erlangs to test: the machine's own, and the folders (as /usr/lib/erlang) that EVERYFRAME_ERLANGS names, separated by colons; in
 * the whole matrix also those of Debian's other suites and of Ubuntu's.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestedBuild } from '../../scripts/runtime-support.ts';
import { describeInstallation } from './installation.ts';
import { fetchPackages, type Interpreter, inRoot, isWholeMatrix, originOf, ROOTS } from './package-roots.ts';

export interface Erlang extends Interpreter {
  title: string;
  build: TestedBuild;
}

const SUITES = ['jammy', 'noble', 'trixie', 'resolute', 'sid'];
const ELIXIR_SUITES = ['jammy', 'bookworm', 'noble', 'trixie', 'resolute', 'sid'];
const LIBRARY = '/usr/lib/erlang';

export function findErlangs(): Erlang[] {
  return [
    ...ownErlang(),
    ...builtErlangs(),
    ...(isWholeMatrix ? SUITES.flatMap((suite) => packagedErlang(suite)) : []),
  ];
}

/** Arguments of a VM with one thread for Erlang that compiles a module and calls its `main`, with the atoms that follow if there
 * are any. */
export function runModule(erlang: Erlang, script: string): string[] {
  const path = JSON.stringify(erlang.place(script));
  const call =
    'case init:get_plain_arguments() of [] -> M:main(); A -> M:main([list_to_atom(X) || X <- A]) end';
  return [
    ...erlang.command,
    '-noshell',
    '-eval',
    `{ok, M, B} = compile:file(${path}, [binary]), code:load_binary(M, ${path}, B), ${call}.`,
    '-extra',
  ];
}

const ELIXIR = '/usr/lib/elixir/lib';

/** Those to test: in the whole matrix only. */
export function findElixirs(): Erlang[] {
  return isWholeMatrix ? ELIXIR_SUITES.flatMap((suite) => packagedElixir(suite)) : [];
}

/** Arguments of a VM with one thread for Elixir that runs a script. */
export function runScript(elixir: Erlang, script: string): string[] {
  const settings = ['-elixir_root', ELIXIR, '-pa', `${ELIXIR}/elixir/ebin`, '-s', 'elixir', 'start_cli'];
  return [...elixir.command, '-noshell', ...settings, '-extra', elixir.place(script)];
}

/** None, and a printed reason, where it can't be had. */
export function packagedElixir(suite: string): Erlang[] {
  const root = fetchPackages(join(ROOTS, 'elixir'), suite, ['elixir']);
  if (!root) return [];
  const origin = originOf(suite);
  const erlang = describeErlang(origin, join(root, LIBRARY), (program) => inRoot(root, program));
  const app = readFileSync(join(root, ELIXIR, 'elixir/ebin/elixir.app'), 'utf8');
  const elixir = /\{vsn,\s*"([\d.]+)/.exec(app)?.[1] ?? '';
  const series = `Elixir ${elixir.split('.').slice(0, 2).join('.')}`;
  return [
    { ...erlang, title: `Elixir ${elixir} (${origin})`, build: { ...erlang.build, series, version: elixir } },
  ];
}

const inPlace = (program: string): Interpreter => ({ command: [program], place: (script) => script });

function ownErlang(): Erlang[] {
  if (existsSync(`${LIBRARY}/bin/erl`)) return [describeErlang(describeInstallation(), LIBRARY, inPlace)];
  console.log(`skipped: ${LIBRARY} is not installed`);
  return [];
}

function builtErlangs(): Erlang[] {
  const folders = (process.env['EVERYFRAME_ERLANGS'] ?? '').split(':').filter((folder) => folder !== '');
  return folders.map((folder) => describeErlang('built from source', folder, inPlace, folder));
}

/** Erlang with these packages; none, and a printed reason, where it can't be had. */
export function packagedErlang(suite: string, name = 'erlang', packages = ['erlang-base']): Erlang[] {
  const root = fetchPackages(join(ROOTS, name), suite, packages);
  return root
    ? [describeErlang(originOf(suite), join(root, LIBRARY), (program) => inRoot(root, program))]
    : [];
}

/** Without `erl`, a script, since such a root has no shell. */
function describeErlang(
  origin: string,
  library: string,
  run: (program: string) => Interpreter,
  home = LIBRARY,
): Erlang {
  const folder = readdirSync(library).find((name) => name.startsWith('erts-'))!;
  const bin = `${home}/${folder}/bin`;
  const { command, place } = run(`${bin}/beam.smp`);
  const environment = [`ROOTDIR=${home}`, `BINDIR=${bin}`, 'EMU=beam', 'PROGNAME=erl', 'LC_ALL=C.UTF-8'];
  const settings = ['-S', '1:1', '--', '-root', home, '-bindir', bin, '-progname', 'erl', '--'];
  const whole: Interpreter['command'] = [
    'env',
    ...environment,
    ...command,
    ...settings,
    '-home',
    '/tmp',
    '--',
  ];
  const [program, ...args] = whole;
  const ask = 'io:put_chars(erlang:system_info(otp_release)), halt().';
  const release = spawnSync(program, [...args, '-noshell', '-eval', ask], { encoding: 'utf8' }).stdout;
  return {
    command: whole,
    place,
    title: `Erlang/OTP ${release} (${origin})`,
    build: {
      runtime: 'beam',
      series: `Erlang/OTP ${release}`,
      origin,
      version: `${release} (${folder})`,
      runtimeVersion: release,
    },
  };
}
