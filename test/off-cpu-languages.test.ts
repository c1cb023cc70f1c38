/** Where threads wait, in functions of languages: each knows how long it slept. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readProfiles } from '../common/profile/formats/formats.ts';
import { stackNames } from '../common/profile/model/frame-name.ts';
import { hasTool, missingRights, scratchFolder } from './support/fixtures.ts';

const EVERYFRAME = join(import.meta.dirname, '../bin/everyframe');
const SOURCES = join(import.meta.dirname, 'fixtures/waits');
/** Stacks before a runtime is known have no frames of it. */
const SECONDS = 5;

interface Language {
  tool: string;
  build?: [command: string, ...args: string[]];
  run: string[];
}

const go = join(scratchFolder, 'waits-go');
const LANGUAGES: Language[] = [
  { tool: 'python3', run: ['python3', join(SOURCES, 'waits.py')] },
  { tool: 'node', run: ['node', join(SOURCES, 'waits.cjs')] },
  {
    tool: 'javac',
    build: ['javac', '-d', scratchFolder, join(SOURCES, 'Waits.java')],
    run: ['java', '-cp', scratchFolder, 'Waits'],
  },
  { tool: 'go', build: ['go', 'build', '-o', go, join(SOURCES, 'waits.go')], run: [go] },
];

for (const { tool } of LANGUAGES) if (!hasTool(tool)) console.log(`skipped: ${tool} is not installed`);

describe.skipIf(missingRights)('time that functions of a language wait', () => {
  it.each(LANGUAGES.filter(({ tool }) => hasTool(tool)))(
    'is what they say themselves: $tool',
    ({ build, run }) => {
      if (build) execFileSync(build[0], build.slice(1), { stdio: 'pipe', timeout: 120_000 });
      const file = join(scratchFolder, 'language.pb.gz');
      const said = execFileSync(
        EVERYFRAME,
        [
          ...['record', '--off-cpu', '--off-cpu-threshold', '1', '--force', '-o', file, '--'],
          ...run,
          String(SECONDS),
        ],
        { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], timeout: 60_000 },
      );
      const profile = readProfiles(file, readFileSync(file)).profiles.find(
        ({ type }) => type.sampleType.type === 'off_cpu',
      )!;
      const waited = (name: string): number =>
        profile.samples
          .filter(({ stack }) => stackNames(profile, stack).some((frame) => frame.includes(name)))
          .reduce((sum, { value }) => sum + value, 0);
      const [short, long] = ['sleep_short', 'sleep_long'].map((name) => {
        const ownNs = Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(said)![1]);
        return { ownNs, ns: waited(name) };
      });
      for (const { ownNs, ns } of [short!, long!]) expect(ns / ownNs).toBeLessThan(1.03);
      // what came before the runtime was known has no function, of both alike
      for (const { ownNs, ns } of [short!, long!]) expect(ns / ownNs).toBeGreaterThan(0.6);
      expect(Math.abs(short!.ns / long!.ns / (short!.ownNs / long!.ownNs) - 1)).toBeLessThan(0.1);
    },
    180_000,
  );
});
