import type { ClickHouseClient } from '@clickhouse/client';
import type { Batch, Flush } from '../database/open-parts.ts';

type Row = (string | number)[];

/** ClickHouse's DateTime: whole seconds since 1970. */
const seconds = (ms: number): number => Math.floor(ms / 1000);

/**
 * Writes what samples refer to, then all samples in one insert, then the requests. A crash in between leaves
 * dictionary entries that nothing refers to, or samples of a request that is sent again.
 *
 * @param token names the flush: samples that were written under it are not written a second time
 */
export async function writeFlush(client: ClickHouseClient, flush: Flush, token: string): Promise<void> {
  const { batches, requests } = flush;
  const insert = async (table: string, values: Row[], tokenOfInsert?: string): Promise<void> => {
    if (values.length === 0) return;
    await client.insert({
      table,
      values,
      format: 'JSONCompactEachRow',
      ...(tokenOfInsert && { clickhouse_settings: { insert_deduplication_token: tokenOfInsert } }),
    });
  };
  await insert('types', batches.flatMap(typeOf));
  await insert('frames', batches.flatMap(framesOf));
  await insert('nodes', batches.flatMap(nodesOf));
  await insert('series', batches.flatMap(seriesOf));
  await insert('links', batches.flatMap(linksOf));
  await insert('samples', batches.flatMap(samplesOf), token);
  await insert(
    'requests',
    requests.map(({ id, atMs }) => [id, atMs]),
  );
}

/** The row of `types` for a part that begins; none later. */
function typeOf({ part }: Batch): Row[] {
  const { id, startMs, type } = part.info;
  const { sampleType, periodType } = type;
  if (part.written.samples > 0) return [];
  return [[id, seconds(startMs), sampleType.type, sampleType.unit, periodType.type, periodType.unit]];
}

function framesOf({ part, end }: Batch): Row[] {
  const { id, startMs } = part.info;
  const first = part.written.frames;
  return part.frames.frames
    .slice(first, end.frames)
    .map(({ name, file, mapping, kind, binary = '', line = 0 }, i) => {
      return [id, seconds(startMs), first + i, name, file, mapping, kind, binary, line];
    });
}

function nodesOf({ part, end }: Batch): Row[] {
  const { id, startMs } = part.info;
  const rows: Row[] = [];
  for (let node = part.written.nodes; node < end.nodes; node++)
    rows.push([id, seconds(startMs), node, part.tree.parents[node]!, part.tree.frames[node]!]);
  return rows;
}

function seriesOf({ part, end }: Batch): Row[] {
  const { id, startMs } = part.info;
  const rows: Row[] = [];
  for (let series = part.written.series; series < end.series; series++) {
    const each = part.seriesTable.at(series);
    const { process, pid, tid, thread, path, command, containerId, cgroup, service, host } = each;
    const identity = [process, pid, tid, thread, path, command, containerId, cgroup, service, host];
    rows.push([
      id,
      seconds(startMs),
      series,
      ...identity,
      String(each.startUnixNano),
      each.periodNanos,
      each.attributes,
    ]);
  }
  return rows;
}

function linksOf({ part, end }: Batch): Row[] {
  const { id, startMs } = part.info;
  const first = part.written.links;
  return Array.from({ length: end.links - first }, (_, i) => {
    const { traceId, spanId } = part.linkTable.at(first + i);
    return [id, seconds(startMs), first + i, traceId, spanId];
  });
}

function samplesOf({ part, rows }: Batch): Row[] {
  const { id, startMs } = part.info;
  const { times, nodes, series, cpus, weights, links } = rows;
  return times.map((t, i) => {
    return [id, seconds(startMs), t, nodes[i]!, series[i]!, cpus[i]!, weights[i]!, links?.[i] ?? 0];
  });
}
