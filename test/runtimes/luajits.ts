/** The LuaJITs to test: the machine's own; in the whole matrix also those of Debian's other suites and of Ubuntu's. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { TestedBuild } from '../../scripts/runtime-support.ts';
import { describeInstallation } from './installation.ts';
import { fetchPackages, type Interpreter, inRoot, isWholeMatrix, originOf, ROOTS } from './package-roots.ts';

export interface Luajit extends Interpreter {
  title: string;
  build: TestedBuild;
}

const SUITES = ['bullseye', 'jammy', 'noble', 'trixie', 'resolute', 'sid'];
const OWN = '/usr/bin/luajit';

export function findLuajits(): Luajit[] {
  return [...ownLuajit(), ...(isWholeMatrix ? SUITES.flatMap(packagedLuajit) : [])];
}

function ownLuajit(): Luajit[] {
  const interpreter: Interpreter = { command: [OWN], place: (script) => script };
  if (existsSync(OWN)) return [describeLuajit(describeInstallation(), interpreter)];
  console.log(`skipped: ${OWN} is not installed`);
  return [];
}

function packagedLuajit(suite: string): Luajit[] {
  const root = fetchPackages(join(ROOTS, 'luajit'), suite, ['luajit']);
  return root ? [describeLuajit(originOf(suite), inRoot(root, OWN))] : [];
}

function describeLuajit(origin: string, interpreter: Interpreter): Luajit {
  const [program, ...args] = interpreter.command;
  const { stdout } = spawnSync(program, [...args, '-v'], { encoding: 'utf8' });
  const version = /LuaJIT (2\.[\w.-]+)/.exec(stdout)?.[1] ?? '';
  return {
    ...interpreter,
    title: `LuaJIT ${version} (${origin})`,
    build: { runtime: 'luajit', series: `LuaJIT ${version}`, origin, version, runtimeVersion: version },
  };
}
