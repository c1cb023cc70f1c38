/** Programs with known stacks, by every toolchain and option that shapes unwind information. */
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { scratchFolder } from '../support/fixtures.ts';
import type { Stack } from '../support/recording.ts';
import { goEnvironment } from './go-releases.ts';
import { countOf, isChain, type KnownProgram, root } from './known-stacks.ts';

const SOURCES = join(import.meta.dirname, 'programs');
const FIXTURES = join(import.meta.dirname, '../fixtures');
const START = /^_start(_c)?$/;

/** Where it spins all calls are there; on its way down or up (some 0.1 % of the time) it has as many as it has. */
const deep =
  (calls: number, name: RegExp, rootName = START) =>
  (stack: Stack) => {
    const found = countOf(stack, name);
    const isAtTheBottom = countOf(stack, /(^|::)spin$/) > 0;
    return (isAtTheBottom ? found === calls : found <= calls) && rootName.test(root(stack));
  };

let built = 0;
/** One name for each command line. */
const outName = (): string => join(scratchFolder, `toolchain-${built++}`);

function buildWith(tool: string, flags: readonly string[], ...sources: string[]): string {
  const out = outName();
  execFileSync(tool, [...flags, '-o', out, ...sources], { stdio: ['ignore', 'ignore', 'pipe'] });
  return out;
}

const atTheBottomOfC = (stack: Stack, back: boolean): boolean =>
  countOf(stack, back ? /^c_recurse$/ : /^c_only$/) === 10;

const recursion = (tool: string, ...flags: string[]): KnownProgram => ({
  title: `${tool} ${flags.join(' ')}`,
  tools: [tool],
  build: () => [buildWith(tool, flags, join(FIXTURES, 'deep.c')), '40'],
  isWhole: deep(40, /^recurse/),
});

const place = (
  title: string,
  tool: string,
  flags: string[],
  sources: string[],
  args: string[],
  isWhole: KnownProgram['isWhole'],
): KnownProgram => ({
  title: `${title}, ${tool} ${flags.join(' ')}`,
  tools: [tool],
  build: () => [buildWith(tool, flags, ...sources.map((name) => join(SOURCES, name))), ...args],
  isWhole,
});

const OPTIMISED: readonly string[][] = [
  ...['-O0', '-Og', '-O1', '-O2', '-O3', '-Ofast', '-Os'].map((level) => [level]),
  ['-O2', '-flto'],
  ['-O3', '-flto'],
];

/** -fno-asynchronous-unwind-tables: .debug_frame has the rules, or else the machine code itself. */
const c = ['gcc', 'clang'].flatMap((tool) => [
  ...OPTIMISED.flatMap((flags) => [
    recursion(tool, ...flags, '-fomit-frame-pointer'),
    recursion(tool, ...flags, '-fno-omit-frame-pointer'),
  ]),
  recursion(tool, '-O2', '-g', '-fomit-frame-pointer', '-fno-asynchronous-unwind-tables'),
  recursion(tool, '-O2', '-fno-omit-frame-pointer', '-fno-asynchronous-unwind-tables'),
  recursion(tool, '-O2', '-fomit-frame-pointer', '-fno-asynchronous-unwind-tables'),
  recursion(tool, '-O2', '-static'),
  recursion(tool, '-O2', '-static-pie'),
  recursion(tool, '-O2', '-no-pie'),
  recursion(tool, '-O2', '-fcf-protection=full'),
  recursion(tool, '-O2', '-fstack-protector-all'),
  recursion(tool, '-O2', '-Wl,-z,now', '-Wl,-z,relro', '-s', '-rdynamic'),
]);

const musl = [
  ['-O2'],
  ['-O2', '-static'],
  ['-O2', '-static', '-static-pie', '-fPIE'],
  ['-O0', '-static', '-g'],
].map((flags) => recursion('musl-gcc', ...flags));

const frames = ['gcc', 'clang'].flatMap((tool) =>
  ['alloca', 'large', 'aligned', 'array'].flatMap((kind) =>
    ['-O0', '-O2'].map((level) =>
      place(`frames: ${kind}`, tool, [level], ['frames.c'], [kind], deep(20, /^recurse_/)),
    ),
  ),
);

const isCold = (stack: Stack): boolean => {
  const [above, below] = [countOf(stack, /^recurse/), countOf(stack, /^unlikely/)];
  const isWhole = countOf(stack, /^spin$/) === 0 || (above === 13 && below === 12);
  return isWhole && above - below <= 1 && START.test(root(stack));
};

const endsWithCall = (stack: Stack): boolean =>
  isChain(stack, /^main$/, START) &&
  (countOf(stack, /^spin$/) === 0 || isChain(stack, /^spin$/, /^give_up$/, /^last_of_all$/, /^has_end/));

const places = ['gcc', 'clang'].flatMap((tool) =>
  ['-O2', '-Os'].flatMap((level) => [
    place('code moved to .text.unlikely', tool, [level], ['places.c'], ['cold'], isCold),
    place('calls that never return', tool, [level], ['places.c'], ['end'], endsWithCall),
  ]),
);

const ASSEMBLY = [/^spin$/, /^by_state$/, /^through_state/, /^by_other_stack$/, /^through_other_stack/];
const assembly = ['gcc', 'clang'].map((tool) =>
  place('assembly with CFI', tool, ['-O2'], ['assembly.c', 'assembly.S'], [], (stack) => {
    const above = countOf(stack, /^spin$/) > 0 ? ASSEMBLY : [];
    const inside = [...above, /^by_register$/, /^through_register/, /^by_push$/];
    return isChain(stack, ...(above.length > 0 ? inside : []), /^main$/, START);
  }),
);

