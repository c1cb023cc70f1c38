/**
 * Counters as OTLP metrics, the part of opentelemetry-proto 1.x's metrics.proto that they need: cumulative sums and
 * gauges with one point each. Written and read by hand: OpenTelemetry's SDK takes 16 MiB of an agent that has 60.
 */
import protobuf from 'protobufjs/minimal.js';
import { ProtoWriter } from '../../protobuf/proto-writer.ts';
import type { CounterReport } from './counter-report.ts';

export const METRICS_EXPORT_PATH = '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export';

const CUMULATIVE = 2;
/** A request that holds more is read up to here. */
const MAX_METRICS = 2000;
const MAX_ATTRIBUTES = 100;
const MAX_TEXT = 200;

export interface Scope {
  scopeName: string;
  scopeVersion: string;
}

/** An ExportMetricsServiceRequest. `isGauge` shows the names of values that also fall. */
export function encodeCounters(
  { resource, startMs, timeMs, counters }: CounterReport,
  { scopeName, scopeVersion }: Scope,
  isGauge: (name: string) => boolean,
): Uint8Array {
  const attributes = new ProtoWriter();
  for (const [key, value] of Object.entries(resource)) {
    attributes.message(
      1,
      written((pair) => {
        pair.string(1, key);
        pair.message(
          2,
          written((any) => any.string(1, value)),
        );
      }),
    );
  }
  const scoped = new ProtoWriter();
  scoped.message(
    1,
    written((scope) => {
      scope.string(1, scopeName);
      scope.string(2, scopeVersion);
    }),
  );
  for (const [name, value] of Object.entries(counters)) {
    if (!Number.isFinite(value)) continue;
    scoped.message(
      2,
      written((metric) => {
        metric.string(1, name);
        const point = written((each) => writePoint(each, value, startMs, timeMs));
        if (isGauge(name))
          metric.message(
            5,
            written((gauge) => gauge.message(1, point)),
          );
        else {
          metric.message(
            7,
            written((sum) => {
              sum.message(1, point);
              sum.uint(2, CUMULATIVE);
              sum.uint(3, 1);
            }),
          );
        }
      }),
    );
  }
  const request = written((out) =>
    out.message(
      1,
      written((all) => {
        all.message(1, attributes);
        all.message(2, scoped);
      }),
    ),
  );
  return request.finish();
}

function written(write: (writer: ProtoWriter) => void): ProtoWriter {
  const writer = new ProtoWriter(64);
  write(writer);
  return writer;
}

const nanos = (ms: number): bigint => BigInt(Math.round(ms)) * 1_000_000n;

/** NumberDataPoint: whole numbers as `as_int`, others as `as_double`. 0 is written: the point holds nothing else. */
function writePoint(point: ProtoWriter, value: number, startMs: number, timeMs: number): void {
  point.fixed64(2, nanos(startMs));
  point.fixed64(3, nanos(timeMs));
  const bytes = new DataView(new ArrayBuffer(9));
  const isWhole = Number.isSafeInteger(value);
  bytes.setUint8(0, (isWhole ? 6 : 4) * 8 + 1);
  if (isWhole) bytes.setBigInt64(1, BigInt(value), true);
  else bytes.setFloat64(1, value, true);
  point.raw(new Uint8Array(bytes.buffer));
}

/**
 * What a request says, one report a resource. Other kinds of metrics are passed over.
 *
 * @throws Error of protobufjs for bytes that are not protobuf
 */
export function decodeCounters(bytes: Uint8Array): CounterReport[] {
  const reports: CounterReport[] = [];
  eachField(bytes, (field, reader) => {
    if (field !== 1) return false;
    reports.push(readResourceMetrics(reader.bytes()));
    return true;
  });
  return reports;
}

/** Calls back for each field of a message; what is not taken (false) is skipped. */
function eachField(bytes: Uint8Array, take: (field: number, reader: protobuf.Reader) => boolean): void {
  const reader = protobuf.Reader.create(bytes);
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (!take(tag >>> 3, reader)) reader.skipType(tag & 7);
  }
}

function readResourceMetrics(bytes: Uint8Array): CounterReport {
  const report: CounterReport = { resource: {}, startMs: 0, timeMs: 0, counters: {} };
  let metrics = 0;
  eachField(bytes, (field, reader) => {
    if (field === 1) readAttributes(reader.bytes(), report.resource);
    else if (field === 2) {
      eachField(reader.bytes(), (inner, scoped) => {
        if (inner !== 2 || ++metrics > MAX_METRICS) return false;
        readMetric(scoped.bytes(), report);
        return true;
      });
    } else return false;
    return true;
  });
  return report;
}

function readAttributes(bytes: Uint8Array, into: Record<string, string>): void {
  let count = 0;
  eachField(bytes, (field, reader) => {
    if (field !== 1 || ++count > MAX_ATTRIBUTES) return false;
    let key = '';
    let value = '';
    eachField(reader.bytes(), (inner, pair) => {
      if (inner === 1) key = pair.string();
      else if (inner === 2) {
        eachField(pair.bytes(), (kind, any) => {
          if (kind !== 1) return false;
          value = any.string();
          return true;
        });
      } else return false;
      return true;
    });
    into[key.slice(0, MAX_TEXT)] = value.slice(0, MAX_TEXT);
    return true;
  });
}

function readMetric(bytes: Uint8Array, report: CounterReport): void {
  let name = '';
  let value: number | undefined;
  eachField(bytes, (field, reader) => {
    if (field === 1) name = reader.string();
    else if (field === 5 || field === 7) {
      eachField(reader.bytes(), (inner, data) => {
        if (inner !== 1) return false;
        value = readPoint(data.bytes(), report);
        return true;
      });
    } else return false;
    return true;
  });
  if (value !== undefined && Number.isFinite(value)) report.counters[name.slice(0, MAX_TEXT)] = value;
}

function readPoint(bytes: Uint8Array, report: CounterReport): number | undefined {
  let value: number | undefined;
  eachField(bytes, (field, reader) => {
    if (field === 2) report.startMs = toMs(reader.fixed64());
    else if (field === 3) report.timeMs = toMs(reader.fixed64());
    else if (field === 4) value = reader.double();
    else if (field === 6) value = toNumber(reader.sfixed64());
    else return false;
    return true;
  });
  return value;
}

/** protobufjs gives a number, or a Long where that library is there. */
const toNumber = (value: unknown): number => Number(String(value));
/** From nanoseconds; a double holds those of today to a quarter of a microsecond. */
const toMs = (nanos: unknown): number => Math.round(toNumber(nanos) / 1e6);
