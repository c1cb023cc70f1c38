/**
 * Opens the file that BPF reported of a process, and no other. The event names it three ways: the mapping in the
 * process (works for deleted and replaced files, while the process lives), the path below the process's root
 * (for containers), and the path below our own root (when the process is gone). What is found is compared with
 * the size, the change time and, where the devices agree, the inode that the kernel saw.
 *
 * On overlayfs the kernel side sees the real file of a layer, stat() the overlay's device and sometimes another
 * inode number, but the same size and change time. The change time has nanoseconds and nobody can set it, so it
 * tells a replaced file from the original.
 */
import { constants } from 'node:fs';
import { getSystemErrorName } from 'node:util';
import type { NativeFile } from '../../base/native.ts';
import { closeFile, type ForeignFiles, NOBODY, type OnBehalfOf } from '../../processes/foreign-files.ts';
import type { FileRecord } from '../../records/records.ts';

export type OpenFailure =
  /** No such process and no such path any more. */
  | 'gone'
  /** A path led to another file. */
  | 'changed'
  | 'denied'
  /** A file server that does not answer. */
  | 'unanswered'
  /** The path leads to a directory, device, pipe or socket. */
  | 'not-regular'
  /** Any other error, such as ELOOP or EIO. */
  | 'failed';

export type OpenedFile = { kind: 'opened'; fd: number; path: string } | { kind: OpenFailure; detail: string };

/** The identity that the kernel saw. */
export type FileIdentity = Pick<FileRecord, 'inode' | 'size' | 'ctimeNs' | 'device'>;

/** Reasons why a path failed, in ascending order of what they tell: the last one is reported. */
const TELLING: readonly OpenFailure[] = ['gone', 'failed', 'not-regular', 'denied', 'changed', 'unanswered'];

export async function openRecordedFile(
  record: FileRecord,
  files: ForeignFiles,
  proc = '/proc',
): Promise<OpenedFile> {
  let failure: OpenedFile = { kind: 'gone', detail: 'the process ended, and the event has no path' };
  for (const path of placesOf(record, proc)) {
    const opened = await openVerified(path, record, files, record);
    // the other paths would lead to the same server
    if (opened.kind === 'opened' || opened.kind === 'unanswered') return opened;
    if (TELLING.indexOf(opened.kind) >= TELLING.indexOf(failure.kind as OpenFailure)) failure = opened;
  }
  return failure;
}

function placesOf(record: FileRecord, proc: string): string[] {
  const range = `${record.vmaStart.toString(16)}-${record.vmaEnd.toString(16)}`;
  const places = [`${proc}/${record.pid}/map_files/${range}`];
  if (record.path.startsWith('/')) {
    places.push(`${proc}/${record.pid}/root${record.path}`, `${proc}/self/root${record.path}`);
  }
  return places;
}

/**
 * Opens one path, in a process that may hang: behind it can be a file server that never answers. First only as a name, since
 * opening a device or a pipe for reading can block or do things; then for reading through that name, so that nobody can
 * swap the file in between.
 */
export async function openVerified(
  path: string,
  expected: FileIdentity,
  files: ForeignFiles,
  behalf: OnBehalfOf = { ...NOBODY, device: expected.device },
): Promise<OpenedFile> {
  const found = await files.lookAt(path, true, behalf);
  if (typeof found === 'number') {
    const code = getSystemErrorName(found);
    return { kind: reasonOf(code), detail: `${code}: ${path}` };
  }
  const mismatch = compareIdentity(found, expected);
  if (!mismatch) return { kind: 'opened', fd: found.fd, path };
  closeFile(found);
  return { ...mismatch, detail: `${path}: ${mismatch.detail}` };
}

/** True if a path leads to that file. Does not open it. */
export async function isSameFile(
  path: string,
  expected: FileIdentity,
  files: ForeignFiles,
): Promise<boolean> {
  const found = await files.lookAt(path, false, { ...NOBODY, device: expected.device });
  return typeof found !== 'number' && compareIdentity(found, expected) === undefined;
}

function compareIdentity(
  stats: NativeFile,
  expected: FileIdentity,
): { kind: OpenFailure; detail: string } | undefined {
  if ((stats.mode & constants.S_IFMT) !== constants.S_IFREG)
    return { kind: 'not-regular', detail: 'no regular file' };
  const changed = (what: string, is: bigint, was: bigint) =>
    ({ kind: 'changed', detail: `${what} is ${is}, was ${was} when sampled` }) as const;
  if (stats.size !== expected.size) return changed('size', stats.size, expected.size);
  if (stats.ctimeNs !== expected.ctimeNs) return changed('change time', stats.ctimeNs, expected.ctimeNs);
  if (kernelDevice(stats.dev) === expected.device && stats.ino !== expected.inode) {
    return changed('inode', stats.ino, expected.inode);
  }
  return undefined;
}

/** From the user-space encoding of a device number to the kernel's own: include/linux/kdev_t.h. */
export function kernelDevice(dev: bigint): number {
  const major = ((dev >> 8n) & 0xfffn) | ((dev >> 32n) & 0xfffff000n);
  const minor = (dev & 0xffn) | ((dev >> 12n) & 0xffffff00n);
  return Number(((major << 20n) | minor) & 0xffffffffn);
}

export function reasonOf(code: string | undefined): OpenFailure {
  switch (code) {
    case 'ENOENT':
    case 'ESRCH':
    case 'ENOTDIR':
    case 'ESTALE':
      return 'gone';
    case 'EACCES':
    case 'EPERM':
      return 'denied';
    case 'ETIMEDOUT':
      return 'unanswered';
    case 'ENXIO':
    case 'EISDIR':
      return 'not-regular';
    default:
      return 'failed';
  }
}
