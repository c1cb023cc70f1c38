import { type DuckDBConnection, DuckDBDataChunk, type DuckDBType, type DuckDBValue } from '@duckdb/node-api';
import type { OpenPart, PendingRows } from './duckdb-part.ts';

/** Rows of a DuckDB vector. */
const CHUNK_ROWS = 2048;

/** What one flush writes of a part. */
export interface Batch {
  part: OpenPart;
  rows: PendingRows;
  end: { frames: number; nodes: number; series: number; events: number };
}

export const createTablesSql = (id: number): string => `
  CREATE TABLE frames_${id}(id UINTEGER, name VARCHAR, file VARCHAR, mapping VARCHAR, kind VARCHAR);
  CREATE TABLE nodes_${id}(id UINTEGER, parent UINTEGER, frame UINTEGER);
  CREATE TABLE series_${id}(id UINTEGER, process VARCHAR, pid BIGINT, tid BIGINT, thread VARCHAR, path VARCHAR,
    command VARCHAR, container_id VARCHAR, cgroup VARCHAR, service VARCHAR, host VARCHAR, start_unix_nano UBIGINT,
    period_nanos DOUBLE);
  CREATE TABLE samples_${id}(t UINTEGER, node UINTEGER, series UINTEGER, cpu SMALLINT, weight DOUBLE);`;

export const dropTablesSql = (id: number): string =>
  `${['frames', 'nodes', 'series', 'samples'].map((table) => `DROP TABLE ${table}_${id};`).join(' ')}
  DELETE FROM parts WHERE id = ${id};`;

/** Writes batches in one transaction: after a crash either all of it is there or nothing. */
export async function writeBatches(connection: DuckDBConnection, batches: readonly Batch[]): Promise<void> {
  await connection.run('BEGIN');
  try {
    for (const batch of batches) await writeBatch(connection, batch);
    await connection.run('COMMIT');
  } catch (error) {
    await connection.run('ROLLBACK').catch(() => {});
    throw error;
  }
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
  await connection.run(
    `INSERT OR REPLACE INTO parts VALUES (${id}, ${info.startMs}, ${end.events}, ${info.minMs}, ${info.maxMs})`,
  );
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
