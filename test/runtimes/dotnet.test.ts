/** .NET stacks of real runtimes, compared with what the programs know of their own calls. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import type { Profile } from '../../common/profile/model/profile.ts';
import { eachOf } from '../support/each-of.ts';
import { Recording } from '../support/recording.ts';
import './builds.ts';
import { type Dotnet, findDotnets, findSingleFiles, runAssembly } from './dotnets.ts';

const SOURCE = readFileSync(join(import.meta.dirname, 'dotnet/chain.cs'), 'utf8').split('\n');

/** A frame of the source: its method, and what one of the lines has that it may be at. */
function at(method: string, ...texts: string[]): RegExp {
  const lines = SOURCE.flatMap((line, i) => (texts.some((text) => line.includes(text)) ? [i + 1] : []));
  if (lines.length < texts.length) throw new Error(`the source has no ${texts}`);
  return new RegExp(`^${method.replace(/[.<>]/g, '\\$&')}:(${lines.join('|')})$`);
}

/** In its loop, in which nearly all of its time passes. */
const LOOP = at('Known.Work.Spin', 'i++', 'x * 31');
const SPIN = at('Known.Work.Spin', 'i++', 'x * 31', 'sink = x', 'if (IsToTell)', 'return x;');
/** What stands above Spin, its caller first; a name in brackets is a native function's. */
const CHAINS: Readonly<Record<string, readonly RegExp[]>> = {
  plain: [
    at('Known.Work.Thin', 'int Thin(int n)'),
    at('Known.Box<T>.Open', 'Work.Thin(n) + 1'),
    at('Known.Box<T>.Lid<U>.Lift', 'Open(n) + 1'),
    at('Known.Program.Plain', 'Lift(n)'),
  ],
  lambda: [
    at('Known.Program.Lambda.lambda', 'Work.Spin(m + k)'),
    at('Known.Program.Lambda', 'return f(n) + 1'),
  ],
  local: [
    at('Known.Program.Local.Inner', 'Work.Spin(m) + 1'),
    at('Known.Program.Local', 'return Inner(n) + 1'),
  ],
  iterator: [at('Known.Program.Numbers', 'yield return'), /^System\.Linq\.Enumerable\./],
  dynamic: [/^Emitted:0$/],
  native: [at('Known.Program.Compare', 'Work.Spin(*a)'), /^\[.*\]$/, /^\[.*\]$/],
  library: [
    at('Known.Program.Precompiled.lambda', 'Work.Spin(n); return', 'Work.Spin(i) + 1'),
    /^System\.(Collections\.Generic|Linq)\./,
  ],
  async: [at('Known.Program.Nested', 'return Work.Spin(n) + 1'), /^System\./],
};
const INLINED: readonly (readonly RegExp[])[] = [
  [
    SPIN,
    at('Known.Program.Inner', 'int k = Work.Spin(n)'),
    at('Known.Program.Inlined', 'int k = Inner(n)'),
    at('Known.Program.Run', 'case "inlined"'),
  ],
  [
    SPIN,
    at('Known.Program.Inner', 'int k = Work.Spin(n)'),
    at('Known.Program.Middle', 'int k = Inner(n * 2)'),
    at('Known.Program.Inlined', 'int m = Middle(n)'),
    at('Known.Program.Run', 'case "inlined"'),
  ],
];
/** What stands in a single file has its name alone. */
const withoutLine = (frame: RegExp): RegExp => new RegExp(frame.source.replace(/:\(.*\)/, ':0'));
/** .NET 10 does not say where in its caller an inlined method is called: its callers up to the compiled method have no line. */
const withoutCalls = (chain: readonly RegExp[]): RegExp[] =>
  chain.map((frame, i) => (i > 1 && i < chain.length - 1 ? withoutLine(frame) : frame));
