/** Who a collector runs as, once it has opened what root alone may. */
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { UNPRIVILEGED_USER } from '../../collector/settings/options.ts';
import { CollectorStartError } from '../../collector/settings/start-error.ts';
import type { DataOwner } from '../../collector/store/duckdb/data-directory.ts';

/** The kernel's own for a user without rights, which a small root has no entry for. */
const OVERFLOW_ID = 65_534;

/** @throws CollectorStartError when there is no such user */
export function findUser(name: string, passwd = '/etc/passwd'): DataOwner {
  const entry = usersOf(passwd).find(([user]) => user === name);
  if (entry) return { name, uid: Number(entry[2]), gid: Number(entry[3]) };
  if (name === UNPRIVILEGED_USER) return { name, uid: OVERFLOW_ID, gid: OVERFLOW_ID };
  throw new CollectorStartError(`--user ${name}: ${passwd} has no such user`);
}

function usersOf(passwd: string): string[][] {
  try {
    return readFileSync(passwd, 'utf8')
      .split('\n')
      .map((line) => line.split(':'));
  } catch {
    return [];
  }
}

/**
 * Gives up root for good, and every supplementary group with it.
 *
 * @throws CollectorStartError when this process may not become that user
 */
export function becomeUser({ name, uid, gid }: DataOwner): void {
  try {
    process.setgroups!([]);
    process.setgid!(gid);
    process.setuid!(uid);
  } catch (error) {
    throw new CollectorStartError(`--user ${name}: ${(error as Error).message}; only root can do this`);
  }
}
