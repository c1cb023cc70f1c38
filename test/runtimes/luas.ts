/** The Luas of PUC-Rio to test: the machine's own; in the whole matrix also those of Debian's other suites. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { TestedBuild } from '../../scripts/runtime-support.ts';
import { describeInstallation } from './installation.ts';
import { fetchPackages, type Interpreter, inRoot, isWholeMatrix, ROOTS } from './package-roots.ts';

export interface Lua extends Interpreter {
  title: string;
  build: TestedBuild;
}

const SERIES = ['5.1', '5.2', '5.3', '5.4', '5.5'];
const SUITES = ['bullseye', 'trixie', 'sid'];

export function findLuas(): Lua[] {
  return [...SERIES.flatMap(ownLua), ...(isWholeMatrix ? SUITES.flatMap(debianLuas) : [])];
}

function ownLua(series: string): Lua[] {
  const program = `/usr/bin/lua${series}`;
  const interpreter: Interpreter = { command: [program], place: (script) => script };
  if (existsSync(program)) return [describeLua(describeInstallation(), interpreter)];
  console.log(`skipped: ${program} is not installed`);
  return [];
}

function debianLuas(suite: string): Lua[] {
  return SERIES.flatMap((series) => {
    const root = fetchPackages(join(ROOTS, `lua${series}`), suite, [`lua${series}`]);
    return root ? [describeLua(`Debian ${suite}`, inRoot(root, `/usr/bin/lua${series}`))] : [];
  });
}

function describeLua(origin: string, interpreter: Interpreter): Lua {
  const [program, ...args] = interpreter.command;
  const { stdout, stderr } = spawnSync(program, [...args, '-v'], { encoding: 'utf8' });
  // 5.1 says it with its errors
  const version = /Lua (5\.\d+\.\d+)/.exec(stdout + stderr)?.[1] ?? '';
  return {
    ...interpreter,
    title: `Lua ${version} (${origin})`,
    build: { runtime: 'lua', series: `Lua ${version.slice(0, 3)}`, origin, version, runtimeVersion: version },
  };
}