const SETTINGS: Readonly<Record<string, Record<string, string>>> = {
  'by tiers': { DOTNET_TieredPGO: '0' },
  optimized: { DOTNET_TieredCompilation: '0' },
  'not optimized': {
    DOTNET_TieredCompilation: '1',
    DOTNET_TC_QuickJitForLoops: '1',
    DOTNET_OSR_HitLimit: '0',
    DOTNET_TieredPGO: '0',
  },
  // on-stack replacement: no call gets an optimized method
  'replaced while they run': { DOTNET_TieredPGO: '0', DOTNET_TC_CallCountThreshold: '30000' },
  'nothing precompiled': { DOTNET_ReadyToRun: '0', DOTNET_TieredPGO: '0' },
};
const SAMPLES = 100;
const SHARE = 0.99;
const SHARE_OF_LOOP = 0.95;
const LIMIT_MS = 40_000;

interface DotnetStack {
  frames: string[];
  isCut: boolean;
  count: number;
}

function stacksOf(profile: Profile, pid: number): DotnetStack[] {
  return (
    profile.samples
      .filter(({ process }) => profile.processes[process]!.pid === pid)
      .map(({ stack, value: count }) => {
        const locations = [...profile.stacks[stack]!].map((at) => profile.locations[at]!);
        const frames = locations
          .filter(({ frameType }) => frameType !== 'kernel')
          .flatMap(({ frameType, lines }) =>
            frameType === 'dotnet'
              ? lines.map(({ func, line }) => `${profile.functions[func]!.name}:${line}`)
              : [`[${lines[0] ? profile.functions[lines[0].func]!.name : ''}]`],
          );
        return { frames, isCut: locations.some(({ frameType }) => frameType === 'abort-marker'), count };
      })
      // waiting, compiling and starting are not part of a chain
      .filter(({ frames }) => frames[0]?.startsWith('Known.Work.Spin:'))
  );
}

const sum = (stacks: readonly DotnetStack[]): number => stacks.reduce((total, { count }) => total + count, 0);

const rootsOf = (mode: string): RegExp[] => [
  at('Known.Program.Run', `case "${mode}"`),
  // .NET 9 notes no place for the call where it has optimized Main, and then replaced it while it ran
  at('Known.Program.Main', 'Run(args.Length', 'for (int n = 0;', 'Work.IsToTell ='),
];

function isRight(mode: string, { isSingleFile }: Dotnet, { frames, isCut }: DotnetStack): boolean {
  const asShown = (chain: readonly RegExp[]) => (isSingleFile ? chain.map(withoutLine) : chain);
  const chain = asShown([SPIN, ...CHAINS[mode]!]);
  const managed = frames.filter((frame) => !frame.startsWith('['));
  return (
    !isCut &&
    chain.every((name, i) => name.test(frames[i] ?? '')) &&
    (mode === 'async' || asShown(rootsOf(mode)).every((name, i) => name.test(managed.at(i - 2) ?? ''))) &&
    frames.at(-1)!.startsWith('[')
  );
}

