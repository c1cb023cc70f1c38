/** Where samples are kept: in memory, in a directory, or in a ClickHouse. */
import type { Logger } from 'pino';
import { directoryInWords } from '../../common/base/system-error.ts';
import { COLLECTOR_DEFAULTS } from '../settings/options.ts';
import { CollectorStartError } from '../settings/start-error.ts';
import { asOwner, type DataOwner, explainLock, prepareDirectory } from '../store/duckdb/data-directory.ts';
import { MemoryStore } from '../store/memory/memory-store.ts';
import type { Store } from '../store/store.ts';

export interface StoreOptions {
  /** Bounds of the store; the process itself needs some 60 MiB more. */
  maxMemoryBytes: number;
  maxAgeMs?: number | undefined;
  /** Where samples are kept on disk; undefined: in memory. */
  data?: { directory: string; maxBytes: number; owner?: DataOwner | undefined } | undefined;
  /** URL of a ClickHouse server that keeps them, with user, password and database. */
  clickhouse?: string | undefined;
  logger: Pick<Logger, 'info' | 'warn' | 'error'>;
}

/** @throws CollectorStartError */
export async function openStore(
  { data, clickhouse, maxMemoryBytes, maxAgeMs, logger }: StoreOptions,
  now: () => number,
): Promise<Store> {
  if (clickhouse !== undefined) {
    return openClickHouse(clickhouse, maxAgeMs ?? COLLECTOR_DEFAULTS.maxAgeMs.kept, now, logger);
  }
  if (data === undefined) {
    return new MemoryStore({
      maxBytes: maxMemoryBytes,
      maxAgeMs: maxAgeMs ?? COLLECTOR_DEFAULTS.maxAgeMs.inMemory,
      now,
    });
  }
  // Loaded here: the database's binary is large, and a collector in memory starts without it.
  const { DuckDbStore } = await import('../store/duckdb/duckdb-store.ts');
  const { directory, maxBytes, owner } = data;
  const age = maxAgeMs ?? COLLECTOR_DEFAULTS.maxAgeMs.kept;
  return inData(directory, owner, () =>
    DuckDbStore.open({ directory, maxBytes, maxAgeMs: age, now, logger }),
  );
}

/**
 * Makes the directory that tenants' own are in.
 *
 * @throws CollectorStartError
 */
export const prepareData = ({ directory, owner }: NonNullable<StoreOptions['data']>): Promise<void> =>
  inData(directory, owner, async () => prepareDirectory(directory));

async function inData<T>(directory: string, owner: DataOwner | undefined, use: () => Promise<T>): Promise<T> {
  try {
    return await asOwner(directory, owner, use);
  } catch (error) {
    throw new CollectorStartError(`--data ${directory}: ${explainLock(directoryInWords(error))}`, {
      cause: error,
    });
  }
}

async function openClickHouse(
  url: string,
  maxAgeMs: number,
  now: () => number,
  logger: StoreOptions['logger'],
): Promise<Store> {
  const { ClickHouseStore } = await import('../store/clickhouse/clickhouse-store.ts');
  try {
    return await ClickHouseStore.open({ url, maxAgeMs, now, logger });
  } catch (error) {
    // The URL may hold a password.
    const where = URL.canParse(url) ? new URL(url).host : 'what is given';
    throw new CollectorStartError(
      `--clickhouse: ${where} can't be used: ${(error as Error).message || String(error)}`,
      { cause: error },
    );
  }
}
