/** The directory of a store that another user than this process's will own: `everyframe run` gives up root. */
import { chownSync, mkdirSync, readdirSync } from 'node:fs';
import { resolve } from 'node:path';

export interface DataOwner {
  name: string;
  uid: number;
  gid: number;
}

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
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  if (readdirSync(directory).length === 0) chownSync(directory, owner.uid, owner.gid);
  process.setegid!(owner.gid);
  process.seteuid!(owner.uid);
  try {
    checkAccess(directory, owner);
    return await open();
  } finally {
    process.seteuid!(uid);
    process.setegid!(gid);
  }
}

function checkAccess(directory: string, { name }: DataOwner): void {
  try {
    readdirSync(directory);
  } catch (error) {
    const path = resolve(directory);
    throw new Error(
      `user ${name}, whom the collector becomes, can't use it (${(error as Error).message}): ` +
        `chown -R ${name} ${path}, or choose a directory that others may reach, such as /var/lib/everyframe`,
      { cause: error },
    );
  }
}
