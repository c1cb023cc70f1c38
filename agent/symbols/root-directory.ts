/**
 * A directory tree that no path leads out of: the root of a profiled process, or the agent's own. Paths in it come
 * from foreign files, and the agent may read more than whoever wrote them: neither "..", nor a symbolic link, nor
 * a mounted /proc leads outside (openat2(2), RESOLVE_IN_ROOT); pipes and devices are looked at, never opened.
 */
import { type BigIntStats, closeSync, constants, fstatSync, openSync, statfsSync } from 'node:fs';
import { loadNative } from '../tracer/native.ts';

export interface RegularFile {
  fd: number;
  stats: BigIntStats;
}

/** Why there is nothing to read. */
export type NoFile = 'missing' | 'refused';

/** From open(2) of Linux; Node has no name for it. */
const O_PATH = 0o10000000;
const READ = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
const ENOENT = -2;
const ENOTDIR = -20;

/**
 * Reading a regular file of these takes from others what they wait for (trace_pipe, kmsg), or has no end. From
 * include/uapi/linux/magic.h.
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

export class RootDirectory {
  readonly #fd: number;

  /** Throws where `path` is no directory, or the process that it is the root of is gone. */
  constructor(path: string) {
    this.#fd = openSync(path, O_PATH | constants.O_DIRECTORY);
  }

  /** `mayRead` sees the file before it is opened. */
  openRegular(path: string, mayRead: (stats: BigIntStats) => boolean): RegularFile | NoFile {
    const native = loadNative();
    const name = native.openInRoot(this.#fd, path);
    if (name < 0) return name === ENOENT || name === ENOTDIR ? 'missing' : 'refused';
    try {
      const stats = fstatSync(name, { bigint: true });
      const link = `/proc/self/fd/${name}`;
      if (!stats.isFile() || PSEUDO_FILE_SYSTEMS.has(statfsSync(link).type) || !mayRead(stats))
        return 'refused';
      return { fd: openSync(link, READ), stats };
    } catch {
      return 'refused';
    } finally {
      // not by closeSync: Node warns where a worker closes what its fs module did not open
      native.closeFd(name);
    }
  }

  /** What a path leads to; '' where that is nothing. */
  identify(path: string): string {
    const native = loadNative();
    const name = native.openInRoot(this.#fd, path);
    if (name < 0) return '';
    try {
      return identityOf(fstatSync(name, { bigint: true }));
    } finally {
      native.closeFd(name);
    }
  }

  close(): void {
    closeSync(this.#fd);
  }
}

/** The agent reads with the rights of root, on behalf of a file or process that anybody may have made. */
export const isReadableBy = (uid: bigint, stats: BigIntStats): boolean =>
  uid === 0n || stats.uid === uid || (stats.mode & 0o004n) !== 0n;

/** Nobody can set the change time, so it tells a changed file from the original. */
export const identityOf = ({ dev, ino, size, ctimeNs }: BigIntStats): string =>
  `${dev}:${ino}:${size}:${ctimeNs}`;

let own: RootDirectory | undefined;

/** The agent's own root, of the host unless the agent runs in a container. */
export function ownRoot(): RootDirectory {
  own ??= new RootDirectory('/');
  return own;
}
