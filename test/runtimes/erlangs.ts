/** The Erlangs to test: the machine's own; in the whole matrix also those of Debian's other suites. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { TestedBuild } from '../../scripts/runtime-support.ts';
import { describeInstallation } from './builds.ts';
import { fetchPackages, type Interpreter, inRoot, isWholeMatrix, ROOTS } from './debian-roots.ts';

export interface Erlang extends Interpreter {
  title: string;
  build: TestedBuild;
}

const SUITES = ['trixie', 'sid'];
const LIBRARY = '/usr/lib/erlang';

export function findErlangs(): Erlang[] {
  return [...ownErlang(), ...(isWholeMatrix ? SUITES.flatMap(debianErlang) : [])];
}

/** Arguments of a VM with one thread for Erlang that compiles a module and calls its `main`, with atoms if there are any. */
export function runModule(erlang: Erlang, script: string, ...atoms: string[]): string[] {
  const list = atoms.length > 0 ? `[${atoms.join(',')}]` : '';
  const path = JSON.stringify(erlang.place(script));
  return [
    ...erlang.command,
    '-noshell',
    '-eval',
    `{ok, M, B} = compile:file(${path}, [binary]), code:load_binary(M, ${path}, B), M:main(${list}).`,
  ];
}

function ownErlang(): Erlang[] {
  if (existsSync(`${LIBRARY}/bin/erl`))
    return [describeErlang(describeInstallation(), '', { command: ['env'], place: (script) => script })];
  console.log(`skipped: ${LIBRARY} is not installed`);
  return [];
}

function debianErlang(suite: string): Erlang[] {
  const root = fetchPackages(join(ROOTS, 'erlang'), suite, ['erlang-base']);
  return root ? [describeErlang(`Debian ${suite}`, root, inRoot(root, 'env'))] : [];
}

/** Without `erl`, a script, since such a root has no shell. */
function describeErlang(origin: string, root: string, { command, place }: Interpreter): Erlang {
  const folder = readdirSync(root + LIBRARY).find((name) => name.startsWith('erts-'))!;
  const bin = `${LIBRARY}/${folder}/bin`;
  const environment = [
    `ROOTDIR=${LIBRARY}`,
    `BINDIR=${bin}`,
    'EMU=beam',
    'PROGNAME=erl',
    'HOME=/tmp',
    'LC_ALL=C.UTF-8',
  ];
  const vm = [
    `${bin}/beam.smp`,
    '-S',
    '1:1',
    '--',
    '-root',
    LIBRARY,
    '-bindir',
    bin,
    '-progname',
    'erl',
    '--',
  ];
  const whole: Interpreter['command'] = [...command, ...environment, ...vm, '-home', '/tmp', '--'];
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
