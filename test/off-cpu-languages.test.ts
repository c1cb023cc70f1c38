/**
 * Where threads wait, in functions of languages: each knows how long it slept or read. WAITS_SECONDS: for so long in place of
 * some seconds, and the table goes into docs/off-cpu.md.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readProfiles } from '../common/profile/formats/formats.ts';
import { readAttributes } from '../common/profile/model/attributes.ts';
import { stackNames } from '../common/profile/model/frame-name.ts';
import type { Profile } from '../common/profile/model/profile.ts';
import { findDotnets, runAssembly } from './runtimes/dotnets.ts';
import { compile, hasTool, missingRights, scratchFolder } from './support/fixtures.ts';

const EVERYFRAME = join(import.meta.dirname, '../bin/everyframe');
const SOURCES = join(import.meta.dirname, 'fixtures/waits');
const TABLE = join(import.meta.dirname, '../docs/off-cpu.md');
/** Stacks before a runtime is known have no frames of it: until then programs wait in another function. */
const isLong = process.env['WAITS_SECONDS'] !== undefined;
const WARM_SECONDS = isLong ? 15 : 6;
const SECONDS = Number(process.env['WAITS_SECONDS'] ?? 6);
const FUNCTIONS = ['sleep_short', 'sleep_long', 'read_line'];

interface Language {
  title: string;
  /** What has to be installed. */
  tool?: string;
  build?: [command: string, ...args: string[]];
  run: string;
  /** Of the executable. */
  name: RegExp;
  /** All of them unless some have no thread meanwhile. */
  functions?: readonly string[];
}

const source = (file: string): string => join(SOURCES, file);
const script = (title: string, tool: string, file: string, flag = ''): Language => ({
  ...{ title, tool, run: `${tool} ${flag} ${source(file)}`, name: new RegExp(`^${tool}`) },
});
/** None where it can't be had. */
const dotnets = (): Language[] =>
  findDotnets()
    .slice(0, 1)
    .map((dotnet) => {
      const { command, environment } = runAssembly(dotnet, 'waits.dll');
      const variables = Object.entries(environment).map(([key, value]) => `${key}=${value}`);
      return { title: '.NET', run: ['env', ...variables, ...command].join(' '), name: /^dotnet/ };
    });
const built = (title: string, tool: string, name: string, ...args: string[]): Language => {
  const path = join(scratchFolder, name);
  return {
    title,
    tool,
    build: [tool, ...args.map((arg) => arg || path)],
    run: path,
    name: new RegExp(`^${name}`),
  };
};

const LANGUAGES: Language[] = [
  { ...script('Python', 'python3', 'waits.py'), name: /^python/ },
  script('Node', 'node', 'waits.cjs'),
  script('Ruby', 'ruby', 'waits.rb'),
  script('PHP', 'php', 'waits.php'),
  script('Perl', 'perl', 'waits.pl'),
  // a compiled loop tells the functions that it inlined from their first snapshot on: docs/interpreters/luajit.md
  script('LuaJIT', 'luajit', 'waits.lua', '-joff'),
  {
    ...{ title: 'Lua', tool: 'lua5.4', name: /^lua5/ },
    build: ['gcc', '-shared', '-fPIC', '-o', join(scratchFolder, 'clock.so'), source('clock.c')],
    run: `env 'LUA_CPATH=${scratchFolder}/?.so' lua5.4 ${source('waits.lua')}`,
  },
  {
    ...{ title: 'Erlang', tool: 'erlc', name: /^beam/, functions: ['read_line'] },
    build: ['erlc', '-o', scratchFolder, source('waits.erl')],
    run: `erl -noinput -pa ${scratchFolder} -run waits main`,
  },
  {
    ...{ title: 'Java', tool: 'javac', name: /^java/ },
    build: ['javac', '-d', scratchFolder, source('Waits.java')],
    run: `java -cp ${scratchFolder} Waits`,
  },
  built('Go', 'go', 'waits-go', 'build', '-o', '', source('waits.go')),
  built('Rust', 'rustc', 'waits-rust', '-O', '-g', '-o', '', source('waits.rs')),
  ...(missingRights ? [] : dotnets()),
];
const isInstalled = ({ tool }: Language): boolean => tool === undefined || hasTool(tool);
const installed = LANGUAGES.filter(isInstalled);

