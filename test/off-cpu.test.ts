/** Where threads wait: programs that know how long they did, against what --off-cpu says of each of their functions. */
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { readProfiles } from '../common/profile/formats/formats.ts';
import { stackNames } from '../common/profile/model/frame-name.ts';
import type { Profile } from '../common/profile/model/profile.ts';
import { compile, hasTool, missingRights, scratchFolder } from './support/fixtures.ts';

const EVERYFRAME = join(import.meta.dirname, '../bin/everyframe');
const SECONDS = 3;
/** Every wait of these programs has its stack taken. */
const ALL = ['--off-cpu-threshold', '1'];

interface Waits {
  /** What the program says of each function, nanoseconds. */
  own: Map<string, number>;
  profile: Profile;
}

function record(kind: string, program: string, flags: string[]): Waits {
  const file = join(scratchFolder, `${kind}.pb.gz`);
  const said = execFileSync(
    EVERYFRAME,
    ['record', '--off-cpu', ...flags, '--force', '-o', file, '--', program, kind, String(SECONDS)],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], timeout: 30_000 },
  );
  const own = new Map(
    said
      .trim()
      .split('\n')
      .map((line) => line.split(' '))
      .map(([name, ns]) => [name!, Number(ns)]),
  );
  const { profiles } = readProfiles(file, readFileSync(file));
  return { own, profile: profiles.find(({ type }) => type.sampleType.type === 'off_cpu')! };
}

/** What samples with that function on their stack add up to, nanoseconds. */
const waited = (profile: Profile, name: string): number =>
  profile.samples
    .filter(({ stack }) => stackNames(profile, stack).includes(name))
    .reduce((sum, { value }) => sum + value, 0);

describe.skipIf(missingRights)('time that threads wait', () => {
  let program: string;
  beforeAll(() => {
    program = compile('waits', 'gcc', ['-O1', '-g', '-fno-optimize-sibling-calls', '-pthread'], 'waits.c');
  });

  it.each(['sleeps', 'locks', 'reads', 'moves'])(
    'is within 3 % of what each function says itself: %s',
    (kind) => {
      const { own, profile } = record(kind, program, ALL);
      expect(profile.type.sampleType).toEqual({ type: 'off_cpu', unit: 'nanoseconds' });
      expect(own.size).toBeGreaterThan(0);
      for (const [name, ns] of own) expect(Math.abs(waited(profile, name) / ns - 1), name).toBeLessThan(0.03);
    },
    60_000,
  );

  it('is right within the budget as well: of those that wait often, some stand for others', () => {
    const { own, profile } = record('locks', program, ['--off-cpu-budget', '400']);
    for (const [name, ns] of own) expect(Math.abs(waited(profile, name) / ns - 1), name).toBeLessThan(0.12);
  }, 60_000);

  it('has no program in the kernel unless it is asked for', () => {
    expect(hasTool('bpftool')).toBe(true);
    const count = "bpftool prog show | grep -cE ' name (on_switch|on_waking|take_wait|report_waiting) '";
    const programs = (flags: string[]): number => {
      const file = join(scratchFolder, 'count.pb.gz');
      const { stdout } = spawnSync(
        EVERYFRAME,
        ['record', ...flags, '--force', '-o', file, '--', 'sh', '-c', count],
        { encoding: 'utf8', timeout: 30_000 },
      );
      return Number(stdout);
    };
    // other agents on this machine may have some
    const before = Number(spawnSync('sh', ['-c', count], { encoding: 'utf8' }).stdout);
    expect(programs([])).toBe(before);
    expect(programs(['--off-cpu'])).toBe(before + 4);
  }, 60_000);
});
