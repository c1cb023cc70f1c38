import { type DuckDBConnection, DuckDBDataChunk, type DuckDBType } from '@duckdb/node-api';
import type { PartInfo } from '../database/database-part.ts';
import { type Batch, type Flush, hasLinks } from '../database/open-parts.ts';
import { MAX_CPUS } from '../matcher.ts';
import { SUM_MS } from '../part-sums.ts';
import { MAX_RECENT_REQUESTS, RECENT_REQUESTS_MS } from '../store.ts';
import { setNumbers } from './duckdb-columns.ts';

/** Rows of a DuckDB vector. */
const CHUNK_ROWS = 2048;
/** And -1, of an unknown one. */
const CPUS = MAX_CPUS + 1;
const createTablesSql = (id: number): string => `
  CREATE TABLE places_${id}(id UINTEGER, file VARCHAR, mapping VARCHAR, kind VARCHAR, "binary" VARCHAR);
  CREATE TABLE frames_${id}(id UINTEGER, name VARCHAR, place UINTEGER, line UINTEGER);
  CREATE TABLE nodes_${id}(id UINTEGER, parent UINTEGER, frame UINTEGER);
  CREATE TABLE groups_${id}(id UINTEGER, process VARCHAR, thread VARCHAR, path VARCHAR, command VARCHAR,
    container_id VARCHAR, cgroup VARCHAR, service VARCHAR, host VARCHAR, period_nanos DOUBLE,
    attributes VARCHAR);
  CREATE TABLE series_${id}(id UINTEGER, grp UINTEGER, pid BIGINT, tid BIGINT, start_unix_nano UBIGINT);
  CREATE TABLE samples_${id}(t UINTEGER, node UINTEGER, series UINTEGER, cpu SMALLINT, weight DOUBLE);
  CREATE TABLE sums_${id}(tens USMALLINT, grp UINTEGER, cpu SMALLINT, weight DOUBLE);`;

/** Only parts of which a sample has a link have this table, and this column. */
const createLinksSql = (id: number): string => `
  CREATE TABLE links_${id}(id UINTEGER, trace_high UBIGINT, trace_low UBIGINT, span UBIGINT);
  ALTER TABLE samples_${id} ADD COLUMN link UINTEGER DEFAULT 0;
  INSERT INTO linked_parts VALUES (${id});`;

/** Tables of a part; each name ends in `_` and the part's id. */
export const PART_TABLES = ['places', 'frames', 'nodes', 'groups', 'series', 'samples', 'sums'];

export const dropTablesSql = (id: number): string =>
  `${PART_TABLES.map((table) => `DROP TABLE ${table}_${id};`).join(' ')} DROP TABLE IF EXISTS links_${id}; DELETE FROM linked_parts WHERE part = ${id}; DELETE FROM parts WHERE id = ${id}; DELETE FROM types WHERE part = ${id};`;

/** Writes in one transaction: after a crash either all of it is there or nothing. */
export async function writeFlush(connection: DuckDBConnection, { batches, requests }: Flush): Promise<void> {
  await connection.run('BEGIN');
  try {
    for (const batch of batches) await writeBatch(connection, batch);
    await appendColumns(connection, 'requests', [
      requests.map(({ id }) => id),
      BigInt64Array.from(requests, ({ atMs }) => BigInt(atMs)),
    ]);
    await connection.run('COMMIT');
  } catch (error) {
    await connection.run('ROLLBACK').catch(() => {});
    throw error;
  }
}

