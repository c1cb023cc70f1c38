/** What the system says of a file, for people. */

const WORDS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or directory',
  EACCES: 'this user has no right to it',
  EPERM: 'this user has no right to it',
  EISDIR: 'it is a directory',
  ENOTDIR: 'a part of its path is a file, and no directory',
  EROFS: 'nothing can be written to that file system',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EMFILE: 'this process may not open more files (ulimit -n)',
  ELOOP: 'its links lead in a circle',
  ENAMETOOLONG: 'its name is too long',
};

/** Without the call that failed, which says nothing to a reader; another error's own message. */
export function inWords(error: unknown): string {
  const { code = '', message } = error as NodeJS.ErrnoException;
  return WORDS[code] ?? message;
}

const OF_DIRECTORIES: Readonly<Record<string, string>> = {
  ENOSPC: 'there is no room on its disk: free some, or name another directory',
  EDQUOT: "its user's quota is used up: free some, or name another directory",
  EROFS: 'its file system is mounted read-only: name another directory',
  EACCES: 'no permission to write there: choose its owner, or name another directory',
  EPERM: 'no permission to write there: choose its owner, or name another directory',
  ENOTDIR: 'a file is where a directory would have to be: name another directory',
  EEXIST: 'a file is where a directory would have to be: name another directory',
  ENOENT: 'no directory can be made there: name another one',
  ELOOP: 'its links lead in a circle: name another directory',
  ENAMETOOLONG: 'its name is too long: name another directory',
  EMFILE: 'this process has no file descriptors left: raise `ulimit -n`',
  ENFILE: 'the system has no file descriptors left',
  EIO: 'its disk fails (input/output error): see the kernel log',
};

/** Why a directory can't be made or written to, and what to do; another error's own message. */
export function directoryInWords(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  const words = OF_DIRECTORIES[code ?? ''];
  return words === undefined ? message : `${words} (${code})`;
}
