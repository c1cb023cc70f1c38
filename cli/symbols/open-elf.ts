import { closeSync } from 'node:fs';
import { fdSource } from '../../agent/files/fd-source.ts';
import { openRegular } from '../../agent/files/open-regular.ts';
import { inWords } from '../../common/base/system-error.ts';
import { type ElfFile, parseElf } from '../../common/elf/elf.ts';

/** Runs `use` with an ELF file that a person named; errors say which file it is about. */
export async function withElf<T>(path: string, use: (elf: ElfFile) => T | Promise<T>): Promise<T> {
  const fd = openNamed(path);
  try {
    return await use(parseElf(fdSource(fd)));
  } catch (error) {
    throw new Error(`${path}: ${(error as Error).message}`);
  } finally {
    closeSync(fd);
  }
}

function openNamed(path: string): number {
  try {
    return openRegular(path);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === undefined) throw new Error(`${message}: name an executable or a shared library`);
    const hint = code === 'EACCES' ? ': run as a user who may, or as root' : '';
    throw new Error(`can't open ${path}: ${inWords(error)}${hint}`);
  }
}

/** `what` names the flag or argument in the error. */
export function parseAddress(text: string, what: string): number {
  if (!/^(0x[0-9a-f]+|\d+)$/i.test(text) || !Number.isSafeInteger(Number(text))) {
    throw new Error(`${what} ${text} is not an address: write 0x… or a decimal number`);
  }
  return Number(text);
}
