/** The file that an event names: a path, a program, or a library by its name. */
import { closeSync, existsSync, openSync, readdirSync, readSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseElf } from '../../common/elf/elf.ts';
import { fdSource } from '../files/fd-source.ts';
import { NoSuchEvent } from './no-such-event.ts';

const LIBRARY_DIRECTORIES = [
  ...['x86_64', 'aarch64'].flatMap((machine) => [
    `/lib/${machine}-linux-gnu`,
    `/usr/lib/${machine}-linux-gnu`,
  ]),
  ...['/lib64', '/usr/lib64', '/usr/local/lib', '/lib', '/usr/lib'],
];
const DEBUG_DIRECTORY = '/usr/lib/debug/.build-id';

/** Throws {@link NoSuchEvent}. */
export function findProbedFile(name: string, path = process.env['PATH'] ?? ''): string {
  if (name.includes('/')) {
    if (existsSync(name)) return resolve(name);
    throw new NoSuchEvent(`there is no file ${name} to set a probe in`);
  }
  const found = findProgram(name, path) ?? findLibrary(name);
  if (found !== undefined) return found;
  throw new NoSuchEvent(`there is no program or library ${name} to set a probe in: give its path`);
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
    const fd = openSync(path, 'r');
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

/** Open descriptors of the file and of what was split off of it, for `use`; closed afterwards. Throws {@link NoSuchEvent}. */
export async function withOpenFile<T>(
  path: string,
  use: (fd: number, debug: { fd: number }[]) => Promise<T>,
): Promise<T> {
  const fds: number[] = [];
  try {
    fds.push(openSync(path, 'r'));
    const debug = debugFileOf(fds[0]!);
    if (debug !== undefined) fds.push(openSync(debug, 'r'));
    return await use(
      fds[0]!,
      fds.slice(1).map((fd) => ({ fd })),
    );
  } catch (error) {
    if (!('code' in (error as object))) throw error;
    throw new NoSuchEvent(`${path} can't be read: ${(error as Error).message}`);
  } finally {
    for (const fd of fds) closeSync(fd);
  }
}

/** By build ID, where the distribution's debug packages put it. */
function debugFileOf(fd: number): string | undefined {
  let buildId = '';
  try {
    buildId = parseElf(fdSource(fd)).gnuBuildId;
  } catch {
    // what it is will be told by whoever reads it
  }
  const path = join(DEBUG_DIRECTORY, buildId.slice(0, 2), `${buildId.slice(2)}.debug`);
  return buildId.length > 2 && existsSync(path) ? path : undefined;
}
