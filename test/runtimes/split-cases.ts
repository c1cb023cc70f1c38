/** Programs that spend 30 % of their CPU time in a() and 70 % in b(), by the builds of each runtime that there are to test. */
import { join } from 'node:path';
import process from 'node:process';
import type { FrameType } from '../../common/profile/model/profile.ts';
import type { TestedBuild } from '../../scripts/runtime-support.ts';
import { findDotnets, runAssembly } from './dotnets.ts';
import { findErlangs, runModule } from './erlangs.ts';
import { FOLDER } from './folder.ts';
import { compileJava, findJavas, type Java, placeClasses } from './javas.ts';
import { findLuajits } from './luajits.ts';
import { findLuas } from './luas.ts';
import { findNodes } from './nodes.ts';
import { type Interpreter, isWholeMatrix } from './package-roots.ts';
import { findPerls } from './perls.ts';
import { findPhps } from './phps.ts';
import { findPythons } from './pythons.ts';
import { findRubies } from './rubies.ts';

export interface SplitCase {
  title: string;
  /** Program and arguments before the shape. */
  command: readonly string[];
  environment?: Readonly<Record<string, string>>;
  build: TestedBuild;
  shapes: readonly string[];
  frameType: FrameType;
}

interface Build extends Interpreter {
  title: string;
  build: TestedBuild;
}

/** Of those that are found, the first one only where the matrix is not asked for. */
const some = <T>(found: readonly T[]): readonly T[] => found.slice(0, isWholeMatrix ? undefined : 1);

const scripted = (
  builds: readonly Build[],
  script: string,
  shapes: readonly string[],
  frameType: FrameType,
): SplitCase[] =>
  builds.map(({ title, command, place, build }) => ({
    ...{ title, build, shapes, frameType },
    command: [...command, place(join(FOLDER, script))],
  }));

const COROUTINES = ['leaf', 'recursive', 'coroutines'];

function luajitCases(): SplitCase[] {
  const cases = scripted(findLuajits(), 'luajit/split.lua', COROUTINES, 'luajit');
  if (!isWholeMatrix) return cases;
  const interpreted = cases.map(({ title, command, build, ...rest }) => ({
    ...rest,
    title: `${title}, interpreter`,
    command: [...command, 'interpreter'],
    build: { ...build, series: `${build.series}, interpreter` },
  }));
  return cases.flatMap((compiled, i) => [compiled, interpreted[i]!]);
}

/** JDK 8 has no safepoint in a loop that counts, and notes none of its places unless it is asked to; nor does C2 for arm64. */
const PLACES_OF_LOOPS = ['-XX:+UnlockDiagnosticVMOptions', '-XX:+DebugNonSafepoints'];

function javaCases(): SplitCase[] {
  const javas = findJavas();
  if (javas.length === 0) return [];
  const classes = compileJava();
  const flagsOf = ({ major }: Java): string[] =>
    major === 8 || process.arch === 'arm64' ? PLACES_OF_LOOPS : [];
  return javas.map((java) => ({
    ...{ title: java.title, build: java.build, shapes: ['leaf', 'recursive'], frameType: 'jvm' },
    command: [...java.command, ...flagsOf(java), '-Xmx64m', '-cp', placeClasses(java, classes), 'Split'],
  }));
}

/** By the name of the runtime: each finds its builds, downloading what RUNTIMES=all asks for. */
export const SPLIT_CASES = {
  python: () => scripted(some(findPythons()), 'python/split.py', ['leaf', 'recursive', 'threads'], 'cpython'),
  ruby: () => scripted(some(findRubies()), 'ruby/split.rb', ['leaf', 'recursive', 'fibers'], 'ruby'),
  php: () =>
    scripted(
      findPhps().filter(({ jit }) => isWholeMatrix || jit === 'tracing'),
      'php/split.php',
      ['leaf', 'recursive', 'generators'],
      'php',
    ),
  // the library is the program's code once more, and so is what looks for errors
  perl: () =>
    scripted(
      findPerls().filter(({ title }) => !/, (?:libperl|debugging)/.test(title)),
      'perl/split.pl',
      ['leaf', 'recursive', 'sort'],
      'perl',
    ),
  luajit: luajitCases,
  lua: () => scripted(findLuas(), 'luajit/split.lua', COROUTINES, 'lua'),
  v8: () => scripted(some(findNodes()), 'v8/split.cjs', ['leaf', 'hot', 'recursive', 'threads'], 'v8js'),
  dotnet: () =>
    some(findDotnets()).map((dotnet) => ({
      ...{ title: dotnet.title, build: dotnet.build, shapes: ['leaf', 'recursive', 'async'] },
      ...{ frameType: 'dotnet', ...runAssembly(dotnet, 'split.dll') },
    })),
  hotspot: javaCases,
  beam: () =>
    findErlangs().map((erlang) => ({
      ...{ title: erlang.title, build: erlang.build, shapes: ['leaf', 'recursive', 'closures'] },
      ...{ frameType: 'beam', command: runModule(erlang, join(FOLDER, 'beam/split.erl')) },
    })),
} satisfies Readonly<Record<string, () => SplitCase[]>>;
