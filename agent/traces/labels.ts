/** What the sampled program itself says of what it does, such as Go's pprof labels: ebpf/labels.h. */
import { type Pid, toPid } from '../../common/base/brand.ts';
import { attributesText } from '../../common/profile/model/attributes.ts';
import type { Link } from '../../common/profile/model/profile.ts';
import {
  BEAM_PROCESS_ID,
  BEAM_PROCESS_NAME,
  GOROUTINE_ID,
  PROGRAM_LABEL,
} from '../../common/profile/model/sample-attributes.ts';
import { LABEL, LabelKind, THREAD_CONTEXT_RECORD as RECORD, SAMPLE } from '../records/records.gen.ts';

export interface SampleLabels {
  /** As `attributesText` writes them; '' for none. */
  attributes: string;
  /** Trace and span, 32 and 16 hexadecimal digits; '' for none. */
  span: string;
}

/** Keys of the attributes of the contexts of a process's threads. */
export interface ContextKeys {
  /** By number. */
  names: readonly string[];
  /** Of these keys: others have another one. */
  id: number;
}

export const NO_KEYS: ContextKeys = { names: [], id: 0 };

export type KeysOf = (pid: Pid) => ContextKeys;

const ALIGNMENT = 4;
/** Sets that were read of late; programs may have one a request. */
const MAX_KNOWN = 4096;
export const NO_LABELS: SampleLabels = { attributes: '', span: '' };
const TRACE_DIGITS = 32;
const NO_TRACE = '0'.repeat(TRACE_DIGITS);
const NO_SPAN = '0'.repeat(16);
/**
 * Attributes that tell requests apart, as Datadog's local root span: each makes a set of attributes of its own, of which receivers
 * keep few. The trace and the span stay, which are not attributes.
 */
const ID = /(?:^|[._])(?:trace|span)_id$/;

export class LabelReader {
  readonly #keysOf: KeysOf;
  readonly #known = new Map<string, SampleLabels>();

  constructor(keysOf: KeysOf) {
    this.#keysOf = keysOf;
  }

  /** `size` is the record's: labels are its end. */
  labelsOf(buffer: Buffer, at: number, size: number): SampleLabels {
    const bytes = buffer.readUInt32LE(at + SAMPLE.labelBytes);
    if (bytes === 0 || bytes > size - SAMPLE.bytes) return NO_LABELS;
    const end = at + size;
    const keys = this.#keysOf(toPid(buffer.readUInt32LE(at + SAMPLE.processTgid)));
    // with other keys the same bytes say something else
    const known = `${keys.id} ${buffer.toString('latin1', end - bytes, end)}`;
    let labels = this.#known.get(known);
    if (labels === undefined) {
      labels = readLabels(buffer, end - bytes, end, keys.names);
      if (this.#known.size >= MAX_KNOWN) this.#known.clear();
      this.#known.set(known, labels);
    }
    return labels;
  }
}

function readLabels(buffer: Buffer, start: number, end: number, keys: readonly string[]): SampleLabels {
  const pairs: [key: string, value: string][] = [];
  let span = '';
  for (let at = start; at + LABEL.bytes <= end; ) {
    const keyAt = at + LABEL.bytes;
    const valueAt = keyAt + buffer[at + LABEL.keyBytes]!;
    const valueEnd = valueAt + buffer.readUInt16LE(at + LABEL.valueBytes);
    if (valueEnd > end) break;
    const kind = buffer[at + LABEL.kind]!;
    if (kind === LabelKind.THREAD_CONTEXT) {
      span = spanOf(buffer, valueAt);
      pairs.push(...contextAttributes(buffer, valueAt + RECORD.bytes, valueEnd, keys));
    } else if (kind === LabelKind.TEXT) {
      const value = buffer.toString('utf8', valueAt, valueEnd);
      const name = PROGRAM_LABEL + buffer.toString('utf8', keyAt, valueAt);
      pairs.push([name, buffer[at + LABEL.isCut] ? `${value.replace(/\uFFFD$/, '')}…` : value]);
    } else if (kind === LabelKind.GOROUTINE) pairs.push([GOROUTINE_ID, `${buffer.readBigUInt64LE(valueAt)}`]);
    else if (kind === LabelKind.BEAM_PROCESS)
      pairs.push([BEAM_PROCESS_ID, pidText(buffer.readBigUInt64LE(valueAt))]);
    else if (kind === LabelKind.BEAM_NAME)
      pairs.push([BEAM_PROCESS_NAME, buffer.toString('utf8', valueAt, valueEnd)]);
    at += Math.ceil((valueEnd - at) / ALIGNMENT) * ALIGNMENT;
  }
  return { attributes: attributesText(pairs), span };
}

/** '' where it is of no trace. */
function spanOf(buffer: Buffer, at: number): string {
  const trace = buffer.toString('hex', at + RECORD.traceId, at + RECORD.traceId + 16);
  const span = buffer.toString('hex', at + RECORD.spanId, at + RECORD.spanId + 8);
  return trace === NO_TRACE || span === NO_SPAN ? '' : trace + span;
}

/** Of a span that is not ''. */
export const linkOf = (span: string): Link => ({
  traceId: span.slice(0, TRACE_DIGITS),
  spanId: span.slice(TRACE_DIGITS),
});

/** Number of the key, bytes of the value, value; what has a number without a key is left out, and an end that is cut, and {@link ID}. */
function* contextAttributes(
  buffer: Buffer,
  start: number,
  end: number,
  keys: readonly string[],
): Generator<[key: string, value: string]> {
  for (let at = start; at + 2 <= end; ) {
    const [key, from] = [keys[buffer[at]!] ?? '', at + 2];
    at = from + buffer[at + 1]!;
    if (at > end) return;
    if (key !== '' && !ID.test(key)) yield [PROGRAM_LABEL + key, buffer.toString('utf8', from, at)];
  }
}

/** As Erlang writes it; erl_term.h: a tag of 4 bits, a number of 15, a serial number of 13. */
const pidText = (term: bigint): string => `<0.${(term >> 4n) & 0x7fffn}.${(term >> 19n) & 0x1fffn}>`;