const exceptions = ['g++', 'clang++'].flatMap((tool) =>
  ['search', 'cleanup'].map((kind) =>
    place(`exceptions: ${kind}`, tool, ['-O2'], ['exceptions.cc'], [kind], (stack) => {
      const calls = countOf(stack, /recurse/);
      // a destructor runs in the frame of its function: those below are gone by then
      return calls <= 30 && isChain(stack, /main/, START);
    }),
  ),
);

const rust = [
  ['-O'],
  ['-C', 'opt-level=3', '-C', 'lto=fat'],
  ['-O', '-C', 'panic=abort'],
  ['-O', '-g', '-C', 'panic=abort', '-C', 'force-unwind-tables=no'],
  ['-C', 'opt-level=z'],
].map(
  (flags): KnownProgram => ({
    title: `rustc ${flags.join(' ')}`,
    tools: ['rustc'],
    build: () => [buildWith('rustc', flags, join(FIXTURES, 'deep.rs')), '40'],
    isWhole: deep(40, /recurse/),
  }),
);

/** `tool`: go as it is installed, or one of its releases. */
function buildGo(tool: string, name: string, flags: readonly string[], cgo: boolean): string {
  const out = outName();
  const folder = join(scratchFolder, 'go');
  mkdirSync(folder, { recursive: true });
  const env = { ...goEnvironment(tool), CGO_ENABLED: cgo ? '1' : '0' };
  execFileSync('go', ['build', ...flags, '-o', out, name], {
    cwd: folder,
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  return out;
}

const GO_ROOT = /^runtime\.goexit/;
const goProgram = (tool: string, flags: string[]): KnownProgram => ({
  title: [tool, 'build', ...flags].join(' '),
  tools: [tool],
  build: () => [buildGo(tool, join(FIXTURES, 'deep.go'), flags, false)],
  isWhole: (stack) =>
    GO_ROOT.test(root(stack))
      ? countOf(stack, /^main\.leaf$/) === 0 || countOf(stack, /^main\.recurse$/) === 40
      : isRuntimeThread(stack),
});
const go = [[], ['-ldflags=-s -w'], ['-ldflags=-w'], ['-buildmode=pie'], ['-gcflags=all=-N -l']].map(
  (flags) => goProgram('go', flags),
);

/** A thread of Go's scheduler, not of the program. */
const isRuntimeThread = (stack: Stack): boolean =>
  countOf(stack, /^main\./) === 0 &&
  /^(runtime\.(mstart|rt0_go|mcall|morestack)|_start|_rt0_|clone|.*libc\.so)/.test(root(stack));

const cgoProgram = (tool: string, back: boolean, flags: string[]): KnownProgram => ({
  title: [
    `${tool === 'go' ? '' : `${tool} `}cgo,`,
    back ? 'and back into Go' : 'C at the bottom',
    ...flags,
  ].join(' '),
  tools: [tool, 'gcc'],
  build: () => [buildGo(tool, join(SOURCES, 'cgo.go'), flags, true), ...(back ? ['back'] : [])],
  isWhole: (stack) => {
    if (!GO_ROOT.test(root(stack))) return isRuntimeThread(stack);
    const bottom = back ? /^main\.spin$/ : /c_spin/;
    if (countOf(stack, bottom) === 0) return countOf(stack, /^main\.recurse$/) <= 10;
    const isStripped = flags.length > 0;
    return countOf(stack, /^main\.recurse$/) === 10 && (isStripped || atTheBottomOfC(stack, back));
  },
});
const cgo = [[], ['-ldflags=-s -w']].flatMap((flags) =>
  [false, true].map((back) => cgoProgram('go', back, flags)),
);

/** The last of each release that changed what a table of functions or a crossing into C looks like, and those between. */
const GO_RELEASES = ['1.16.15', '1.17.13', '1.18.10', '1.19.13', '1.20.14', '1.21.13', '1.22.12', '1.23.12']
  .concat('1.24.6', '1.25.1', '1.26.0', '1.27.1')
  .map((version) => `go${version}`);
const goReleases = GO_RELEASES.flatMap((tool) => [
  goProgram(tool, ['-ldflags=-s -w']),
  cgoProgram(tool, true, []),
]);

export const ALL_PROGRAMS: readonly KnownProgram[] = [
  ...c,
  ...musl,
  ...frames,
  ...places,
  ...assembly,
  ...exceptions,
  ...rust,
  ...go,
  ...cgo,
  ...goReleases,
];

/** What `npm test` has time for: a few of each kind. */
const SAMPLE = [
  /^gcc -O3 -flto -fomit-frame-pointer$/,
  /^gcc -O2 -g .*-fno-asynchronous/,
  /^clang -O2 .*-static-pie/,
  /^musl-gcc -O2 -static -static-pie/,
  /^frames: array, gcc -O2/,
  /^frames: aligned, clang -O2/,
  /unlikely, gcc -O2/,
  /never return, gcc -O2/,
  /^assembly with CFI, gcc/,
  /^exceptions: cleanup, g\+\+/,
];
export const SAMPLE_PROGRAMS = ALL_PROGRAMS.filter(({ title }) =>
  SAMPLE.some((pattern) => pattern.test(title)),
);
