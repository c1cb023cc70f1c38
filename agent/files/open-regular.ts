import { closeSync, constants, fstatSync, openSync } from 'node:fs';

/**
 * Opens a file that a person or a stranger named, without waiting for the other end of a pipe. Throws what the system says,
 * and a sentence about what is not a file.
 */
export function openRegular(path: string): number {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  if (fstatSync(fd).isFile()) return fd;
  closeSync(fd);
  throw new Error(`${path} is not a regular file`);
}
