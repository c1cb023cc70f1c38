/**
 * What a process says of the contexts of its threads, in its own (process-context.ts): which variable leads to them, and what
 * keys their attributes have. OTEP 4947; of Node the OpenTelemetry profiler's design document 1861 and its writers.
 */
import type { ContextValue } from '../processes/process-context.ts';

export interface ThreadContextSchema {
  /** The thread-local variable. */
  variable: string;
  /** Bytes of the variable. */
  size: number;
  /** By number. */
  keys: readonly string[];
  /** Undefined: the variable holds the address of the record. */
  node: NodeLayout | undefined;
}

/** Offsets in bytes. */
export interface NodeLayout {
  /** JSMap: its table. */
  table: number;
  /** Table: how many elements it has. */
  counts: number;
  /** Wrapper: what it wraps. */
  wrapped: number;
  /** The same where that is 0. */
  wrappedElse: number | undefined;
  /** What is wrapped: the pointer to the record. Undefined: it is wrapped itself. */
  record: number | undefined;
}

const VERSION = 'threadlocal.schema_version';
const KEYS = 'threadlocal.attribute_key_map';
const POINTERS: ReadonlySet<unknown> = new Set(['tlsdesc_v1_dev', 'tlsdesc_v1', 'tls_v1']);
const NODE: ReadonlySet<unknown> = new Set(['nodejs_v1_dev', 'nodejs_v1']);
const MAX_KEYS = 256;
/** Of V8 without compressed pointers, as Node is built; not all writers say so. */
const TAGGED_BYTES = 8;
/** Since V8 12.5 (Node 23) an object of C++ has a word of its own, which these wrappers leave 0, before its fields. */
const USUAL = { table: 24, counts: 16, wrapped: 24, wrappedElse: 32 };
const MAX_OFFSET = 4096;

/** Undefined: there are none, or of a kind that is not known. */
export function schemaOf(attributes: ReadonlyMap<string, ContextValue>): ThreadContextSchema | undefined {
  const version = attributes.get(VERSION);
  const listed = attributes.get(KEYS);
  const keys = Array.isArray(listed) ? listed.slice(0, MAX_KEYS) : [];
  if (POINTERS.has(version)) return { variable: 'otel_thread_ctx_v1', size: 8, keys, node: undefined };
  const node = NODE.has(version) ? nodeLayout(attributes) : undefined;
  return node && { variable: 'otel_thread_ctx_nodejs_v1', size: 32, keys, node };
}

function nodeLayout(attributes: ReadonlyMap<string, ContextValue>): NodeLayout | undefined {
  const told = (key: string): number | undefined => {
    const value = attributes.get(`threadlocal.${key}`);
    return value === undefined ? undefined : Number(value);
  };
  const direct = told('js_object_record_offset');
  const indirect = told('wrapped_object_offset');
  const layout = {
    table: told('js_map_table_offset') ?? USUAL.table,
    counts: told('ordered_hash_map_header_size') ?? USUAL.counts,
    wrapped: direct ?? indirect ?? USUAL.wrapped,
    wrappedElse: direct === undefined && indirect === undefined ? USUAL.wrappedElse : undefined,
    record: direct === undefined ? told('native_wrap_fields_offset') : undefined,
  };
  const isUsable = Object.values(layout).every(
    (offset) => offset === undefined || (Number.isInteger(offset) && offset >= 0 && offset < MAX_OFFSET),
  );
  return isUsable && (told('tagged_size') ?? TAGGED_BYTES) === TAGGED_BYTES ? layout : undefined;
}
