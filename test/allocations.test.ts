/** --event malloc: programs that count their own bytes. */
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readProfiles } from '../common/profile/formats/formats.ts';
import { stackNames } from '../common/profile/model/frame-name.ts';
import type { Profile } from '../common/profile/model/profile.ts';
import { compile, hasTool, missingRights, scratchFolder } from './support/fixtures.ts';

const EVERYFRAME = join(import.meta.dirname, '../bin/everyframe');

interface Recorded {
  /** What the program itself has counted. */
  said: number[];
  bytesOf(type: string, name: string): number;
  told: string;
}

function record(event: string, command: string[]): Recorded {
  const file = join(scratchFolder, 'allocations.pb.gz');
  const flags = ['--event', event, '--event-budget', '10000', '--force', '-o', file];
  const { stdout, stderr, status } = spawnSync(EVERYFRAME, ['record', ...flags, '--', ...command], {
    encoding: 'utf8',
    timeout: 60_000,
  });
  expect(status, stderr).toBe(0);
  const { profiles } = readProfiles(file, readFileSync(file));
  const profileOf = (type: string): Profile =>
    profiles.find(({ type: { sampleType } }) => sampleType.type === type && sampleType.unit === 'bytes')!;
  return {
    said: stdout.trim().split(' ').map(Number),
    bytesOf: (type, name) => bytesUnder(profileOf(type), name),
    told: stderr,
  };
}

const bytesUnder = (profile: Profile, name: string): number =>
  profile.samples
    .filter(({ stack }) => stackNames(profile, stack).includes(name))
    .reduce((sum, { value }) => sum + value, 0);

/** Three standard errors where each byte is taken with a chance of one in `every` at least. */
const tolerance = (bytes: number, every: number): number => 3 * Math.sqrt(bytes * every);

describe.skipIf(missingRights)('allocations', () => {
  const program = compile('allocations', 'gcc', ['-O1', '-g', '-fno-builtin'], 'allocations.c');

  it('are right to the byte, and what is not freed of them, where all are taken', () => {
    const { said, bytesOf, told } = record('malloc,every=1', [program, '400']);
    expect(told).toMatch(/malloc,every=1: 8\d\d events, the stacks of all of them/);
    expect(bytesOf('alloc_space', 'one')).toBe(said[0]);
    expect(bytesOf('inuse_space', 'one')).toBe(said[1]);
    expect(bytesOf('alloc_space', 'other')).toBe(said[2]);
    expect(bytesOf('inuse_space', 'other')).toBe(said[3]);
  });

  it('are within three standard errors where some stand for others', () => {
    const every = 1 << 20;
    const { said, bytesOf, told } = record('malloc,every=1MiB', [program, '10000']);
    expect(told).toMatch(/20,0\d\d events, the stacks of \d,\d\d\d$/m);
    const found = [
      ...[bytesOf('alloc_space', 'one'), bytesOf('inuse_space', 'one')],
      ...[bytesOf('alloc_space', 'other'), bytesOf('inuse_space', 'other')],
    ];
    for (const [i, bytes] of found.entries())
      expect(Math.abs(bytes - said[i]!), `${bytes} of ${said[i]}`).toBeLessThan(tolerance(said[i]!, every));
  });

  it.skipIf(!hasTool('go'))('of Go are those of its own allocator', () => {
    const program = join(scratchFolder, 'allocations-go');
    const source = join(import.meta.dirname, 'fixtures/allocations.go');
    execFileSync('go', ['build', '-o', program, source], { env: { ...process.env, GO111MODULE: 'off' } });
    const { said, bytesOf } = record('malloc,every=64KiB', [program]);
    for (const [i, name] of ['main.one', 'main.other'].entries())
      expect(Math.abs(bytesOf('alloc_space', name) - said[i]!)).toBeLessThan(tolerance(said[i]!, 64 << 10));
  });

  it('of a file without an allocator are told', () => {
    const { stderr } = spawnSync(
      EVERYFRAME,
      ['record', '--event', 'malloc:/bin/true', '-o', '-', '-d', '1'],
      {
        encoding: 'utf8',
      },
    );
    expect(stderr).toContain('/bin/true has no function of an allocator, such as malloc');
  });
});
