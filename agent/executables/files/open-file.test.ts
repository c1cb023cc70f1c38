import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { toFileKey, toPid } from '../../../common/base/brand.ts';
import { ForeignFiles } from '../../processes/foreign-files.ts';
import type { FileRecord } from '../../records/records.ts';
import { kernelDevice, openRecordedFile, reasonOf } from './open-file.ts';

const files = new ForeignFiles();
let directory = '';
let program = '';
const children: ChildProcess[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'open-'));
  program = join(directory, 'program');
  copyFileSync('/bin/sleep', program);
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  rmSync(directory, { recursive: true });
});

/** The event as BPF would send it: what the process maps, or a process that is gone. */
function recordOf(path: string, child?: ChildProcess): FileRecord {
  const stats = statSync(path, { bigint: true });
  const maps = child ? readFileSync(`/proc/${child.pid}/maps`, 'latin1') : '';
  const line = maps.split('\n').find((text) => text.includes(path) && text.includes(' r-xp '));
  const [start, end] = (line?.split(' ')[0] ?? '1000-2000').split('-').map((hex) => BigInt(`0x${hex}`));
  return {
    key: toFileKey('00000000000000aa'),
    pid: toPid(child?.pid ?? 0x3fff_ffff),
    inode: stats.ino,
    size: stats.size,
    ctimeNs: stats.ctimeNs,
    device: kernelDevice(stats.dev),
    generation: 0,
    vmaStart: start!,
    vmaEnd: end!,
    vmaOffset: 0n,
    path,
  };
}

async function start(): Promise<ChildProcess> {
  const child = spawn(program, ['1000']);
  children.push(child);
  await once(child, 'spawn');
  return child;
}

/** The first bytes, read through the descriptor; closes it. */
function readStart(opened: Awaited<ReturnType<typeof openRecordedFile>>): string {
  if (opened.kind !== 'opened') throw new Error(`${opened.kind}: ${opened.detail}`);
  const bytes = Buffer.alloc(4);
  readSync(opened.fd, bytes, 0, 4, 0);
  closeSync(opened.fd);
  return bytes.toString('latin1');
}

const ELF = '\x7fELF';
const isRoot = process.getuid?.() === 0;
const mountOverlay = `cd $(mktemp -d) && mount -t tmpfs none . && mkdir l u w m &&
  mount -t overlay overlay -o lowerdir=l,upperdir=u,workdir=w m`;
const canMountOverlay = spawnSync('unshare', ['-m', 'sh', '-c', mountOverlay]).status === 0;
if (!isRoot) console.log('skipped: files that were deleted or are in another root (needs root)');
if (!canMountOverlay) console.log('skipped: files on overlayfs, which may not be mounted here');

describe('the file that was mapped', () => {
  test('of a process that lives', async () => {
    const record = recordOf(program, await start());
    expect(readStart(await openRecordedFile(record, files))).toBe(ELF);
  });

  test.skipIf(!isRoot)('is found after it was deleted, and after another one took its name', async () => {
    const child = await start();
    const record = recordOf(program, child);
    copyFileSync('/bin/cat', join(directory, 'other'));
    renameSync(join(directory, 'other'), program);
    // Unlinking changed the change time: the kernel would have made another key, and its event says so.
    const ctimeNs = statSync(`/proc/${child.pid}/exe`, { bigint: true }).ctimeNs;
    const opened = await openRecordedFile({ ...record, ctimeNs }, files);
    expect(opened).toMatchObject({ kind: 'opened', path: expect.stringContaining('map_files') });
    expect(readStart(opened)).toBe(ELF);
    unlinkSync(program);
    expect(readStart(await openRecordedFile({ ...record, ctimeNs }, files))).toBe(ELF);
  });

  test.skipIf(!isRoot)('of a process with its own root, by the path that it has there', async () => {
    mkdirSync(join(directory, 'bin'));
    const busybox = join(directory, 'bin', 'program');
    execFileSync('gcc', ['-static', '-o', busybox, '-x', 'c', '-'], {
      input: '#include <unistd.h>\nint main(void) { for (;;) pause(); }',
    });
    const child = spawn('chroot', [directory, '/bin/program']);
    children.push(child);
    await once(child, 'spawn');
    await vi.waitFor(
      () => expect(readFileSync(`/proc/${child.pid}/cmdline`, 'latin1')).toMatch(/^\/bin\/program/),
      10_000,
    );
    const record = { ...recordOf(busybox), pid: toPid(child.pid!), path: '/bin/program' };
    const opened = await openRecordedFile(record, files);
    expect(opened).toMatchObject({ kind: 'opened', path: `/proc/${child.pid}/root/bin/program` });
    expect(readStart(opened)).toBe(ELF);
  });

  test.skipIf(!canMountOverlay)(
    'on overlayfs in another mount namespace, which shows another device',
    async () => {
      for (const path of ['merged', 'tmpfs', 'lower/bin'])
        mkdirSync(join(directory, path), { recursive: true });
      const real = join(directory, 'lower/bin/program');
      execFileSync('gcc', ['-static', '-o', real, '-x', 'c', '-'], {
        input: '#include <unistd.h>\nint main(void) { for (;;) pause(); }',
      });
      const script = `cd ${directory} && mount -t tmpfs none tmpfs && mkdir tmpfs/upper tmpfs/work &&
      mount -t overlay overlay -o lowerdir=lower,upperdir=tmpfs/upper,workdir=tmpfs/work merged &&
      exec chroot merged /bin/program`;
      const child = spawn('unshare', ['-m', 'sh', '-c', script]);
      children.push(child);
      await vi.waitFor(
        () => expect(readFileSync(`/proc/${child.pid}/cmdline`, 'latin1')).toMatch(/^\/bin\/program/),
        10_000,
      );
      // BPF sees the file of the layer; what the process's root shows is the overlay's.
      const record = { ...recordOf(real), pid: toPid(child.pid!), path: '/bin/program' };
      const shown = statSync(`/proc/${child.pid}/root/bin/program`, { bigint: true });
      expect(kernelDevice(shown.dev)).not.toBe(record.device);
      const opened = await openRecordedFile(record, files);
      expect(opened).toMatchObject({ kind: 'opened', path: `/proc/${child.pid}/root/bin/program` });
      expect(readStart(opened)).toBe(ELF);
    },
  );

  test('of a process that is gone, by its path', async () => {
    expect(readStart(await openRecordedFile(recordOf(program), files))).toBe(ELF);
  });

  test('on another device number, as overlayfs shows it, by size and change time', async () => {
    const record = { ...recordOf(program), device: 0x123, inode: 1n };
    expect(readStart(await openRecordedFile(record, files))).toBe(ELF);
  });
});

