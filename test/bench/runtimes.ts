/**
 * What runtimes cost in BPF: the same programs with their runtime's code in the sampler and without it, and what the
 * sampler itself takes of the kernel. Only the program in question is sampled, so other load matters little.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { Controller } from '../../agent/controller.ts';
import { RUNTIMES } from '../../agent/runtimes/runtimes.gen.ts';
import { Samplers } from '../../agent/tracer/samplers.ts';
import { Tracer } from '../../agent/tracer/tracer.ts';
import { toPid } from '../../common/base/brand.ts';
import { BpfRuns, bpftool, ROOT } from './measure.ts';

interface BusyProgram {
  title: string;
  /** undefined: native code alone. */
  runtime: string | undefined;
  command: string[];
  environment?: Record<string, string>;
}

interface SampleCost {
  /** Median and smallest of the rounds. */
  ns: number;
  leastNs: number;
  frames: number;
}

interface RuntimeCost {
  title: string;
  isNative: boolean;
  without: SampleCost;
  with: SampleCost;
}

interface RuntimeSize {
  runtimes: string;
  codeBytes: number;
  mapBytes: number;
}

const RATE = 1999;
const ROUNDS = 5;
const WARM_STACKS = 300;
/** As test/runtimes/dotnets.ts fetches it. */
const DOTNET = `${ROOT}build/dotnet/dnv/net/runtime/.net`;
const SCRIPTS = `${ROOT}test/runtimes`;
const QUIET = { info: () => {}, debug: () => {}, warn: (message: string) => console.error(message) };

/** Programs of a runtime, by their titles and last arguments. None, and a printed reason, where it is not installed. */
function programsOf(
  name: string,
  runtime: string,
  command: readonly [string, ...string[]],
  ...programs: readonly (readonly [title: string, ...args: string[]])[]
): BusyProgram[] {
  if (spawnSync('which', [command[0]]).status === 0)
    return programs.map(([title, ...args]) => ({
      title: `${name}: ${title}`,
      ...{ runtime, command: [...command, ...args] },
    }));
  console.error(`skipped ${name}: ${command[0]} is not installed`);
  return [];
}

function busyPrograms(directory: string): BusyProgram[] {
  const deep = join(directory, 'deep');
  execFileSync('gcc', ['-O2', '-fomit-frame-pointer', '-o', deep, `${ROOT}test/fixtures/deep.c`]);
  const recursion = ['recursion, 50 deep', 'recursion'] as const;
  const chain = `${SCRIPTS}/v8/chain.cjs`;
  const ofLua = `${SCRIPTS}/luajit/scenarios.lua`;
  const lua = (series: string): BusyProgram[] =>
    programsOf(
      `Lua ${series}`,
      'lua',
      [`/usr/bin/lua${series}`, ofLua, 'interpreter'],
      ['recursion, 100 deep', 'recursion'],
    );
  return [
    { title: 'C, 40 deep', runtime: undefined, command: [deep, '40'] },
    ...programsOf('CPython', 'cpython', ['/usr/bin/python3', `${SCRIPTS}/python/scenarios.py`], recursion, [
      'through sorted(), map() and functools',
      'native',
    ]),
    ...programsOf(
      `Node ${process.versions.node}`,
      'v8',
      [process.execPath],
      ['interpreted', '--no-opt', '--no-sparkplug', chain],
      ['optimized', chain],
    ),
    ...programsOf('Ruby', 'ruby', ['/usr/bin/ruby', `${SCRIPTS}/ruby/scenarios.rb`], recursion, [
      'recursion, 400 deep',
      'deep',
    ]),
    ...programsOf('Perl', 'perl', ['/usr/bin/perl', `${SCRIPTS}/perl/scenarios.pl`], recursion, [
      'through sort and tied variables',
      'tied_twice',
    ]),
    ...programsOf('PHP', 'php', ['/usr/bin/php', '-n', `${SCRIPTS}/php/scenarios.php`], recursion, [
      'methods',
      'methods',
    ]),
    ...programsOf(
      'LuaJIT',
      'luajit',
      ['/usr/bin/luajit', ofLua],
      ['recursion, 100 deep, interpreted', 'interpreter', 'recursion'],
      ['recursion, 100 deep, compiled', 'jit', 'recursion'],
    ),
    ...['5.1', '5.4'].flatMap(lua),
    ...dotnetPrograms(directory),
    ...goPrograms(directory),
    ...programsOf(
      'Erlang',
      'beam',
      ['erl', '+S', '1:1', '-noshell', '-eval'],
      ['recursion, 50 deep', erlang('deep')],
      ['in a comparison', erlang('compared')],
    ),
    ...javaPrograms(directory),
  ];
}

