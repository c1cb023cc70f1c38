import type { ProfileType } from '../../../common/profile/model/profile-type.ts';
import type { Column, RowQuery, Rows, TimeRange } from '../store.ts';
import { countOf } from '../stored-type.ts';

const INITIAL_ROWS = 1024;

/**
 * Samples as columns, 12 bytes an event; a weight column exists only once an event stands for several, one of links only once an
 * event has one.
 */
export class SampleColumns {
  length = 0;
  /** Milliseconds since the segment's start, which spans one minute. */
  times = new Uint16Array(INITIAL_ROWS);
  nodes = new Uint32Array(INITIAL_ROWS);
  series = new Uint32Array(INITIAL_ROWS);
  /** Logical CPU, -1 if unknown. */
  cpus = new Int16Array(INITIAL_ROWS);
  weights: Float64Array<ArrayBuffer> | undefined;
  links: Uint32Array<ArrayBuffer> | undefined;

  get bytes(): number {
    return this.times.length * 12 + (this.weights?.byteLength ?? 0) + (this.links?.byteLength ?? 0);
  }

  push(time: number, node: number, series: number, cpu: number, weight: number, link: number): void {
    const row = this.length++;
    if (row === this.times.length) this.#resize(row * 2);
    this.times[row] = time;
    this.nodes[row] = node;
    this.series[row] = series;
    this.cpus[row] = cpu;
    if (weight !== 1 && this.weights === undefined)
      this.weights = new Float64Array(this.times.length).fill(1);
    if (this.weights !== undefined) this.weights[row] = weight;
    if (link > 0) this.links ??= new Uint32Array(this.times.length);
    if (this.links !== undefined) this.links[row] = link;
  }

  /** Gives back the room kept for growth: for a minute that has passed. */
  trim(): void {
    if (this.length < this.times.length) this.#resize(Math.max(this.length, 1));
  }

  /** Counts samples: a row of CPU samples stands for as many as its weight. */
  countSamples(
    { fromMs, toMs }: TimeRange,
    { startMs, type }: { startMs: number; type: ProfileType },
  ): number {
    let count = 0;
    for (let row = 0; row < this.length; row++) {
      const timeMs = startMs + this.times[row]!;
      if (timeMs >= fromMs && timeMs < toMs) count += countOf(type, this.weights?.[row] ?? 1);
    }
    return count;
  }

  /** Views where every row is wanted, copies of the wanted rows otherwise. */
  select(query: RowQuery, startMs: number): Rows {
    const { length, times, nodes, series, cpus, links } = this;
    const weights = query.counts ? undefined : this.weights;
    const from = query.fromMs - startMs;
    const to = query.toMs - startMs;
    const wanted = new Uint32Array(length);
    let count = 0;
    for (let row = 0; row < length; row++) {
      const time = times[row]!;
      if (time < from || time >= to) continue;
      if (query.series !== undefined && query.series[series[row]!] !== 1) continue;
      if (query.nodes !== undefined && query.nodes[nodes[row]!] !== 1) continue;
      if (query.cpus !== undefined && query.cpus[cpus[row]!] !== 1) continue;
      if (query.links !== undefined && query.links[links?.[row] ?? 0] !== 1) continue;
      wanted[count++] = row;
    }
    if (count === length) return { length, times, nodes, series, groups: undefined, cpus, links, weights };
    const rows = wanted.subarray(0, count);
    const has = (column: Column): boolean => query.by.includes(column);
    return {
      length: count,
      times: has('time') ? rows.map((row) => times[row]!) : undefined,
      nodes: has('node') ? rows.map((row) => nodes[row]!) : undefined,
      series: has('series') ? rows.map((row) => series[row]!) : undefined,
      groups: undefined,
      cpus: has('cpu') ? Int32Array.from(rows, (row) => cpus[row]!) : undefined,
      links: links && has('link') ? rows.map((row) => links[row]!) : undefined,
      weights: weights && Float64Array.from(rows, (row) => weights[row]!),
    };
  }

  #resize(rows: number): void {
    this.times = resized(this.times, new Uint16Array(rows));
    this.nodes = resized(this.nodes, new Uint32Array(rows));
    this.series = resized(this.series, new Uint32Array(rows));
    this.cpus = resized(this.cpus, new Int16Array(rows));
    if (this.links !== undefined) this.links = resized(this.links, new Uint32Array(rows));
    if (this.weights !== undefined) this.weights = resized(this.weights, new Float64Array(rows).fill(1));
  }
}

function resized<T extends Uint16Array | Uint32Array | Int16Array | Float64Array>(from: T, to: T): T {
  to.set(from.length > to.length ? from.subarray(0, to.length) : from);
  return to;
}
