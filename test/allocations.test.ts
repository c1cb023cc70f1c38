/** --event malloc: programs that count their own bytes. */
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { findProbedFile } from '../agent/events/probed-file.ts';
import { findPythonAllocator } from '../agent/events/python-allocator.ts';
import { bufferSource } from '../common/base/byte-source.ts';
import { parseElf } from '../common/elf/elf.ts';
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

function record(event: string, command: string[], environment: NodeJS.ProcessEnv = {}): Recorded {
  const file = join(scratchFolder, 'allocations.pb.gz');
  const flags = ['--event', event, '--event-budget', '10000', '--force', '-o', file];
  const { stdout, stderr, status } = spawnSync(EVERYFRAME, ['record', ...flags, '--', ...command], {
    encoding: 'utf8',
    timeout: 60_000,
    env: { ...process.env, ...environment },
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

/** Four standard errors where each byte is taken with a chance of one in `every` at least. */
const tolerance = (bytes: number, every: number): number => 4 * Math.sqrt(bytes * every);

const FLAGS = ['-O1', '-g', '-fno-builtin'];
const JEMALLOC = findLibrary('libjemalloc');
const TCMALLOC = findLibrary('libtcmalloc_minimal');
const MACHINE = process.arch === 'arm64' ? 'aarch64' : 'x86_64';
const MUSL = hasTool('musl-gcc') && `/lib/ld-musl-${MACHINE}.so.1`;

function findLibrary(name: string): string | undefined {
  try {
    return findProbedFile(name);
  } catch {
    console.log(`skipped: no ${name}`);
    return undefined;
  }
}

/** Without a profile compiled into it, as Debian 12's has none; its program python3 has one. */
const LIBPYTHON = findLibpython(`/usr/lib/${MACHINE}-linux-gnu`);

function findLibpython(folder: string): string | undefined {
  const names = existsSync(folder) ? readdirSync(folder) : [];
  const found = names
    .filter((name) => /^libpython3\.\d+\.so\.1\.0$/.test(name))
    .map((name) => join(folder, name))
    .find((path) => findPythonAllocator(parseElf(bufferSource(readFileSync(path)))) instanceof Map);
  if (found === undefined) console.log('skipped: no libpython3 whose allocator can be probed');
  return found;
}

function expectExactly({ said, bytesOf }: Recorded): void {
  const found = ['one', 'other'].flatMap((name) => [
    bytesOf('alloc_space', name),
    bytesOf('inuse_space', name),
  ]);
  expect(found).toEqual(said);
}

describe.skipIf(missingRights)(
  'where all are taken, allocations are right to the byte, and what is not freed of them',
  () => {
    it('of a program that has freed all of it long before its end', () => {
      const program = compile('frees-all', 'gcc', FLAGS, 'frees-all.c');
      const { bytesOf } = record('malloc,every=1', [program]);
      expect(bytesOf('alloc_space', 'take')).toBe(64 << 20);
      expect(bytesOf('inuse_space', 'take')).toBe(0);
    });

    it('of the C library', () => {
      const program = compile('allocations', 'gcc', FLAGS, 'allocations.c');
      const recorded = record('malloc,every=1', [program, '400']);
      expect(recorded.told).toMatch(/malloc,every=1: 8\d\d events, the stacks of all of them/);
      expect(recorded.bytesOf('alloc_space', 'refused')).toBe(0);
      expectExactly(recorded);
    });

    // of one file, so that others are not slowed down meanwhile
    it.each([
      ['gcc', 'allocations.c'],
      ['g++', 'allocations.cc'],
    ])('of a program that has all libraries in it: %s', (compiler, source) => {
      const program = compile(`static-${compiler}`, compiler, [...FLAGS, '-static'], source);
      expectExactly(record(`malloc:${program},every=1`, [program, '100']));
    });

    it.skipIf(!MUSL)('of musl, as a library and within the program', () => {
      const shared = compile('musl', 'musl-gcc', FLAGS, 'allocations.c');
      expectExactly(record(`malloc:${MUSL},every=1`, [shared, '100']));
      const whole = compile('musl-static', 'musl-gcc', [...FLAGS, '-static'], 'allocations.c');
      expectExactly(record(`malloc:${whole},every=1`, [whole, '100']));
    });

    it.each([
      ['jemalloc', JEMALLOC],
      ['tcmalloc', TCMALLOC],
    ])('of %s, linked to or loaded before the others, and by C++', (name, library) => {
      if (library === undefined) return;
      const linked = compile(name, 'gcc', FLAGS, 'allocations.c', library);
      expectExactly(record(`malloc:${library},every=1`, [linked, '100']));
      const preloaded = compile('allocations-cc', 'g++', FLAGS, 'allocations.cc');
      expectExactly(record(`malloc:${library},every=1`, [preloaded, '100'], { LD_PRELOAD: library }));
    });
  },
);

describe.skipIf(missingRights)('allocations', () => {
  const program = compile('allocations', 'gcc', FLAGS, 'allocations.c');

  it('are within four standard errors where some stand for others', () => {
    // few enough that all stacks are within the budget
    const every = 4 << 20;
    const { said, bytesOf, told } = record('malloc,every=4MiB', [program, '12000']);
    expect(told).toMatch(/24,0\d\d events, the stacks of \d,\d\d\d$/m);
    const found = [
      ...[bytesOf('alloc_space', 'one'), bytesOf('inuse_space', 'one')],
      ...[bytesOf('alloc_space', 'other'), bytesOf('inuse_space', 'other')],
    ];
    for (const [i, bytes] of found.entries())
      expect(Math.abs(bytes - said[i]!), `${bytes} of ${said[i]}`).toBeLessThan(tolerance(said[i]!, every));
  });

  function expectPythons(event: string, program: string, environment: NodeJS.ProcessEnv = {}): void {
    const script = join(import.meta.dirname, 'fixtures/allocations.py');
    const { said, bytesOf } = record(`${event},every=4KiB`, [program, script, '3000'], environment);
    for (const [i, name] of ['one', 'other'].entries())
      for (const [j, type] of ['alloc_space', 'inuse_space'].entries()) {
        const counted = said[2 * i + j]!;
        const found = bytesOf(type, name);
        expect(Math.abs(found - counted), `${type} of ${name}: ${found} of ${counted}`).toBeLessThan(
          tolerance(counted, 8 << 10),
        );
      }
  }

  it.skipIf(!hasTool('/usr/bin/python3'))(
    "of Python's small objects are those of malloc() where it is asked to use that",
    () => {
      // of its own, so that other programs are not slowed down meanwhile
      const libc = join(mkdtempSync(join(scratchFolder, 'libc-')), 'libc.so.6');
      copyFileSync(findProbedFile('libc'), libc);
      const environment = { PYTHONMALLOC: 'malloc', LD_LIBRARY_PATH: dirname(libc) };
      expectPythons(`malloc:${libc}`, '/usr/bin/python3', environment);
    },
  );

  it.skipIf(LIBPYTHON === undefined)(
    "of Python's objects are those of its own allocator, and those that it asks malloc() for count once",
    () => expectPythons('malloc', compile('embed-python', 'gcc', [], 'embed-python.c', LIBPYTHON!)),
  );

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