eachOf(() => [...findDotnets(), ...findSingleFiles()])('$title', (dotnet) => {
  let recording: Recording;

  beforeAll(async () => {
    recording = await Recording.start({ targets: [], samplesPerSecond: 997 });
  });

  afterAll(async () => {
    await recording?.stop();
  });

  it.for(Object.keys(SETTINGS))('%s', { timeout: 90_000 }, async (setting, { task }) => {
    task.meta.build = dotnet.build;
    const running = Object.keys(CHAINS).map(
      (mode) => [mode, start(dotnet, mode, SETTINGS[setting]!)] as const,
    );
    const found = ({ pid }: ChildProcess) => recording.profiles.flatMap((profile) => stacksOf(profile, pid!));
    const all = (enough: (stacks: DotnetStack[], mode: string) => boolean) =>
      recording
        .until(() => running.every(([mode, child]) => enough(found(child), mode)), LIMIT_MS)
        .catch(() => {
          /* what is expected below says which */
        });
    try {
      for (const [, child] of running) recording.controller.addTarget(toPid(child.pid!));
      await all((stacks, mode) => stacks.some((stack) => isRight(mode, dotnet, stack)));
      recording.clear();
      await all((stacks) => sum(stacks) >= SAMPLES);
      for (const [mode, child] of running) {
        expectRight(mode, dotnet, found(child));
        // whose code is the same at the first call and later; the runtime has no lines behind a dynamic method
        if (setting === 'optimized' && mode !== 'dynamic' && !dotnet.isSingleFile)
          expect(found(child).map(linesOf), mode).toContain(ownLines(dotnet, mode, SETTINGS[setting]!));
      }
    } finally {
      for (const [, child] of running) child.kill('SIGKILL');
      recording.clear();
    }
  });

  it.skipIf(dotnet.major === 6)(
    'methods that were inlined, where it notes them',
    { timeout: 60_000 },
    async ({ task }) => {
      task.meta.build = dotnet.build;
      const child = start(dotnet, 'inlined', { DOTNET_TieredCompilation: '0', DOTNET_RichDebugInfo: '1' });
      const inlined = dotnet.isSingleFile
        ? INLINED.map((chain) => chain.map(withoutLine))
        : dotnet.major < 10
          ? INLINED
          : INLINED.map(withoutCalls);
      const countOf = (chain: readonly RegExp[]): number =>
        sum(
          recording.profiles
            .flatMap((profile) => stacksOf(profile, child.pid!))
            .filter(({ frames }) => chain.every((name, i) => name.test(frames[i] ?? ''))),
        );
      try {
        recording.controller.addTarget(toPid(child.pid!));
        await recording.until(() => inlined.every((chain) => countOf(chain) >= SAMPLES / 2), LIMIT_MS);
      } finally {
        child.kill('SIGKILL');
        recording.clear();
      }
    },
  );

  it('is attached to', ({ task }) => {
    task.meta.build = dotnet.build;
    expect(recording.warnings.filter((text) => text.includes("can't be attached to"))).toEqual([]);
    expect(recording.controller.counters()['processRuntimes.failed']).toBe(0);
  });
});

function expectRight(mode: string, dotnet: Dotnet, stacks: readonly DotnetStack[]): void {
  const wrong = stacks.filter((stack) => !isRight(mode, dotnet, stack));
  const texts = wrong.slice(0, 3).map(({ frames, isCut }) => `${frames.join(' < ')}${isCut ? ' cut' : ''}`);
  expect(sum(stacks), mode).toBeGreaterThanOrEqual(SAMPLES);
  expect(1 - sum(wrong) / sum(stacks), `${mode}\n${texts.join('\n')}`).toBeGreaterThanOrEqual(SHARE);
  if (dotnet.isSingleFile) return;
  const looping = stacks.filter(({ frames }) => LOOP.test(frames[0]!));
  expect(sum(looping) / sum(stacks), mode).toBeGreaterThanOrEqual(SHARE_OF_LOOP);
}

/** Of the source, those of Spin's callers. */
const linesOf = ({ frames }: DotnetStack): string =>
  frames
    .flatMap((frame) => /:([1-9]\d*)$/.exec(frame)?.[1] ?? [])
    .slice(1)
    .join(' ');

/** As the runtime's own stack trace has them. */
function ownLines(dotnet: Dotnet, mode: string, settings: Record<string, string>): string {
  const { command, environment } = runAssembly(dotnet, 'chain.dll');
  const trace = execFileSync(command[0]!, [...command.slice(1), mode], {
    encoding: 'utf8',
    env: { ...environment, ...settings, KNOWN_TRACE: '1' },
    timeout: LIMIT_MS,
  });
  // after Tell and Spin
  return [...trace.matchAll(/:line (\d+)/g)]
    .slice(2)
    .map(([, line]) => line)
    .join(' ');
}

function start(dotnet: Dotnet, mode: string, settings: Record<string, string>): ChildProcess {
  const { command, environment } = runAssembly(dotnet, 'chain.dll');
  return spawn('nice', ['-n', '19', ...command, mode], {
    stdio: 'ignore',
    env: { ...environment, ...settings },
  });
}
