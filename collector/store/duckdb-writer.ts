import { type DuckDBConnection, DuckDBDataChunk, type DuckDBType, type DuckDBValue } from '@duckdb/node-api';
import type { Batch, Flush, PendingRows } from './open-parts.ts';
import { SUM_MS } from './part-sums.ts';
import { MAX_RECENT_REQUESTS, RECENT_REQUESTS_MS } from './store.ts';

/** Rows of a DuckDB vector. */
const CHUNK_ROWS = 2048;

const createTablesSql = (id: number): string => `
  CREATE TABLE frames_${id}(id UINTEGER, name VARCHAR, file VARCHAR, mapping VARCHAR, kind VARCHAR,
    "binary" VARCHAR, line UINTEGER);
  CREATE TABLE nodes_${id}(id UINTEGER, parent UINTEGER, frame UINTEGER);
  CREATE TABLE series_${id}(id UINTEGER, process VARCHAR, pid BIGINT, tid BIGINT, thread VARCHAR, path VARCHAR,
    command VARCHAR, container_id VARCHAR, cgroup VARCHAR, service VARCHAR, host VARCHAR, start_unix_nano UBIGINT,
    period_nanos DOUBLE);
  CREATE TABLE samples_${id}(t UINTEGER, node UINTEGER, series UINTEGER, cpu SMALLINT, weight DOUBLE);
  CREATE TABLE sums_${id}(tens USMALLINT, series UINTEGER, weight DOUBLE);`;

export const dropTablesSql = (id: number): string =>
  `${['frames', 'nodes', 'series', 'samples'].map((table) => `DROP TABLE ${table}_${id};`).join(' ')}
  DROP TABLE IF EXISTS sums_${id};
  DELETE FROM parts WHERE id = ${id};`;

/** Writes in one transaction: after a crash either all of it is there or nothing. */
export async function writeFlush(connection: DuckDBConnection, { batches, requests }: Flush): Promise<void> {
  await connection.run('BEGIN');
  try {
    for (const batch of batches) await writeBatch(connection, batch);
    await appendColumns(connection, 'requests', [
      requests.map(({ id }) => id),
      requests.map(({ atMs }) => BigInt(atMs)),
    ]);
    await connection.run('COMMIT');
  } catch (error) {
    await connection.run('ROLLBACK').catch(() => {});
    throw error;
  }
}

/** Whether a flush is in the file: all of it is where a part of it is. */
export async function isWritten(connection: DuckDBConnection, { batches }: Flush): Promise<boolean> {
  const [batch] = batches;
  if (batch === undefined) return false;
  const { id } = batch.part.info;
  const reader = await connection.runAndReadAll(`SELECT events FROM parts WHERE id = ${id}`);
  return reader.getColumns()[0]?.[0] === batch.end.events;
}

/** The newest ones, the oldest of them first. */
export async function readRequests(connection: DuckDBConnection): Promise<string[]> {
  const reader = await connection.runAndReadAll(
    `SELECT id FROM requests ORDER BY at_ms DESC, rowid DESC LIMIT ${MAX_RECENT_REQUESTS}`,
  );
  return (reader.getColumns()[0] ?? []).map(String).reverse();
}

export async function forgetRequests(connection: DuckDBConnection, nowMs: number): Promise<void> {
  await connection.run(`DELETE FROM requests WHERE at_ms < ${nowMs - RECENT_REQUESTS_MS}`);
}

async function writeBatch(connection: DuckDBConnection, { part, rows, end }: Batch): Promise<void> {
  const { info, written } = part;
  const { id } = info;
  if (written.events === 0) await connection.run(createTablesSql(id));
  const frames = part.frames.frames.slice(written.frames, end.frames);
  await appendColumns(connection, `frames_${id}`, [
    frames.map((_, i) => written.frames + i),
    frames.map(({ name }) => name),
    frames.map(({ file }) => file),
    frames.map(({ mapping }) => mapping),
    frames.map(({ kind }) => kind),
    frames.map(({ binary = '' }) => binary),
    frames.map(({ line = 0 }) => line),
  ]);
  await appendColumns(connection, `nodes_${id}`, [
    Array.from({ length: end.nodes - written.nodes }, (_, i) => written.nodes + i),
    Array.from(part.tree.parents.subarray(written.nodes, end.nodes)),
    Array.from(part.tree.frames.subarray(written.nodes, end.nodes)),
  ]);
  const series = part.series.slice(written.series, end.series);
  await appendColumns(connection, `series_${id}`, [
    series.map((_, i) => written.series + i),
    series.map(({ process }) => process),
    series.map(({ pid }) => BigInt(pid)),
    series.map(({ tid }) => BigInt(tid)),
    series.map(({ thread }) => thread),
    series.map(({ path }) => path),
    series.map(({ command }) => command),
    series.map(({ containerId }) => containerId),
    series.map(({ cgroup }) => cgroup),
    series.map(({ service }) => service),
    series.map(({ host }) => host),
    series.map(({ startUnixNano }) => startUnixNano),
    series.map(({ periodNanos }) => periodNanos),
  ]);
  await appendColumns(connection, `samples_${id}`, [
    rows.times,
    rows.nodes,
    rows.series,
    rows.cpus,
    rows.weights,
  ]);
  if (info.hasSums) await appendColumns(connection, `sums_${id}`, sumRows(rows));
  await connection.run(
    `INSERT OR REPLACE INTO parts VALUES (${id}, ${info.startMs}, ${end.events}, ${info.minMs}, ${info.maxMs}, ${info.hasSums})`,
  );
}

/** Events in every ten seconds of each series: a flush adds rows, so that a pair may have several. */
function sumRows({ times, series, weights }: PendingRows): [number[], number[], number[]] {
  const indices = new Map<number, number>();
  const columns: [number[], number[], number[]] = [[], [], []];
  const [tens, ids, sums] = columns;
  for (let row = 0; row < times.length; row++) {
    const ten = Math.floor(times[row]! / SUM_MS);
    const key = series[row]! * SUM_MS + ten;
    const index = indices.get(key);
    if (index !== undefined) sums[index]! += weights[row]!;
    else {
      indices.set(key, tens.push(ten) - 1);
      ids.push(series[row]!);
      sums.push(weights[row]!);
    }
  }
  return columns;
}

async function appendColumns(
  connection: DuckDBConnection,
  table: string,
  columns: readonly (readonly DuckDBValue[])[],
): Promise<void> {
  const count = columns[0]!.length;
  if (count === 0) return;
  const appender = await connection.createAppender(table);
  const types: DuckDBType[] = columns.map((_, i) => appender.columnType(i));
  for (let at = 0; at < count; at += CHUNK_ROWS) {
    const rows = Math.min(CHUNK_ROWS, count - at);
    const chunk = DuckDBDataChunk.create(types, rows);
    for (const [i, values] of columns.entries()) chunk.setColumnValues(i, values.slice(at, at + rows));
    appender.appendDataChunk(chunk);
  }
  appender.closeSync();
}
