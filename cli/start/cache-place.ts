/** Where names, symbol tables and unwind tables are kept for later runs. */
import { resolve } from 'node:path';
import { defaultCacheDirectory } from '../../agent/files/cache-directory.ts';
import { TableCache } from '../../agent/stack-deltas/table/table-cache.ts';
import { AnswerCache } from '../../agent/symbolizer/cache/answer-cache.ts';
import { directoryInWords } from '../../common/base/system-error.ts';

/**
 * Made, and writable by this user alone: the workers that use it could only fail. Undefined where nothing is to be
 * kept, or where the default directory can't be had, which `warn` is told. Throws where the one that was asked for
 * can't.
 */
export function placeOfCache(
  flag: string | undefined,
  env: Record<string, string | undefined>,
  tell: (text: string) => void,
): string | undefined {
  if (flag === 'off') return undefined;
  const directory = resolve(flag ?? defaultCacheDirectory(env));
  try {
    new AnswerCache(directory);
    new TableCache(directory);
    return directory;
  } catch (error) {
    const why = `${directory}: ${directoryInWords(error)}`;
    if (flag !== undefined) throw new Error(`--symbol-cache ${why}; off keeps nothing`);
    tell(
      `nothing is kept for later runs in ${why} (--symbol-cache DIR names another place, off silences this)`,
    );
    return undefined;
  }
}
