/** Files that processes run: what /proc says of them before they are sampled. */
import { readdirSync, readlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type Pid, toPid } from '../../common/base/brand.ts';
import { loadNative } from '../base/native.ts';
import type { ForeignReader } from './foreign-reader.ts';

export interface MappedFile {
  /** As the process knows it. */
  path: string;
  /** Opens the very file, also one that was replaced: /proc/PID/map_files/…; needs CAP_CHECKPOINT_RESTORE. */
  link: string;
}

/** A machine with more has its other programs reported as they are sampled. */
const MAX_PROCESSES = 16_384;
/** Programs whose mappings are read, each once; a browser has 1 MiB of them. */
const MAX_PROGRAMS = 64;
/** Some 65,000 mappings with names. */
const MAX_MAPS_BYTES = 8 << 20;

/** Executable files that a process has mapped, each once; none if it has a root of its own or is gone. */
export function mappedExecutables(pid: Pid, reader: ForeignReader, proc = '/proc'): MappedFile[] {
  try {
    const { rootIdentity } = loadNative();
    if (rootIdentity(join(proc, `${pid}/root/`)) !== rootIdentity('/')) return [];
    const lines = readMaps(pid, reader).matchAll(/^([0-9a-f]+-[0-9a-f]+) ..x. \S+ \S+ \d+ +(\/.*)$/gm);
    const byPath = new Map(
      Array.from(lines, ([, range, path]) => [
        path!,
        { path: path!, link: join(proc, `${pid}/map_files/${withoutZeros(range!)}`) },
      ]),
    );
    return [...byPath.values()];
  } catch {
    return [];
  }
}

/** Code of a file in a process. */
export interface CodeMapping {
  start: number;
  /** In the file. */
  offset: number;
  inode: bigint;
  /** As the process knows it. */
  path: string;
  /** To the mapped file itself, whatever stands at the path by now. */
  link: string;
}

/** As the kernel names such a link: in a list of mappings addresses have eight digits at least. */
const unpadded = (address: string): string => address.replace(/^0+(?=.)/, '');

/** Nothing where the process is gone. */
export function codeMappings(pid: Pid, reader: ForeignReader): CodeMapping[] {
  const lines = readMaps(pid, reader).matchAll(
    /^([0-9a-f]+)-([0-9a-f]+) ..x. ([0-9a-f]+) \S+ (\d+) +(\/.*?)(?: \(deleted\))?$/gm,
  );
  return Array.from(lines, ([, start, end, offset, inode, path]) => ({
    start: Number.parseInt(start!, 16),
    link: `/proc/${pid}/map_files/${unpadded(start!)}-${unpadded(end!)}`,
    offset: Number.parseInt(offset!, 16),
    inode: BigInt(inode!),
    path: path!,
  }));
}

/**
 * Links to the files of a kind that programs of that kind run now, by the names of both: of `python3` its program and
 * `libpython3.so`. `isOne` is given the last component of a path.
 */
export function runningFiles(
  isOne: (name: string) => boolean,
  reader: ForeignReader,
  proc = '/proc',
): string[] {
  const links = new Map<string, string>();
  const programs = new Set<string>();
  for (const pid of processes(proc)) {
    const program = programOf(join(proc, String(pid)));
    if (!isOne(basename(program)) || programs.has(program) || programs.size >= MAX_PROGRAMS) continue;
    const files = mappedExecutables(pid, reader, proc);
    // else it is gone, or a container's: the next one of that name may not be
    if (files.length > 0) programs.add(program);
    for (const { path, link } of files) if (isOne(basename(path))) links.set(path, link);
  }
  return [...links.values()];
}

/** The lock on its mappings may be held by a thread of it that waits for a file server. */
const readMaps = (pid: Pid, reader: ForeignReader): string =>
  reader.readFile(pid, 'maps', MAX_MAPS_BYTES)?.toString('latin1') ?? '';

const processes = (proc: string): Pid[] =>
  readdirSync(proc)
    .map((name) => toPid(Number(name)))
    .filter((pid) => pid > 0)
    .slice(0, MAX_PROCESSES);

/** '' for a kernel thread, and for a process that is gone. */
function programOf(directory: string): string {
  try {
    return readlinkSync(join(directory, 'exe'));
  } catch {
    return '';
  }
}

/** maps writes eight digits at least, where a program that is not PIE begins; map_files has no such names. */
const withoutZeros = (range: string): string => range.replace(/\b0+(?=[0-9a-f])/g, '');