/** True if a flush is in the file: all of it is, if any of it is. */
export async function isWritten(connection: DuckDBConnection, { batches }: Flush): Promise<boolean> {
  const [batch] = batches;
  if (batch === undefined) return false;
  const { id } = batch.part.info;
  const reader = await connection.runAndReadAll(`SELECT events FROM parts WHERE id = ${id}`);
  return reader.getColumns()[0]?.[0] === batch.end.samples;
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

async function writeBatch(connection: DuckDBConnection, batch: Batch): Promise<void> {
  const { rows, end, part } = batch;
  const { info, written } = part;
  const { id } = info;
  if (written.samples === 0) {
    await connection.run(createTablesSql(id));
    await writeType(connection, info);
  }
  await writeLinks(connection, batch);
  await writeFrames(connection, batch);
  await appendColumns(connection, `nodes_${id}`, [
    idsBetween(written.nodes, end.nodes),
    part.tree.parents.subarray(written.nodes, end.nodes),
    part.tree.frames.subarray(written.nodes, end.nodes),
  ]);
  await writeSeries(connection, batch);
  await appendColumns(connection, `samples_${id}`, [
    Uint32Array.from(rows.times),
    Uint32Array.from(rows.nodes),
    Uint32Array.from(rows.series),
    Int16Array.from(rows.cpus),
    Float64Array.from(rows.weights),
    ...(hasLinks(end)
      ? [rows.links ? Uint32Array.from(rows.links) : new Uint32Array(rows.times.length)]
      : []),
  ]);
  await appendColumns(connection, `sums_${id}`, sumRows(batch));
  await connection.run(
    `INSERT OR REPLACE INTO parts VALUES (${id}, ${info.startMs}, ${end.samples}, ${info.minMs}, ${info.maxMs}, true)`,
  );
}

async function writeLinks(connection: DuckDBConnection, { part, end }: Batch): Promise<void> {
  const { written, linkTable } = part;
  const { id } = part.info;
  if (!hasLinks(end)) return;
  if (!hasLinks(written)) await connection.run(createLinksSql(id));
  const { tracesHigh, tracesLow, spans } = linkTable.slice(written.links, end.links);
  await appendColumns(connection, `links_${id}`, [
    idsBetween(written.links, end.links),
    tracesHigh,
    tracesLow,
    spans,
  ]);
}

async function writeType(connection: DuckDBConnection, { id, type }: PartInfo): Promise<void> {
  const { sampleType, periodType } = type;
  const texts = [sampleType.type, sampleType.unit, periodType.type, periodType.unit];
  await appendColumns(connection, 'types', [BigInt64Array.of(BigInt(id)), ...texts.map((text) => [text])]);
}

async function writeFrames(connection: DuckDBConnection, { part, end }: Batch): Promise<void> {
  const { written, frames: table } = part;
  const { id } = part.info;
  const places = table.places.slice(written.places, end.places);
  await appendColumns(connection, `places_${id}`, [
    idsBetween(written.places, end.places),
    places.map(({ file }) => file),
    places.map(({ mapping }) => mapping),
    places.map(({ kind }) => kind),
    places.map(({ binary }) => binary),
  ]);
  const frames = table.frames.slice(written.frames, end.frames);
  await appendColumns(connection, `frames_${id}`, [
    idsBetween(written.frames, end.frames),
    frames.map(({ name }) => name),
    Uint32Array.from(table.placeIds.slice(written.frames, end.frames)),
    Uint32Array.from(frames, ({ line = 0 }) => line),
  ]);
}

async function writeSeries(connection: DuckDBConnection, { part, end }: Batch): Promise<void> {
  const { written, seriesTable } = part;
  const { id } = part.info;
  const groups = seriesTable.groups.slice(written.groups, end.groups);
  await appendColumns(connection, `groups_${id}`, [
    idsBetween(written.groups, end.groups),
    groups.map(({ process }) => process),
    groups.map(({ thread }) => thread),
    groups.map(({ path }) => path),
    groups.map(({ command }) => command),
    groups.map(({ containerId }) => containerId),
    groups.map(({ cgroup }) => cgroup),
    groups.map(({ service }) => service),
    groups.map(({ host }) => host),
    Float64Array.from(groups, ({ periodNanos }) => periodNanos),
    groups.map(({ attributes }) => attributes),
  ]);
  const series = seriesTable.slice(written.series, end.series);
  await appendColumns(connection, `series_${id}`, [
    idsBetween(written.series, end.series),
    series.groups,
    BigInt64Array.from(series.pids, BigInt),
    BigInt64Array.from(series.tids, BigInt),
    series.startsUnixNano,
  ]);
}

function idsBetween(from: number, to: number): Uint32Array {
  const ids = new Uint32Array(to - from);
  for (let i = 0; i < ids.length; i++) ids[i] = from + i;
  return ids;
}

/** Events in every ten seconds of each group on each CPU: a flush adds rows, so that the same three may have several. */
function sumRows({ part, rows: { times, series, cpus, weights } }: Batch): Column[] {
  const indices = new Map<number, number>();
  const [tens, groups, ofCpus, sums]: number[][] = [[], [], [], []];
  for (let row = 0; row < times.length; row++) {
    const ten = Math.floor(times[row]! / SUM_MS);
    const group = part.seriesTable.groupOf(series[row]!);
    const key = (group * SUM_MS + ten) * CPUS + cpus[row]!;
    const index = indices.get(key);
    if (index !== undefined) sums![index]! += weights[row]!;
    else {
      indices.set(key, tens!.push(ten) - 1);
      groups!.push(group);
      ofCpus!.push(cpus[row]!);
      sums!.push(weights[row]!);
    }
  }
  return [
    Uint16Array.from(tens!),
    Uint32Array.from(groups!),
    Int16Array.from(ofCpus!),
    Float64Array.from(sums!),
  ];
}

/** Texts, or an array of the column's own type. */
type Column =
  | readonly string[]
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Float64Array
  | BigInt64Array
  | BigUint64Array;

const isTexts = (column: Column): column is readonly string[] => Array.isArray(column);

export async function appendColumns(
  connection: DuckDBConnection,
  table: string,
  columns: readonly Column[],
): Promise<void> {
  const count = columns[0]!.length;
  if (count === 0) return;
  const appender = await connection.createAppender(table);
  const types: DuckDBType[] = columns.map((_, i) => appender.columnType(i));
  for (let at = 0; at < count; at += CHUNK_ROWS) {
    const rows = Math.min(CHUNK_ROWS, count - at);
    const chunk = DuckDBDataChunk.create(types, rows);
    for (const [i, values] of columns.entries()) {
      if (isTexts(values)) chunk.setColumnValues(i, values.slice(at, at + rows));
      else setNumbers(chunk, i, values.subarray(at, at + rows));
    }
    appender.appendDataChunk(chunk);
  }
  appender.closeSync();
}