const erlang = (scenario: string): string =>
  `{ok, M, B} = compile:file("${SCRIPTS}/beam/scenarios.erl", [binary]), code:load_binary(M, "", B), M:main([${scenario}]).`;

function javaPrograms(directory: string): BusyProgram[] {
  if (spawnSync('javac', ['-d', directory, `${SCRIPTS}/hotspot/Chain.java`]).status !== 0) {
    console.error('skipped Java: javac is not installed');
    return [];
  }
  return programsOf(
    'Java',
    'hotspot',
    ['java'],
    ['interpreted', '-Xint', '-cp', directory, 'Chain'],
    ['compiled', '-XX:CompileCommand=dontinline,Chain::*', '-cp', directory, 'Chain'],
  );
}

/** Its frames are native ones: what is added is to read labels. */
function goPrograms(directory: string): BusyProgram[] {
  const path = join(directory, 'lies');
  const { status } = spawnSync('go', ['build', '-o', path, `${SCRIPTS}/go/lies.go`]);
  if (status !== 0) console.error('skipped Go: it is not installed');
  const program = (title: string, mode: string): BusyProgram => ({
    title: `Go: ${title}`,
    runtime: 'go',
    command: [path, 'slice', mode],
  });
  return status === 0 ? [program('one label', 'plain'), program('1,024 bytes of labels', 'endless')] : [];
}

/** None where the tests have fetched no .NET. */
function dotnetPrograms(directory: string): BusyProgram[] {
  if (!existsSync(DOTNET)) {
    console.error('skipped .NET: test/runtimes/dotnet.test.ts has not fetched it');
    return [];
  }
  const config = join(directory, 'runtimeconfig.json');
  const framework = { name: 'Microsoft.NETCore.App', version: '8.0.0' };
  writeFileSync(config, JSON.stringify({ runtimeOptions: { tfm: 'net8.0', framework } }));
  const start = [join(DOTNET, 'dotnet'), 'exec', '--runtimeconfig', config, `${SCRIPTS}/dotnet/chain.dll`];
  const program = (title: string, chain: string): BusyProgram => ({
    title: `.NET: ${title}`,
    runtime: 'dotnet',
    command: [...start, chain],
    environment: { DOTNET_ROOT: DOTNET, DOTNET_SYSTEM_GLOBALIZATION_INVARIANT: '1' },
  });
  return [program('compiled', 'plain'), program('through List.Sort and Linq, compiled ahead', 'library')];
}