describe('anything else', () => {
  const fails = async (record: FileRecord) => (await openRecordedFile(record, files)).kind;

  test('gone', async () => {
    const record = recordOf(program);
    unlinkSync(program);
    expect(await fails(record)).toBe('gone');
    expect(await fails({ ...record, path: '' })).toBe('gone');
    expect(await fails({ ...record, path: 'memfd:x' })).toBe('gone');
  });

  test('changed: in size, in time, in place', async () => {
    const record = recordOf(program);
    expect(await fails({ ...record, size: record.size + 1n })).toBe('changed');
    expect(await fails({ ...record, ctimeNs: record.ctimeNs + 1n })).toBe('changed');
    expect(await fails({ ...record, inode: record.inode + 1n })).toBe('changed');
    copyFileSync('/bin/sleep', join(directory, 'same'));
    renameSync(join(directory, 'same'), program);
    expect(await fails(record)).toBe('changed');
  });

  test('no regular file: a directory, and a pipe that nobody writes to', async () => {
    const record = recordOf(program);
    const pipe = join(directory, 'pipe');
    execFileSync('mkfifo', [pipe]);
    expect(await fails({ ...record, path: directory })).toBe('not-regular');
    expect(await fails({ ...record, path: pipe })).toBe('not-regular');
    expect(await fails({ ...record, path: '/dev/null' })).toBe('not-regular');
  });

  test('a path through a file, or one that never ends', async () => {
    const record = recordOf(program);
    expect(await fails({ ...record, path: `${program}/x` })).toBe('gone');
    expect(await fails({ ...record, path: `/${'x'.repeat(5000)}` })).toBe('failed');
  });

  test('no descriptor is left behind', async () => {
    const count = () =>
      Number(execFileSync('sh', ['-c', `ls /proc/${process.pid}/fd | wc -l`], { encoding: 'utf8' }));
    const record = recordOf(program);
    const before = count();
    for (let i = 0; i < 50; i++) await openRecordedFile({ ...record, size: 1n }, files);
    expect(count()).toBeLessThan(before + 10);
  });
});

test('device numbers: from makedev() to the kernel', () => {
  // makedev(259, 3) and a minor number of more than 8 bits
  expect(kernelDevice(0x10303n)).toBe((259 << 20) | 3);
  expect(kernelDevice(0x10_0801n)).toBe((8 << 20) | 0x101);
});

test('errors that mean denied', () => {
  expect(reasonOf('EACCES')).toBe('denied');
  expect(reasonOf('EPERM')).toBe('denied');
  expect(reasonOf('EIO')).toBe('failed');
});

test('writing to the file afterwards makes it another one', async () => {
  const record = recordOf(program);
  writeFileSync(program, 'rewritten in place');
  expect((await openRecordedFile(record, files)).kind).toBe('changed');
});
