import type { DuckDBConnection } from '@duckdb/node-api';

type Migration = string | ((connection: DuckDBConnection) => Promise<unknown>);

/** One entry per version: what brings a file of the version before to it. Entries are never changed, only added. */
const MIGRATIONS: readonly Migration[] = [
  'CREATE TABLE parts(id BIGINT PRIMARY KEY, start_ms BIGINT, events DOUBLE, min_ms BIGINT, max_ms BIGINT)',
  'CREATE TABLE requests(id VARCHAR, at_ms BIGINT)',
  // which binary a frame without a name is of: parts before did not keep it
  (connection) => addToFrames(connection, `"binary" VARCHAR DEFAULT ''`),
  'ALTER TABLE parts ADD COLUMN has_sums BOOLEAN DEFAULT false',
  (connection) => addToFrames(connection, 'line UINTEGER DEFAULT 0'),
  // what frames, and what series, have in common is kept once; sums are by group
  (connection) => forEachPart(connection, splitPartSql),
  `CREATE TABLE functions(id UINTEGER, name VARCHAR, file VARCHAR, mapping VARCHAR, kind VARCHAR, "binary" VARCHAR);
   CREATE TABLE trees(part BIGINT PRIMARY KEY, nodes DOUBLE)`,
  // sums by function came with trees later than trees did
  'ALTER TABLE trees ADD COLUMN has_functions BOOLEAN DEFAULT false',
  // attributes that have no column of their own were left out before
  (connection) =>
    forEachPart(connection, (id) => `ALTER TABLE groups_${id} ADD COLUMN attributes VARCHAR DEFAULT ''`),
  // a part holds samples of one type; those that are not listed are of CPU samples, as all were before
  `CREATE TABLE types(part BIGINT, sample_type VARCHAR, sample_unit VARCHAR, period_type VARCHAR,
    period_unit VARCHAR)`,
  // parts get a table and a column of links with their first one
  'CREATE TABLE linked_parts(part BIGINT)',
];

/**
 * Brings the file to this version's schema, in one transaction.
 *
 * @throws Error for a file of a newer version
 */
export async function migrate(connection: DuckDBConnection, migrations = MIGRATIONS): Promise<void> {
  await connection.run('CREATE TABLE IF NOT EXISTS meta(schema_version INTEGER)');
  const reader = await connection.runAndReadAll('SELECT coalesce(max(schema_version), 0) FROM meta');
  const version = Number(reader.getColumns()[0]![0]);
  if (version > migrations.length) {
    throw new Error(
      `the store has schema version ${version}, this program knows ${migrations.length}: ` +
        'use the newer everyframe that wrote it, or another directory',
    );
  }
  if (version === migrations.length) return;
  await connection.run('BEGIN');
  try {
    for (const step of migrations.slice(version))
      await (typeof step === 'string' ? connection.run(step) : step(connection));
    await connection.run(`DELETE FROM meta; INSERT INTO meta VALUES (${migrations.length})`);
    await connection.run('COMMIT');
  } catch (error) {
    await connection.run('ROLLBACK').catch(() => {});
    throw error;
  }
}

const addToFrames = (connection: DuckDBConnection, column: string): Promise<void> =>
  forEachPart(connection, (id) => `ALTER TABLE frames_${id} ADD COLUMN IF NOT EXISTS ${column}`);

async function forEachPart(connection: DuckDBConnection, sql: (id: number) => string): Promise<void> {
  const reader = await connection.runAndReadAll('SELECT id FROM parts');
  for (const id of reader.getColumns()[0] ?? []) await connection.run(sql(Number(id)));
}

const PLACE = 'file, mapping, kind, "binary"';
const GROUP = 'process, thread, path, command, container_id, cgroup, service, host, period_nanos';

const splitPartSql = (id: number): string => `
  CREATE TABLE places_${id} AS SELECT (row_number() OVER () - 1)::UINTEGER AS id, * FROM
    (SELECT DISTINCT ${PLACE} FROM frames_${id});
  CREATE TABLE new_frames AS SELECT frames.id, name, places.id AS place, line FROM frames_${id} frames
    JOIN places_${id} places USING (${PLACE});
  DROP TABLE frames_${id};
  ALTER TABLE new_frames RENAME TO frames_${id};
  CREATE TABLE groups_${id} AS SELECT (row_number() OVER () - 1)::UINTEGER AS id, * FROM
    (SELECT DISTINCT ${GROUP} FROM series_${id});
  CREATE TABLE new_series AS SELECT series.id, groups.id AS grp, pid, tid, start_unix_nano FROM series_${id} series
    JOIN groups_${id} groups USING (${GROUP});
  DROP TABLE series_${id};
  ALTER TABLE new_series RENAME TO series_${id};
  DROP TABLE IF EXISTS sums_${id};
  CREATE TABLE sums_${id} AS SELECT (t // 10000)::USMALLINT AS tens, grp, cpu, sum(weight) AS weight
    FROM samples_${id} samples JOIN series_${id} series ON samples.series = series.id GROUP BY ALL;`;
