/** The file that an event names: a path, a program, or a library by its name. */
import { closeSync, existsSync, readdirSync, readSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { CannotProfile } from '../base/cannot-profile.ts';
import { openRegular } from '../files/open-regular.ts';

const LIBRARY_DIRECTORIES = [
  ...['x86_64', 'aarch64'].flatMap((machine) => [
    `/lib/${machine}-linux-gnu`,
    `/usr/lib/${machine}-linux-gnu`,
  ]),
  ...['/lib64', '/usr/lib64', '/usr/local/lib', '/lib', '/usr/lib'],
];

/** Throws {@link CannotProfile}. */
export function findProbedFile(name: string, path = process.env['PATH'] ?? ''): string {
  if (name.includes('/')) {
    if (existsSync(name)) return resolve(name);
    throw new CannotProfile(`there is no file ${name} to set a probe in`);
  }
  const found = findProgram(name, path) ?? findLibrary(name);
  if (found !== undefined) return found;
  throw new CannotProfile(`there is no program or library ${name} to set a probe in: give its path`);
}

const findProgram = (name: string, path: string): string | undefined =>
  path
    .split(':')
    .filter((directory) => directory.startsWith('/'))
    .map((directory) => join(directory, name))
    .find(isElf);

/** `libc` and `c` are libc.so.6. */
function findLibrary(name: string): string | undefined {
  const escaped = name.replace(/[^\w]/g, String.raw`\$&`);
  const pattern = new RegExp(String.raw`^(lib)?${escaped}(\.so(\.\d+)*)?$`);
  for (const directory of LIBRARY_DIRECTORIES) {
    const found = namesIn(directory)
      .filter((file) => file.includes('.so') && pattern.test(file))
      .map((file) => join(directory, file))
      .find(isElf);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** No script that starts the program, nor one for the linker. */
function isElf(path: string): boolean {
  try {
    const fd = openRegular(path);
    try {
      const magic = Buffer.alloc(4);
      return readSync(fd, magic, 0, 4, 0) === 4 && magic.toString('latin1') === '\x7fELF';
    } finally {
      closeSync(fd);
    }
  } catch {
    return false;
  }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory).sort();
  } catch {
    return [];
  }
}

/** An open descriptor of the file for `use`, closed afterwards. Throws as {@link openRegular}. */
export async function withOpenFile<T>(path: string, use: (fd: number) => Promise<T>): Promise<T> {
  const fd = openRegular(path);
  try {
    return await use(fd);
  } finally {
    closeSync(fd);
  }
}
