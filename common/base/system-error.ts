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