export async function measureRuntimes(
  seconds: number,
): Promise<{ costs: RuntimeCost[]; sizes: RuntimeSize[] }> {
  const directory = mkdtempSync(join(tmpdir(), 'everyframe-bench-'));
  try {
    const sizes = await measureSizes();
    const costs: RuntimeCost[] = [];
    for (const program of busyPrograms(directory)) {
      console.error(program.title);
      const without = await withoutRuntimes(() =>
        measureProgram({ ...program, runtime: undefined }, seconds),
      );
      costs.push({
        title: program.title,
        isNative: program.runtime === undefined,
        without,
        with: await measureProgram(program, seconds),
      });
    }
    return { costs, sizes };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** The agent in this process then shows the runtimes' native frames. */
async function withoutRuntimes<T>(run: () => Promise<T>): Promise<T> {
  const { add } = Samplers.prototype;
  Samplers.prototype.add = () => Promise.resolve(false);
  try {
    return await run();
  } finally {
    Samplers.prototype.add = add;
  }
}

async function measureProgram(
  { command, environment, runtime }: BusyProgram,
  seconds: number,
): Promise<SampleCost> {
  const env = { ...process.env, ...environment };
  const child = spawn(command[0]!, command.slice(1), { stdio: 'ignore', env });
  const runs = new BpfRuns(process.pid);
  let [samples, frames] = [0, 0];
  const controller = await Controller.start(
    {
      samplesPerSecond: RATE,
      targets: [toPid(child.pid!)],
      symbols: 'off',
      sourceMaps: false,
      sendIdleFrames: false,
      maxUserFrames: 1023,
      maxTableBytes: 64 << 20,
      maxMemoryBytes: 2 ** 32,
      intervalMs: 500,
      jitter: 0,
      probabilisticThreshold: 100,
      probabilisticIntervalMs: 60_000,
    },
    {
      push: (profile) => {
        for (const { stack, value } of profile.samples) {
          samples += value;
          frames += value * profile.stacks[stack]!.length;
        }
      },
    },
    QUIET,
  );
  try {
    await untilWarm(controller, runtime !== undefined && runtime !== 'go');
    [samples, frames] = [0, 0];
    const rounds: Round[] = [];
    for (let i = 0; i < ROUNDS; i++) rounds.push(await round(controller, runs, seconds));
    child.kill('SIGKILL');
    // what a tick on any other process costs, which the rounds have paid for as well
    const idle = await round(controller, runs, 1);
    const filteredNs = idle.ns / Math.max(1, idle.filtered);
    const each = rounds.map((r) => (r.ns - r.filtered * filteredNs) / r.samples).sort((a, b) => a - b);
    return { ns: each[ROUNDS >> 1]!, leastNs: each[0]!, frames: frames / Math.max(1, samples) };
  } finally {
    child.kill('SIGKILL');
    await controller.stop();
  }
}

async function untilWarm(controller: Controller, isInterpreted: boolean): Promise<void> {
  const end = Date.now() + 60_000;
  for (;;) {
    const counters = controller.counters();
    // without its runtime no stack of Java is whole
    const stacks = (counters['bpf.user_complete'] ?? 0) + (counters['bpf.user_cut_anon'] ?? 0);
    const named = counters['runtimeFrames.named'] ?? 0;
    if (stacks >= WARM_STACKS && (!isInterpreted || named > 0)) break;
    if (Date.now() > end) throw new Error(`too few stacks within a minute: ${JSON.stringify(counters)}`);
    await sleep(200);
  }
  await sleep(1000);
}

interface Round {
  ns: number;
  samples: number;
  filtered: number;
}

async function round(controller: Controller, runs: BpfRuns, seconds: number): Promise<Round> {
  const read = (): Round => {
    const counters = controller.counters();
    return {
      ns: runs.read().ns,
      samples: counters['bpf.samples']!,
      filtered: counters['bpf.samples_filtered']!,
    };
  };
  const before = read();
  await sleep(seconds * 1000);
  const after = read();
  return {
    ns: after.ns - before.ns,
    samples: after.samples - before.samples,
    filtered: after.filtered - before.filtered,
  };
}

/** Machine code of the sampler, and maps of the runtimes in it, as one runtime after the other is met. */
async function measureSizes(): Promise<RuntimeSize[]> {
  const known = new Set(bpftool<{ id: number }>('prog', 'show').map(({ id }) => id));
  const tracer = new Tracer(
    {
      samplesPerSecond: 1,
      sendIdleFrames: false,
      maxUserFrames: 1023,
      maxTableBytes: 4 << 20,
      runtimes: RUNTIMES,
    },
    { onRecord: () => {} },
    QUIET.warn,
  );
  const read = (runtimes: string): RuntimeSize => {
    const own = bpftool<{ id: number; name: string; type: string; bytes_jited: number; map_ids?: number[] }>(
      'prog',
      'show',
    ).filter(({ id, type }) => !known.has(id) && type === 'perf_event');
    const ids = new Set(own.flatMap(({ map_ids }) => map_ids ?? []));
    const names: readonly string[] = RUNTIMES.map(({ map }) => map);
    const maps = bpftool<{ id: number; name?: string; bytes_memlock: number }>('map', 'show').filter(
      ({ id, name }) => ids.has(id) && name !== undefined && names.includes(name),
    );
    // the last sampler goes once no CPU can be running it
    const newest = own.filter(({ name }) => name === 'sample').at(-1)!;
    return {
      runtimes,
      codeBytes: newest.bytes_jited,
      mapBytes: maps.reduce((sum, { bytes_memlock }) => sum + bytes_memlock, 0),
    };
  };
  try {
    const sizes = [read('none')];
    for (const plugin of RUNTIMES) {
      await tracer.samplers.add(plugin);
      sizes.push(read(`+ ${plugin.name}`));
    }
    return sizes;
  } finally {
    await tracer.close();
  }
}

export function describeRuntimes({ costs, sizes }: { costs: RuntimeCost[]; sizes: RuntimeSize[] }): string {
  const us = ({ ns, leastNs }: SampleCost): string =>
    `${(ns / 1000).toFixed(1)} (${(leastNs / 1000).toFixed(1)})`;
  return [
    '| program | frames a stack | BPF a sample, µs | with its runtime: frames | BPF a sample, µs |',
    '|---|---|---|---|---|',
    ...costs.map(({ title, isNative, without, with: full }) =>
      [
        `| ${title} | ${without.frames.toFixed(0)} | ${us(without)}`,
        isNative ? ' – | – |' : ` ${full.frames.toFixed(0)} | ${us(full)} |`,
      ].join(' |'),
    ),
    '',
    '| runtimes in the sampler | machine code, bytes | maps of runtimes, bytes |',
    '|---|---|---|',
    ...sizes.map(({ runtimes, codeBytes, mapBytes }) => `| ${runtimes} | ${codeBytes} | ${mapBytes} |`),
  ].join('\n');
}
