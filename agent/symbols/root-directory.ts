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

/** The file for whose sake another one is opened: whoever may change it may decide what it is named. */
export type FileOwner = Pick<BigIntStats, 'uid' | 'gid' | 'mode'>;

/** On whose behalf the agent reads with the rights of root. Of groups only that of a process is known. */
export interface Reader {
  uid: bigint;
  gid?: bigint;
}

const NOBODY = 0xffff_ffff;

export class RootDirectory {
  readonly #fd: number;

  /** Throws where `path` is no directory, or the process that it is the root of is gone. */
  constructor(path: string) {
    this.#fd = openSync(path, O_PATH | constants.O_DIRECTORY);
  }

  /**
   * Refused where somebody else than root and those who may change `owner` can change it, or where the path leads;
   * `owner` undefined: it may be anybody's. So is what `reader` can't read.
   */
  openRegular(path: string, owner: FileOwner | undefined, reader: Reader): RegularFile | NoFile {
    const native = loadNative();
    const name = native.openBelow(this.#fd, path, {
      uid: owner ? Number(owner.uid) : NOBODY,
      gid: Number(owner?.gid ?? 0n),
      mode: Number(owner?.mode ?? 0n),
      reader: Number(reader.uid),
      readerGroup: Number(reader.gid ?? NOBODY),
    });
    if (name < 0) return name === ENOENT || name === ENOTDIR ? 'missing' : 'refused';
    try {
      const stats = fstatSync(name, { bigint: true });
      const link = `/proc/self/fd/${name}`;
      if (!stats.isFile() || PSEUDO_FILE_SYSTEMS.has(statfsSync(link).type) || !isReadableBy(reader, stats))
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

const isReadableBy = ({ uid, gid }: Reader, { mode, ...file }: BigIntStats): boolean =>
  uid === 0n ||
  (mode & 0o004n) !== 0n ||
  (file.uid === uid && (mode & 0o400n) !== 0n) ||
  (file.gid === gid && (mode & 0o040n) !== 0n);

/** Whether that is believed is another question: on FUSE the server says what it likes. Elsewhere nobody can set the change time, so it tells a changed file from the original. */
export const identityOf = ({ dev, ino, size, ctimeNs }: BigIntStats): string =>
  `${dev}:${ino}:${size}:${ctimeNs}`;

let own: RootDirectory | undefined;

/** The agent's own root, of the host unless the agent runs in a container. */
export function ownRoot(): RootDirectory {
  own ??= new RootDirectory('/');
  return own;
}
