import type { ClickHouseClient } from '@clickhouse/client';

/** One entry per version: what brings a database of the version before to it. Entries are only ever added. */
const MIGRATIONS: readonly (readonly string[])[] = [
  [
    `CREATE TABLE IF NOT EXISTS frames (
      part UInt64, start DateTime('UTC'), id UInt32,
      name String CODEC(ZSTD(3)), file LowCardinality(String), mapping LowCardinality(String), kind LowCardinality(String),
      binary LowCardinality(String)
    ) ENGINE = MergeTree PARTITION BY toDate(start) ORDER BY (part, id)`,
    `CREATE TABLE IF NOT EXISTS nodes (
      part UInt64, start DateTime('UTC'), id UInt32 CODEC(Delta, ZSTD), parent UInt32 CODEC(Delta, ZSTD), frame UInt32 CODEC(ZSTD)
    ) ENGINE = MergeTree PARTITION BY toDate(start) ORDER BY (part, id)`,
    `CREATE TABLE IF NOT EXISTS series (
      part UInt64, start DateTime('UTC'), id UInt32, process LowCardinality(String), pid Int64, tid Int64,
      thread LowCardinality(String), path LowCardinality(String), command LowCardinality(String), container_id LowCardinality(String),
      cgroup LowCardinality(String), service LowCardinality(String), host LowCardinality(String),
      start_unix_nano UInt64, period_nanos Float64
    ) ENGINE = MergeTree PARTITION BY toDate(start) ORDER BY (part, id)`,
    `CREATE TABLE IF NOT EXISTS samples (
      part UInt64, start DateTime('UTC'), t UInt32 CODEC(Delta, ZSTD), node UInt32 CODEC(ZSTD), series UInt32 CODEC(ZSTD),
      cpu Int16 CODEC(ZSTD), weight Float64 CODEC(ZSTD)
    ) ENGINE = MergeTree PARTITION BY toDate(start) ORDER BY (part, series, node, t)
    SETTINGS non_replicated_deduplication_window = 1000`,
    `CREATE TABLE IF NOT EXISTS requests (id String, at_ms Int64)
    ENGINE = MergeTree ORDER BY at_ms TTL toDateTime(intDiv(at_ms, 1000)) + INTERVAL 1 DAY`,
    `CREATE TABLE IF NOT EXISTS parts (
      part UInt64, start DateTime('UTC'), events SimpleAggregateFunction(sum, Float64),
      min_t SimpleAggregateFunction(min, UInt32), max_t SimpleAggregateFunction(max, UInt32)
    ) ENGINE = AggregatingMergeTree PARTITION BY toDate(start) ORDER BY (part, start)`,
    `CREATE MATERIALIZED VIEW IF NOT EXISTS parts_of_samples TO parts AS
    SELECT part, start, sum(weight) AS events, min(t) AS min_t, max(t) AS max_t FROM samples GROUP BY part, start`,
  ],
  ['ALTER TABLE frames ADD COLUMN IF NOT EXISTS line UInt32 CODEC(ZSTD)'],
  ['ALTER TABLE series ADD COLUMN IF NOT EXISTS attributes LowCardinality(String)'],
  // a part holds samples of one type; those that are not listed are of CPU samples, as all were before
  [
    `CREATE TABLE IF NOT EXISTS types (
      part UInt64, start DateTime('UTC'), sample_type LowCardinality(String), sample_unit LowCardinality(String),
      period_type LowCardinality(String), period_unit LowCardinality(String)
    ) ENGINE = MergeTree PARTITION BY toDate(start) ORDER BY part`,
    'ALTER TABLE parts ADD COLUMN IF NOT EXISTS row_count SimpleAggregateFunction(sum, UInt64)',
    'DROP VIEW IF EXISTS parts_of_samples',
    `CREATE MATERIALIZED VIEW IF NOT EXISTS parts_of_samples TO parts AS
    SELECT part, start, sum(weight) AS events, min(t) AS min_t, max(t) AS max_t, count() AS row_count
    FROM samples GROUP BY part, start`,
  ],
  [
    `CREATE TABLE IF NOT EXISTS links (
      part UInt64, start DateTime('UTC'), id UInt32 CODEC(Delta, ZSTD), trace_id String CODEC(ZSTD), span_id String CODEC(ZSTD)
    ) ENGINE = MergeTree PARTITION BY toDate(start) ORDER BY (part, id)`,
    'ALTER TABLE samples ADD COLUMN IF NOT EXISTS link UInt32 CODEC(ZSTD)',
  ],
];

/** Tables with a partition a day. */
export const DAILY_TABLES = ['frames', 'nodes', 'series', 'samples', 'parts', 'types', 'links'] as const;

/**
 * Brings the database to this version's schema. Every statement can be repeated: ClickHouse has no transactions
 * around them, so after a crash the same ones run again.
 *
 * @throws Error for a database of a newer version
 */
export async function migrate(client: ClickHouseClient): Promise<void> {
  await client.command({
    query:
      'CREATE TABLE IF NOT EXISTS meta (schema_version UInt32) ENGINE = MergeTree ORDER BY schema_version',
  });
  const answer = await client.query({
    query: 'SELECT max(schema_version) AS version FROM meta',
    format: 'JSON',
  });
  const { data } = await answer.json<{ version: number }>();
  const version = data[0]?.version ?? 0;
  if (version > MIGRATIONS.length) {
    throw new Error(
      `the database has schema version ${version}, this program knows ${MIGRATIONS.length}: ` +
        'use the newer everyframe that wrote it, or another database',
    );
  }
  for (const [index, statements] of MIGRATIONS.entries()) {
    if (index < version) continue;
    for (const query of statements) await client.command({ query });
    await client.insert({ table: 'meta', values: [[index + 1]], format: 'JSONCompactEachRow' });
  }
}
