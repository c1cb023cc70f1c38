/** Asks a ClickHouse server, and says what it means where that fails. */
import { type ClickHouseClient, ClickHouseError } from '@clickhouse/client';
import { StoreUnavailable, TooMuchToRead } from '../store.ts';

/** Columns of an answer, in the order in which they were asked for. */
export type Columns = readonly (readonly unknown[])[];

/** As long as a question to the collector may take: nobody waits any longer for what the server computes. */
const MAX_QUERY_SECONDS = 60;
/** The server is the first to give up: it says why. */
export const REQUEST_TIMEOUT_MS = (MAX_QUERY_SECONDS + 5) * 1000;
/** Id lists of filters make long statements. */
const QUERY_SETTINGS = {
  max_query_size: String(2 ** 26),
  max_ast_elements: '10000000',
  max_expanded_ast_elements: '10000000',
  output_format_json_quote_64bit_integers: 1,
} as const;
/** By ClickHouse's number, what a query had too much of. */
const LIMITS: Record<string, string> = {
  159: 'time',
  241: 'memory',
  307: 'bytes to read',
  158: 'rows to read',
  396: 'rows in the answer',
};

/**
 * @throws TooMuchToRead where the server ended the query at a limit
 * @throws StoreUnavailable where there was no answer
 * @throws Error of the server
 */
export async function readColumns(
  client: ClickHouseClient,
  query: string,
  maxSeconds = MAX_QUERY_SECONDS,
): Promise<Columns> {
  const startMs = performance.now();
  try {
    const { stream } = await client.exec({
      query: `${query} FORMAT JSONCompactColumns`,
      clickhouse_settings: { ...QUERY_SETTINGS, max_execution_time: maxSeconds },
    });
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(chunk as Buffer);
    return JSON.parse(Buffer.concat(chunks).toString('utf8')) as Columns;
  } catch (error) {
    throw explain(error as Error, (performance.now() - startMs) / 1000);
  }
}

function explain(error: Error, seconds: number): Error {
  if (error instanceof SyntaxError) return error;
  const after = `after ${seconds.toFixed(1)} s`;
  if (!(error instanceof ClickHouseError))
    return new StoreUnavailable(`ClickHouse gave no answer, ${after} (${error.message})`);
  const limit = LIMITS[error.code];
  if (limit === undefined) return error;
  return new TooMuchToRead(
    `ClickHouse ended the query at its limit of ${limit} ${after}: ask for a shorter time`,
  );
}
