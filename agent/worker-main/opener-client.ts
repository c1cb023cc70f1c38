/** Opens files in a worker, which can't: over a socket, in a process that can. The messages are those of confine/opener.hh. */
import { relative } from 'node:path';
import type { Native } from '../base/native.ts';
import {
  type FileFacts,
  type FileOpener,
  isRegular,
  type Looked,
  noFileOf,
  type Trust,
} from '../files/file-opener.ts';

/** As `struct Answer` has it. */
const ANSWER_BYTES = 56;
const NO_FD = -1;

type Ask = 'l' | 'o' | 'r' | 'c' | 'n' | 'k' | 'd' | 't' | 'p' | 'x';

interface Answer {
  /** 0: fine. */
  error: number;
  fd: number;
  stats: FileFacts;
  isPseudo: boolean;
}

export function openerClient(native: Native, socket: number, cache: string | undefined): FileOpener {
  const ask = (what: Ask, argument: string, fd = NO_FD): Answer => {
    const answer = Buffer.alloc(ANSWER_BYTES);
    const opened = native.ask(socket, Buffer.from(what + argument), fd, answer);
    return readAnswer(answer, opened);
  };
  const nameOf = (path: string): string => relative(cache ?? '', path);
  const open = (what: Ask, argument: string): number => check(ask(what, argument)).fd;
  return {
    look(root, path, trust) {
      const { error, stats, isPseudo } = ask('l', `${textOf(trust)} ${path}`, root);
      if (error !== 0) return noFileOf(-error);
      return {
        stats,
        isPlain: isRegular(stats) && !isPseudo,
        open: () => open('o', ''),
        close: () => {},
      } satisfies Looked;
    },
    openOfProcess: (_, pid, which) => open('r', `${pid}/${which}`),
    // the agent has made it
    makeCacheDirectory: () => {},
    openCached: (path) => open('c', nameOf(path)),
    createCached: (path) => open('n', nameOf(path)),
    renameCached: (from, to) => void check(ask('k', `${nameOf(from)}\0${nameOf(to)}`)),
    removeCached: (path) => void check(ask('d', nameOf(path))),
    touchCached: (path) => void check(ask('t', nameOf(path))),
    pruneCached: (directory, ending, { maxBytes, maxFiles }) =>
      void check(ask('p', `${Math.max(0, Math.floor(maxBytes))} ${maxFiles} ${nameOf(directory)}/${ending}`)),
    openScratch: () => open('x', ''),
  };
}

const textOf = (trust: Trust | undefined): string =>
  trust ? `${trust.uid}:${trust.gid}:${trust.mode}:${trust.reader}:${trust.readerGroup}` : '-';

function readAnswer(bytes: Buffer, fd: number): Answer {
  return {
    error: bytes.readInt32LE(0),
    fd,
    stats: {
      mode: BigInt(bytes.readUInt32LE(4)),
      dev: bytes.readBigUInt64LE(8),
      ino: bytes.readBigUInt64LE(16),
      size: bytes.readBigUInt64LE(24),
      ctimeNs: bytes.readBigInt64LE(32),
      uid: BigInt(bytes.readUInt32LE(40)),
      gid: BigInt(bytes.readUInt32LE(44)),
    },
    isPseudo: bytes.readUInt32LE(48) !== 0,
  };
}

function check(answer: Answer): Answer {
  if (answer.error !== 0) throw new Error(`the opener says error ${answer.error}`);
  return answer;
}