for (const language of LANGUAGES)
  if (!isInstalled(language)) console.log(`skipped: ${language.tool} is not installed`);

describe.skipIf(missingRights)('time that functions of a language wait', () => {
  let said = '';
  let profile: Profile;
  const rows: string[] = [];

  beforeAll(() => {
    for (const { build } of installed)
      if (build) execFileSync(build[0], build.slice(1), { stdio: 'pipe', timeout: 120_000 });
    const feeder = compile('feeder', 'gcc', ['-O1'], 'waits/feeder.c');
    const file = join(scratchFolder, 'languages.pb.gz');
    // each line says whose it is
    const script = installed
      .map(({ title, run }) => `(${feeder} | ${run} ${WARM_SECONDS} ${SECONDS} | sed 's/^/${title} /') &`)
      .concat('wait')
      .join('\n');
    const flags = ['record', '--off-cpu', '--off-cpu-threshold', '1', '--force', '-o', file, '--'];
    said = execFileSync(EVERYFRAME, [...flags, 'sh', '-c', script], {
      ...{ encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], timeout: 120_000 },
    });
    profile = readProfiles(file, readFileSync(file)).profiles.find(
      ({ type }) => type.sampleType.type === 'off_cpu',
    )!;
  }, 300_000);

  it.each(installed)('is what they say themselves: $title', ({ title, name, functions = FUNCTIONS }) => {
    for (const wanted of functions) {
      const ownNs = Number(new RegExp(`^${title} ${wanted} (\\d+)$`, 'm').exec(said)![1]);
      const byState = waited(profile, name, wanted);
      const ns = [...byState.values()].reduce((sum, each) => sum + each, 0);
      const [state] = [...byState].sort((a, b) => b[1] - a[1])[0] ?? ['-'];
      const seconds = (value: number): string => `${(value / 1e9).toFixed(3)} s`;
      rows.push(
        `| ${title} | \`${wanted}\` | ${seconds(ownNs)} | ${seconds(ns)} | ${(100 * (ns / ownNs - 1)).toFixed(2)} % | ${state} |`,
      );
      expect.soft(ns / ownNs, wanted).toBeLessThan(1.03);
      // on a busy machine a runtime may be known later than that it is warm; what comes last misses least
      const least = isLong ? 0.97 : wanted === 'read_line' ? 0.8 : 0.5;
      expect.soft(ns / ownNs, wanted).toBeGreaterThan(least);
    }
  });

  afterAll(() => {
    if (!isLong) return;
    const text = readFileSync(TABLE, 'utf8');
    const head =
      '| language | function | its own clock | by stacks | difference | mostly |\n|---|---|--:|--:|--:|---|';
    const table = `<!-- waits -->\n${head}\n${rows.join('\n')}\n<!-- /waits -->`;
    writeFileSync(
      TABLE,
      text.replace(/<!-- waits -->[\s\S]*<!-- \/waits -->/, () => table),
    );
  });
});

/** Time of stacks with that function on them by state, nanoseconds. */
function waited(profile: Profile, executable: RegExp, name: string): Map<string, number> {
  const byState = new Map<string, number>();
  for (const { stack, process: index, value } of profile.samples) {
    const { executableName, attributes } = profile.processes[index]!;
    if (!executable.test(executableName)) continue;
    if (!stackNames(profile, stack).some((frame) => frame.includes(name))) continue;
    const state = readAttributes(attributes ?? '').get('thread.state') ?? '';
    byState.set(state, (byState.get(state) ?? 0) + value);
  }
  return byState;
}
