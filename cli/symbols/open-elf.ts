import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { fdSource } from '../../agent/files/fd-source.ts';
import { type ElfFile, parseElf } from '../../common/elf/elf.ts';

/** Runs `use` with an ELF file that a person named; errors say which file it is about. */
export async function withElf<T>(path: string, use: (elf: ElfFile) => T | Promise<T>): Promise<T> {
  const fd = openRegularFile(path);
  try {
    return await use(parseElf(fdSource(fd)));
  } catch (error) {
    throw new Error(`${path}: ${(error as Error).message}`);
  } finally {
    closeSync(fd);
  }
}

/** Without waiting for the other end of a pipe. */
function openRegularFile(path: string): number {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const hint = code === 'EACCES' ? ': run as a user who may, or as root' : '';
    throw new Error(`can't open ${path}: ${code === 'ENOENT' ? 'there is no such file' : message}${hint}`);
  }
  if (fstatSync(fd).isFile()) return fd;
  closeSync(fd);
  throw new Error(`${path} is no regular file: name an executable or a shared library`);
}

/** `what` names the flag or argument in the error. */
export function parseAddress(text: string, what: string): number {
  if (!/^(0x[0-9a-f]+|\d+)$/i.test(text) || !Number.isSafeInteger(Number(text))) {
    throw new Error(`${what} ${text} is no address: write 0x… or a decimal number`);
  }
  return Number(text);
}
