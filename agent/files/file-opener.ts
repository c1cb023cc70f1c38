/**
 * How files are opened that foreign files and processes lead to, and those of the cache. Directly where a person names
 * the file; a worker of the agent has no right to open anything, and asks a process that has (agent/worker-main/opener-client.ts).
 */
import {
  type BigIntStats,
  constants,
  fstatSync,
  openSync,
  renameSync,
  rmSync,
  statfsSync,
  utimesSync,
} from 'node:fs';
import { loadNative } from '../base/native.ts';
import { openNameless } from './nameless-file.ts';
import { makeCacheDirectory } from './own-directory.ts';
import { pruneFiles } from './prune-files.ts';

/** Facts that decide whether a file is read. */
export type FileFacts = Pick<BigIntStats, 'dev' | 'ino' | 'size' | 'ctimeNs' | 'uid' | 'gid' | 'mode'>;

/** Who may decide what a path leads to, and who may read it: see `openBelow` of the addon. */
export interface Trust {
  uid: number;
  gid: number;
  mode: number;
  reader: number;
  readerGroup: number;
}

/** Files of a process in /proc. */
export type ProcessFile = 'stat' | 'status';

/** Why there is nothing to read. */
export type NoFile = 'missing' | 'refused';

/** The file that a path leads to, not opened for reading yet. */
export interface Looked {
  stats: FileFacts;
  /** Neither a pipe nor a device, nor of /proc or the like. */
  isPlain: boolean;
  /** Its descriptor, for reading. Throws where that is refused. */
  open(): number;
  close(): void;
}

/** The least recently used leave until no more is left than that. */
export interface CacheLimits {
  maxBytes: number;
  maxFiles: number;
}

export interface FileOpener {
  /**
   * Below a directory, or where that is undefined, our own root. Without `trust` whoever it was that led there, and then
   * it can be looked at only.
   */
  look(root: number | undefined, path: string, trust?: Trust): Looked | NoFile;
  /** Descriptor of a process's root directory, or of what /proc has of it. Throws where the process is gone. */
  openOfProcess(proc: string, pid: number, which: 'root' | ProcessFile): number;
  /** Makes a directory of the cache if need be. Throws where it can't be made, or others may write to it. */
  makeCacheDirectory(path: string): void;
  /** For reading; not through a link. Throws where there is none. */
  openCached(path: string): number;
  /** Throws where there is one already. */
  createCached(path: string): number;
  renameCached(from: string, to: string): void;
  removeCached(path: string): void;
  /** It was used now. */
  touchCached(path: string): void;
  /** Prunes files whose names end in `ending`, or in that and the number of a process. */
  pruneCached(directory: string, ending: string, limits: CacheLimits): void;
  /** Descriptor of a new file without a name. */
  openScratch(directory: string): number;
}

/** From open(2) of Linux; Node has no name for it. */
const O_PATH = 0o10000000;
const READ = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
const ENOENT = -2;
const ENOTDIR = -20;
const TYPE_MASK = BigInt(constants.S_IFMT);
const REGULAR = BigInt(constants.S_IFREG);

/**
 * Reading a regular file of these takes from others what they wait for (trace_pipe, kmsg), or has no end. From
 * include/uapi/linux/magic.h; confine/opener.cc has the same.
 */
const PSEUDO_FILE_SYSTEMS: ReadonlySet<number> = new Set([
  0x9fa0, // proc
  0x6265_6572, // sysfs
  0x6462_6720, // debugfs
  0x7472_6163, // tracefs
  0x7363_6673, // securityfs
  0x0027_e0eb, // cgroup
  0x6367_7270, // cgroup2
  0xcafe_4a11, // bpf
  0x6265_6570, // configfs
  0x6165_676c, // pstore
  0xde5e_81e4, // efivarfs
  0xf97c_ff8c, // selinuxfs
]);

export const isRegular = ({ mode }: FileFacts): boolean => (mode & TYPE_MASK) === REGULAR;

/** By the number that openat2(2) ends with, negative. */
export const noFileOf = (error: number): NoFile =>
  error === ENOENT || error === ENOTDIR ? 'missing' : 'refused';

let own: number | undefined;

export const DIRECT: FileOpener = {
  look(root, path, trust) {
    if (root === undefined) own ??= openSync('/', O_PATH | constants.O_DIRECTORY);
    const native = loadNative();
    const name = trust ? native.openBelow(root ?? own!, path, trust) : native.openInRoot(root ?? own!, path);
    if (name < 0) return noFileOf(name);
    // not by closeSync: Node warns where a worker closes what its fs module did not open
    const close = (): void => native.closeFd(name);
    try {
      const link = `/proc/self/fd/${name}`;
      const stats = fstatSync(name, { bigint: true });
      const isPlain = isRegular(stats) && !PSEUDO_FILE_SYSTEMS.has(statfsSync(link).type);
      return { stats, isPlain, open: () => openSync(link, READ), close };
    } catch {
      close();
      return 'refused';
    }
  },
  openOfProcess: (proc, pid, which) =>
    openSync(
      `${proc}/${pid}/${which}`,
      which === 'root' ? O_PATH | constants.O_DIRECTORY : constants.O_RDONLY,
    ),
  makeCacheDirectory,
  openCached: (path) => openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK),
  createCached: (path) => openSync(path, 'wx', 0o600),
  renameCached(from, to) {
    // to rename it over the old one would wait for the disk on ext4, for seconds where that is busy
    rmSync(to, { force: true });
    renameSync(from, to);
  },
  removeCached: (path) => rmSync(path, { force: true }),
  touchCached(path) {
    const now = new Date();
    utimesSync(path, now, now);
  },
  pruneCached: pruneFiles,
  openScratch: openNameless,
};

let opener = DIRECT;

export const fileOpener = (): FileOpener => opener;

/** For all that this process opens from then on. */
export function useFileOpener(other: FileOpener): void {
  opener = other;
}
