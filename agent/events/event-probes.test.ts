import { execFileSync } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  mkdtempSync,
  openSync,
  renameSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { compile } from '../../test/support/fixtures.ts';
import { createFileWorkers } from '../workers/file-workers.ts';
import { EventProbes } from './event-probes.ts';
import { parseEvent } from './event-spec.ts';
import type { ProbeSite } from './probe-site.ts';
import { findProbedFile } from './probed-file.ts';

const workers = createFileWorkers();
afterAll(() => workers.stop());

const folder = mkdtempSync(join(tmpdir(), 'everyframe-probes-'));
const library = join(folder, 'lib.so');
/** As an upgrade does it. */
function replaceBy(write: (path: string) => void): void {
  const next = join(folder, 'next');
  write(next);
  renameSync(next, library);
}
const withLibc = (path: string): void => copyFileSync(findProbedFile('libc'), path);

test('a file that is replaced has its probes set anew; one that has lost its function is told', async () => {
  replaceBy(withLibc);
  const set: [number, readonly ProbeSite[]][] = [];
  const warnings: string[] = [];
  const target = {
    setSites(event: number, sites: readonly ProbeSite[]) {
      set.push([event, sites]);
      return [];
    },
  };
  const probes = new EventProbes(workers, target, (message) => void warnings.push(message));
  await probes.start([parseEvent('page-faults'), parseEvent(`uprobe:${library}:malloc`)]);
  expect(set).toEqual([
    [
      1,
      [{ path: library, offset: expect.any(Number), semaphore: 0, program: 'on_probe', isAtReturn: false }],
    ],
  ]);

  await probes.follow();
  expect(set).toHaveLength(1);

  replaceBy(withLibc);
  await probes.follow();
  expect(set).toEqual([set[0], set[0]]);
  expect(probes.stats).toEqual({ sites: 2, refused: 0, followed: 1, lost: 0 });

  replaceBy((path) => writeFileSync(path, 'no program'));
  await probes.follow();
  await probes.follow();
  expect(warnings).toEqual([
    expect.stringMatching(/was replaced: .*lib\.so can't be searched .*no ELF file/),
  ]);
  expect(probes.stats.lost).toBe(1);

  // a link to itself: there is no file, as where a file server has gone
  replaceBy((path) => symlinkSync(library, path));
  await probes.follow();
  replaceBy(withLibc);
  await probes.follow();
  expect(probes.stats).toMatchObject({ followed: 2, lost: 1 });
  await probes.stop();
});

/** A note of a probe without arguments, as sys/sdt.h has it. */
const NOTE = [
  ...['990: nop', '.pushsection .note.stapsdt,"","note"', '.balign 4', '.4byte 992f-991f,994f-993f,3'],
  ...['991: .asciz "stapsdt"', '992: .balign 4', '993: .8byte 990b,0,0', '.asciz "shop","sold",""'],
  ...['994: .balign 4', '.popsection'],
];

test('allocators are looked for in deleted files as well, and in no file in vain', async () => {
  const deleted = join(folder, 'deleted');
  withLibc(deleted);
  const fd = openSync(deleted, 'r');
  unlinkSync(deleted);
  const broken = join(folder, 'broken');
  writeFileSync(broken, 'no program');
  const sites: ProbeSite[] = [];
  const warnings: string[] = [];
  const target = {
    setSites(_: number, all: readonly ProbeSite[]) {
      sites.push(...all);
      return [];
    },
  };
  const probes = new EventProbes(workers, target, (message) => void warnings.push(message));
  const running = `/proc/${process.pid}/fd/${fd}`;
  await probes.start([parseEvent('malloc')], [broken, running]);
  await probes.stop();
  closeSync(fd);
  expect(sites.map(({ path }) => path)).toContain(running);
  expect(warnings).toEqual([expect.stringMatching(/^malloc: .*broken can't be searched .*no ELF file/)]);
  expect(probes.stats.lost).toBe(1);
});

test('a CPython whose allocator no probe sees is told, and named alone it is an error', async () => {
  const shapes = ['-DPROFILE', '-DLTO'];
  const python = compile('python', 'gcc', ['-w', '-O2', ...shapes], 'fake-python-allocator.c');
  const warnings: string[] = [];
  const probes = new EventProbes(workers, { setSites: () => [] }, (message) => void warnings.push(message));
  await probes.start([parseEvent('malloc')], [python]);
  expect(warnings.filter((one) => one.includes(python))).toEqual([
    expect.stringMatching(
      /^malloc: \S+ is CPython, and the allocator of its objects was compiled into its callers .*PYTHONMALLOC=malloc/,
    ),
  ]);
  await expect(probes.start([parseEvent(`malloc:${python}`)])).rejects.toThrow(
    'is CPython, and the allocator',
  );
  await probes.stop();
});

test('places that are too many are told', async () => {
  const shop = join(folder, 'shop');
  const code = ['.rept 300', ...NOTE, '.endr'].map((line) => JSON.stringify(`${line}\n`)).join(' ');
  execFileSync('gcc', ['-o', shop, '-x', 'c', '-'], { input: `int main() { asm volatile(${code}); }` });
  const warnings: string[] = [];
  const counts: number[] = [];
  const target = {
    setSites(_: number, sites: readonly ProbeSite[]) {
      counts.push(sites.length);
      return [];
    },
  };
  const probes = new EventProbes(workers, target, (message) => void warnings.push(message));
  await probes.start([parseEvent(`usdt:${shop}:shop:sold`)]);
  await probes.stop();
  expect(counts).toEqual([256]);
  expect(warnings).toEqual([
    `usdt:${shop}:shop:sold: it is at 300 places of ${shop}, of which 256 are probed`,
  ]);
});

test('a function that is not there is told', async () => {
  const probes = new EventProbes(workers, { setSites: () => [] }, () => {});
  await expect(probes.start([parseEvent('uprobe:libc:no_such_function')])).rejects.toThrow(
    /libc\.so\.6 has no function no_such_function/,
  );
  await probes.stop();
});

test('probes that the kernel refuses are told and counted; where it refuses all of them, nothing starts', async () => {
  let refuses = (_: ProbeSite): boolean => false;
  const warnings: string[] = [];
  const target = {
    setSites: (_: number, sites: readonly ProbeSite[]) =>
      sites.filter(refuses).map((site) => ({ site, why: 'as a test' })),
  };
  const probes = new EventProbes(workers, target, (message) => void warnings.push(message));
  const event = parseEvent('uretprobe:libc:malloc');
  refuses = ({ isAtReturn }) => isAtReturn;
  await probes.start([event]);
  expect(warnings).toEqual([
    expect.stringMatching(
      /^uretprobe:libc:malloc: the kernel refuses 1 of its 2 probes: .*libc\.so\.6\+0x\w+ \(as a test\)$/,
    ),
  ]);
  expect(probes.stats).toMatchObject({ sites: 1, refused: 1 });

  await probes.stop();

  refuses = () => true;
  const others = new EventProbes(workers, target, (message) => void warnings.push(message));
  await expect(others.start([event])).rejects.toThrow(
    /the kernel refuses 2 of its 2 probes: [^ ]*\+0x\w+ \(as a test\)$/,
  );
  await others.stop();
});
