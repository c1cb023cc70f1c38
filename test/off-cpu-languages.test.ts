/** Where threads wait, in functions of languages: each knows how long it slept. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { readProfiles } from '../common/profile/formats/formats.ts';
import { stackNames } from '../common/profile/model/frame-name.ts';
import type { Profile } from '../common/profile/model/profile.ts';
import { hasTool, missingRights, scratchFolder } from './support/fixtures.ts';

const EVERYFRAME = join(import.meta.dirname, '../bin/everyframe');
const SOURCES = join(import.meta.dirname, 'fixtures/waits');
/** Stacks before a runtime is known have no frames of it. */
const SECONDS = 6;

interface Language {
  tool: string;
  build?: [command: string, ...args: string[]];
  run: string;
  /** Base name of the executable. */
  executable: RegExp;
}

const go = join(scratchFolder, 'waits-go');
const LANGUAGES: Language[] = [
  { tool: 'python3', run: `python3 ${join(SOURCES, 'waits.py')}`, executable: /^python/ },
  { tool: 'node', run: `node ${join(SOURCES, 'waits.cjs')}`, executable: /^node/ },
  {
    tool: 'javac',
    build: ['javac', '-d', scratchFolder, join(SOURCES, 'Waits.java')],
    run: `java -cp ${scratchFolder} Waits`,
    executable: /^java/,
  },
  {
    tool: 'go',
    build: ['go', 'build', '-o', go, join(SOURCES, 'waits.go')],
    run: go,
    executable: /^waits-go/,
  },
];
const installed = LANGUAGES.filter(({ tool }) => hasTool(tool));

for (const { tool } of LANGUAGES) if (!hasTool(tool)) console.log(`skipped: ${tool} is not installed`);

describe.skipIf(missingRights)('time that functions of a language wait', () => {
  let said = '';
  let profile: Profile;

  beforeAll(() => {
    for (const { build } of installed)
      if (build) execFileSync(build[0], build.slice(1), { stdio: 'pipe', timeout: 120_000 });
    const file = join(scratchFolder, 'languages.pb.gz');
    // each line says whose it is
    const script = installed
      .map(({ tool, run }) => `(${run} ${SECONDS} | sed 's/^/${tool} /') &`)
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

  it.each(installed)('is what they say themselves: $tool', ({ tool, executable }) => {
    const waited = (name: string): number =>
      profile.samples
        .filter(
          ({ stack, process }) =>
            executable.test(profile.processes[process]!.executableName) &&
            stackNames(profile, stack).some((frame) => frame.includes(name)),
        )
        .reduce((sum, { value }) => sum + value, 0);
    const functions = ['sleep_short', 'sleep_long'].map((name) => {
      const ownNs = Number(new RegExp(`^${tool} ${name} (\\d+)$`, 'm').exec(said)![1]);
      return { ownNs, ns: waited(name) };
    });
    for (const { ownNs, ns } of functions) {
      expect(ns / ownNs).toBeLessThan(1.03);
      // what came before the runtime was known has no function, of both alike
      expect(ns / ownNs).toBeGreaterThan(0.6);
    }
    const [short, long] = functions;
    expect(Math.abs(short!.ns / long!.ns / (short!.ownNs / long!.ownNs) - 1)).toBeLessThan(0.1);
  });
});
