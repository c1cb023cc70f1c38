/**
 * A directory tree that no path leads out of: the root of a profiled process, or the agent's own. Paths in it come
 * from foreign files, and the agent may read more than whoever wrote them: neither "..", nor a symbolic link, nor
 * a mounted /proc leads outside (openat2(2), RESOLVE_IN_ROOT); pipes and devices are looked at, never opened.
 */
import { closeSync, constants, openSync } from 'node:fs';
import { loadNative } from '../base/native.ts';
import { type FileFacts, fileOpener, type Looked, type NoFile } from './file-opener.ts';

export interface RegularFile {
  fd: number;
  stats: FileFacts;
}

/** From open(2) of Linux; Node has no name for it. */
const O_PATH = 0o10000000;

/** The file for whose sake another one is opened: whoever may change it may decide what it is named. */
export type FileOwner = Pick<FileFacts, 'uid' | 'gid' | 'mode'>;

/** On whose behalf the agent reads with the rights of root. Of groups only that of a process is known. */
export interface Reader {
  uid: bigint;
  gid?: bigint;
}

const NOBODY = 0xffff_ffff;

export class RootDirectory {
  /** Undefined: our own. */
  readonly #fd: number | undefined;

  /** Takes a path, or a descriptor that it then owns; undefined: our own root. Throws where a path is not a directory. */
  constructor(place: string | number | undefined) {
    this.#fd = typeof place === 'string' ? openSync(place, O_PATH | constants.O_DIRECTORY) : place;
  }

  /** Copies a descriptor that stays the caller's. */
  static copyOf(fd: number): RootDirectory {
    return new RootDirectory(loadNative().duplicate(fd));
  }

  /**
   * Refused where somebody else than root and those who may change `owner` can change it, or where the path leads;
   * `owner` undefined: it may be anybody's. So is what `reader` can't read.
   */
  openRegular(path: string, owner: FileOwner | undefined, reader: Reader): RegularFile | NoFile {
    const looked = fileOpener().look(this.#fd, path, {
      uid: owner ? Number(owner.uid) : NOBODY,
      gid: Number(owner?.gid ?? 0n),
      mode: Number(owner?.mode ?? 0n),
      reader: Number(reader.uid),
      readerGroup: Number(reader.gid ?? NOBODY),
    });
    return typeof looked === 'string' ? looked : openLooked(looked, reader);
  }

  /** Identity of the file that a path leads to; '' if there is none. */
  identify(path: string): string {
    const looked = fileOpener().look(this.#fd, path);
    if (typeof looked === 'string') return '';
    looked.close();
    return identityOf(looked.stats);
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
  }
}

function openLooked(looked: Looked, reader: Reader): RegularFile | NoFile {
  try {
    const { stats } = looked;
    return looked.isPlain && isReadableBy(reader, stats) ? { fd: looked.open(), stats } : 'refused';
  } catch {
    return 'refused';
  } finally {
    looked.close();
  }
}

const isReadableBy = ({ uid, gid }: Reader, { mode, ...file }: FileFacts): boolean =>
  uid === 0n ||
  (mode & 0o004n) !== 0n ||
  (file.uid === uid && (mode & 0o400n) !== 0n) ||
  (file.gid === gid && (mode & 0o040n) !== 0n);

/** Whether that is believed is another question: on FUSE the server says what it likes. Elsewhere nobody can set the change time, so it tells a changed file from the original. */
export const identityOf = ({
  dev,
  ino,
  size,
  ctimeNs,
}: Pick<FileFacts, 'dev' | 'ino' | 'size' | 'ctimeNs'>): string => `${dev}:${ino}:${size}:${ctimeNs}`;

const own = new RootDirectory(undefined);

/** The agent's own root, of the host unless the agent runs in a container. */
export const ownRoot = (): RootDirectory => own;
