/** The programs of test/runtimes that spend 30 % of their time in one function, by the runtimes that are installed here. */
import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import type { FrameType } from '../../common/profile/model/profile.ts';
import { ROOT } from './measure.ts';

export interface SplitProgram {
  title: string;
  command: readonly string[];
  environment?: Readonly<Record<string, string>>;
  frameType: FrameType;
}

interface Interpreter {
  name: string;
  command: readonly [string, ...string[]];
  /** Arguments with which it prints its version. */
  version: readonly string[];
  /** In test/runtimes; its argument is the shape. */
  script: string;
  shapes: readonly string[];
  frameType: FrameType;
}

const RUNTIMES = `${ROOT}test/runtimes/`;

const INTERPRETERS: readonly Interpreter[] = [
  {
    ...{ name: 'Python', command: ['/usr/bin/python3'], script: 'python/split.py', frameType: 'cpython' },
    version: ['-c', 'import platform; print(platform.python_version())'],
    shapes: ['leaf', 'recursive', 'threads'],
  },
  {
    ...{ name: 'Ruby', command: ['/usr/bin/ruby'], script: 'ruby/split.rb', frameType: 'ruby' },
    version: ['-e', 'print RUBY_VERSION'],
    shapes: ['leaf', 'recursive', 'fibers'],
  },
  {
    ...{ name: 'PHP', command: ['/usr/bin/php', '-n'], script: 'php/split.php', frameType: 'php' },
    version: ['-r', 'echo PHP_VERSION;'],
    shapes: ['leaf', 'recursive', 'generators'],
  },
  {
    ...{ name: 'Perl', command: ['/usr/bin/perl'], script: 'perl/split.pl', frameType: 'perl' },
    version: ['-e', 'printf "%vd", $^V'],
    shapes: ['leaf', 'recursive', 'sort'],
  },
  {
    ...{ name: 'LuaJIT', command: ['/usr/bin/luajit'], script: 'luajit/split.lua', frameType: 'luajit' },
    version: ['-e', 'io.write(jit.version:sub(8))'],
    shapes: ['leaf', 'recursive', 'coroutines'],
  },
];

function interpreted({ name, command, version, script, shapes, frameType }: Interpreter): SplitProgram[] {
  const [program, ...args] = command;
  if (!existsSync(program)) return [];
  const text = execFileSync(program, [...args, ...version], { encoding: 'utf8' }).trim();
  return shapes.map((shape) => ({
    title: `${name} ${text}: ${shape}`,
    command: [...command, `${RUNTIMES}${script}`, shape],
    frameType,
  }));
}

const node = (shape: string, ...flags: string[]): SplitProgram => ({
  title: [`Node ${process.versions.node}: ${shape}`, ...flags].join(' '),
  command: [process.execPath, ...flags, `${RUNTIMES}v8/split.cjs`, shape],
  frameType: 'v8js',
});

/** Where the tests have put it. */
const DOTNET = `${ROOT}build/dotnet/dnv/net/runtime/.net`;

function dotnet(config: string): SplitProgram[] {
  if (!existsSync(DOTNET)) return [];
  const framework = { name: 'Microsoft.NETCore.App', version: '8.0.0' };
  writeFileSync(config, JSON.stringify({ runtimeOptions: { tfm: 'net8.0', framework } }));
  return ['leaf', 'recursive', 'async'].map((shape) => ({
    title: `.NET 8: ${shape}`,
    command: [`${DOTNET}/dotnet`, 'exec', '--runtimeconfig', config, `${RUNTIMES}dotnet/split.dll`, shape],
    environment: { DOTNET_ROOT: DOTNET, DOTNET_SYSTEM_GLOBALIZATION_INVARIANT: '1' },
    frameType: 'dotnet',
  }));
}

/** Those of a group run at once. `directory`: for what programs read. */
export const splitPrograms = (directory: string): SplitProgram[][] =>
  [
    ...INTERPRETERS.map(interpreted),
    [...['leaf', 'hot', 'recursive', 'threads'].map((shape) => node(shape)), node('hot', '--no-opt')],
    dotnet(`${directory}/dotnet.json`),
  ].filter((group) => group.length > 0);
