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

async function addToFrames(connection: DuckDBConnection, column: string): Promise<void> {
  const reader = await connection.runAndReadAll('SELECT id FROM parts');
  for (const id of reader.getColumns()[0] ?? [])
    await connection.run(`ALTER TABLE frames_${id} ADD COLUMN IF NOT EXISTS ${column}`);
}
