/** Threads that wait for work, told from those that wait for something else, in programs of each kind. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { foldIdle } from '../common/profile/filters/fold-idle.ts';
import { readProfiles } from '../common/profile/formats/formats.ts';
import { stackNames } from '../common/profile/model/frame-name.ts';
import type { Profile } from '../common/profile/model/profile.ts';
import { compile, hasTool, missingRights, scratchFolder } from './support/fixtures.ts';

const EVERYFRAME = join(import.meta.dirname, '../bin/everyframe');
const SOURCES = join(import.meta.dirname, 'fixtures/idle');
/** Of the first of them the stacks lack what is not known yet: one or two on a slow machine, of each thread. */
const SECONDS = 14;

interface Program {
  tool: string;
  build?: () => void;
  run: string;
  executable: RegExp;
  /** Threads of each pool, at least. */
  pools: Record<string, number>;
  /** What else its threads wait in, each for all of the time. */
  waits: string[];
}

const go = join(scratchFolder, 'pool-go');
const native = join(scratchFolder, 'pool');
const PROGRAMS: Program[] = [
  {
    tool: 'g++',
    build: () =>
      void compile('pool', 'g++', ['-O1', '-g', '-fno-optimize-sibling-calls', '-pthread'], 'idle/pool.cc'),
    ...{ run: native, executable: /^pool$/, pools: { worker: 2 }, waits: ['serve_request', 'main'] },
  },
  {
    ...{ tool: 'node', run: `node ${SOURCES}/pool.cjs`, executable: /^node/, waits: [] },
    pools: { 'libuv worker': 4, 'libuv event loop': 1 },
  },
  {
    tool: 'javac',
    build: () => void execFileSync('javac', ['-d', scratchFolder, `${SOURCES}/Pool.java`]),
    ...{ run: `java -cp ${scratchFolder} Pool`, executable: /^java/ },
    ...{ pools: { 'Java pool': 2, JVM: 3 }, waits: ['Pool.sleepInMain'] },
  },
  {
    ...{ tool: 'python3', run: `python3 ${SOURCES}/pool.py`, executable: /^python/ },
    ...{ pools: { 'Python pool': 2 }, waits: ['sleep_in_main'] },
  },
  {
    tool: 'go',
    build: () => void execFileSync('go', ['build', '-o', go, `${SOURCES}/pool.go`], { stdio: 'pipe' }),
    ...{ run: go, executable: /^pool-go/, pools: { 'Go thread': 2 }, waits: [] },
  },
];
const installed = PROGRAMS.filter(({ tool }) => hasTool(tool));
for (const { tool } of PROGRAMS) if (!hasTool(tool)) console.log(`skipped: ${tool} is not installed`);

describe.skipIf(missingRights)('idle pools', () => {
  let profile: Profile;

  beforeAll(() => {
    for (const { build } of installed) build?.();
    const file = join(scratchFolder, 'idle.pb.gz');
    const script = installed
      .map(({ run }) => `${run} ${SECONDS} &`)
      .concat('wait')
      .join('\n');
    const flags = ['record', '--off-cpu', '--off-cpu-threshold', '1', '--force', '-o', file, '--'];
    execFileSync(EVERYFRAME, [...flags, 'sh', '-c', script], { stdio: 'ignore', timeout: 120_000 });
    const { profiles } = readProfiles(file, readFileSync(file));
    profile = profiles.find(({ type }) => type.sampleType.type === 'off_cpu')!;
  }, 300_000);

  it.each(installed)('are folded, and nothing else is: $run', ({ executable, pools, waits }) => {
    const folded = foldIdle(profile, 'fold');
    const seconds = (of: Profile, isWanted: (names: string[]) => boolean): number =>
      of.samples
        .filter(
          ({ stack, process }) =>
            executable.test(of.processes[process]!.executableName) && isWanted(stackNames(of, stack)),
        )
        .reduce((sum, { value }) => sum + value / 1e9, 0);
    for (const [pool, threads] of Object.entries(pools))
      expect(
        seconds(folded, (names) => names[0] === `[idle: ${pool}]`),
        pool,
      ).toBeGreaterThan(0.3 * threads * SECONDS);
    for (const wait of waits) {
      const isThere = (names: string[]): boolean => names.includes(wait);
      expect(seconds(folded, isThere), wait).toBe(seconds(profile, isThere));
      expect(seconds(folded, isThere), wait).toBeGreaterThan(0.3 * SECONDS);
    }
    const hidden = foldIdle(profile, 'hide');
    const idle = seconds(folded, (names) => names[0]!.startsWith('[idle: '));
    const all = seconds(profile, () => true);
    expect(Math.abs(seconds(hidden, () => true) + idle - all)).toBeLessThan(1e-6);
    // of a stack from before the runtime was known, frames have no names
    const rest = (names: string[]): boolean =>
      !names[0]!.startsWith('[') &&
      !names.some((name) => name.includes('+0x')) &&
      !waits.some((wait) => names.includes(wait));
    console.log(
      `${executable}: ${idle.toFixed(1)} of ${all.toFixed(1)} s in pools, ${seconds(folded, rest).toFixed(1)} s unexplained`,
    );
    expect(seconds(folded, rest)).toBeLessThan(0.15 * all);
  });
});
