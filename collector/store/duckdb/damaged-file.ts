/** A database file that can't be read any more: known by what DuckDB says of it, set aside, never removed. */
import { existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { DATABASE_NAME } from './duckdb-file.ts';

/** Texts of failed checks of blocks, headers and what they hold; not of locks, versions, rights, memory or a full disk. */
const DAMAGE =
  /corrupt|checksum|not a valid DuckDB database|serializ|^INTERNAL|replaying WAL|read past|metadata|magic bytes|read enough bytes/i;
const NO_DAMAGE =
  /No space left|Out of Memory|lock on file|newer version|Permission denied|schema version|Too many open|Input\/output/i;

export const isDamage = (error: unknown): boolean =>
  error instanceof Error && DAMAGE.test(error.message) && !NO_DAMAGE.test(error.message);

/**
 * Opens the file; where it is damaged without its write-ahead log, and where that does not help a new one. What was there
 * is renamed beside it.
 *
 * @returns `setAside`: a sentence for people, undefined where nothing was wrong
 * @throws Error of `open` for everything else
 */
export async function openOrSetAside<T>(
  directory: string,
  open: () => Promise<T>,
  logger: Pick<Logger, 'error'>,
): Promise<{ opened: T; setAside: string | undefined }> {
  let setAside: string | undefined;
  for (const names of [[`${DATABASE_NAME}.wal`], [DATABASE_NAME, `${DATABASE_NAME}.wal`], []]) {
    try {
      return { opened: await open(), setAside };
    } catch (error) {
      const present = names.filter((name) => existsSync(join(directory, name)));
      if (!isDamage(error) || names.length === 0) throw error;
      if (present.length > 0) setAside = setFileAside(directory, present, firstLine(error as Error), logger);
    }
  }
  throw new Error('unreachable: the last try returns or throws');
}

/** Renames files of a database that is not open. @returns what was done, as a sentence */
export function setFileAside(
  directory: string,
  names: readonly string[],
  why: string,
  logger: Pick<Logger, 'error'>,
): string {
  const present = names.filter((name) => existsSync(join(directory, name)));
  const suffix = `.damaged-${new Date().toISOString().replace(/[-:]|\.\d+/g, '')}`;
  for (const name of present) renameSync(join(directory, name), join(directory, name + suffix));
  const sentence =
    `${present.join(' and ')} was damaged (${why}) and is now *${suffix} in ${directory}: ` +
    (present.includes(DATABASE_NAME) ? 'the store begins anew' : 'the last samples before the end are lost');
  logger.error(sentence);
  return sentence;
}

const firstLine = ({ message }: Error): string => message.split('\n')[0]!.slice(0, 200);
