/** The directory of a store: whether it can be one, and whose it will be where `everyframe run` gives up root. */
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { directoryInWords } from '../../../common/base/system-error.ts';

export interface DataOwner {
  name: string;
  uid: number;
  gid: number;
}

/** Enough to know that there is room for more than a name. */
const PROBE_BYTES = 64 * 1024;

/**
 * Runs `open` with the owner's rights, so that its files are the owner's and no file is opened that the owner could
 * not; the process has its own rights again afterwards. A directory that is new or empty is given to the owner.
 *
 * @throws Error when the owner can't write to the directory
 */
export async function asOwner<T>(
  directory: string,
  owner: DataOwner | undefined,
  open: () => Promise<T>,
): Promise<T> {
  const [uid, gid] = [process.geteuid!(), process.getegid!()];
  if (owner === undefined || uid !== 0) return open();
  const made = pathsTo(directory)
    .filter((path) => !existsSync(path))
    .toReversed();
  makeDirectory(directory);
  if (readdirSync(directory).length === 0) chownSync(directory, owner.uid, owner.gid);
  const becomeRoot = (): void => {
    process.seteuid!(uid);
    process.setegid!(gid);
  };
  process.setegid!(owner.gid);
  process.seteuid!(owner.uid);
  try {
    checkAccess(directory, owner);
    return await open();
  } catch (error) {
    becomeRoot();
    removeEmpty(made);
    throw error;
  } finally {
    becomeRoot();
  }
}

/** The directory and those that it is in, the outermost first. */
function pathsTo(directory: string): string[] {
  const path = resolve(directory);
  const parent = dirname(path);
  return parent === path ? [path] : [...pathsTo(parent), path];
}

/** What was made for a start that failed; never what has something in it. */
function removeEmpty(paths: readonly string[]): void {
  try {
    for (const path of paths) rmdirSync(path);
  } catch {
    // what could not be removed is in use
  }
}

/** What a lock of another process on a file means, or that it is another user's; otherwise the text as it is. */
export function explainLock(message: string): string {
  const foreign = /Cannot open file "([^"]+)".*Permission denied/s.exec(message)?.[1];
  if (foreign !== undefined)
    return `${foreign} is another user's: give it to the one whom the collector runs as (chown), or name another directory`;
  if (!/lock on file/i.test(message)) return message;
  const holder = /PID (\d+)/.exec(message)?.[1];
  const who = holder === undefined ? 'another process' : `another process (PID ${holder})`;
  return `${who}, such as another everyframe, uses this directory: end that one, or name another directory`;
}

/**
 * Makes the directory where it is missing, and writes a file there to see that it can hold one.
 *
 * @throws Error whose message says what is wrong with it
 */
export function prepareDirectory(directory: string): void {
  makeDirectory(directory);
  const probe = join(directory, `.probe-${process.pid}`);
  try {
    writeFileSync(probe, Buffer.alloc(PROBE_BYTES), { mode: 0o600, flush: true });
  } catch (error) {
    throw new Error(directoryInWords(error), { cause: error });
  } finally {
    rmSync(probe, { force: true });
  }
}

/** Node's own way to make parents never ends below /proc, where what it is told to make does not come to be. */
function makeDirectory(directory: string): void {
  const path = resolve(directory);
  try {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
    const parent = dirname(path);
    if (parent !== path) makeDirectory(parent);
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined || (code === 'EEXIST' && statSync(path).isDirectory())) throw error;
    throw new Error(directoryInWords(error), { cause: error });
  }
}

function checkAccess(directory: string, { name }: DataOwner): void {
  try {
    readdirSync(directory);
  } catch (error) {
    const path = resolve(directory);
    const closed = pathsTo(dirname(path)).find((parent) => !canEnter(parent));
    if (closed !== undefined)
      throw new Error(
        `user ${name}, whom the collector becomes, may not enter ${closed}, which it is in: ` +
          'choose a directory that others may reach, such as /var/lib/everyframe',
        { cause: error },
      );
    throw new Error(
      `user ${name}, whom the collector becomes, can't use it: ` +
        `chown -R ${name} ${path}, or choose a directory that others may reach, such as /var/lib/everyframe`,
      { cause: error },
    );
  }
}

/** By what the system allows the user that the process has taken on. */
function canEnter(directory: string): boolean {
  try {
    statSync(`${directory}/.`);
    return true;
  } catch {
    return false;
  }
}
