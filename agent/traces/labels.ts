/** What the sampled program itself says of what it does, such as Go's pprof labels: ebpf/labels.h. */
import { attributesText } from '../../common/profile/model/attributes.ts';
import {
  BEAM_PROCESS_ID,
  BEAM_PROCESS_NAME,
  GOROUTINE_ID,
  PROGRAM_LABEL,
} from '../../common/profile/model/sample-attributes.ts';
import { LABEL, LabelKind, SAMPLE } from '../records/records.gen.ts';

const ALIGNMENT = 4;
/** Sets that were read of late; programs may have one a request. */
const MAX_KNOWN = 4096;
const known = new Map<string, string>();

/** As `attributesText` writes them; '' for none. `size` is the record's: labels are its end. */
export function attributesOfLabels(buffer: Buffer, at: number, size: number): string {
  const bytes = buffer.readUInt32LE(at + SAMPLE.labelBytes);
  if (bytes === 0 || bytes > size - SAMPLE.bytes) return '';
  const end = at + size;
  const key = buffer.toString('latin1', end - bytes, end);
  let text = known.get(key);
  if (text === undefined) {
    text = attributesText(readLabels(buffer, end - bytes, end));
    if (known.size >= MAX_KNOWN) known.clear();
    known.set(key, text);
  }
  return text;
}

function* readLabels(buffer: Buffer, start: number, end: number): Generator<[key: string, value: string]> {
  for (let at = start; at + LABEL.bytes <= end; ) {
    const keyAt = at + LABEL.bytes;
    const valueAt = keyAt + buffer[at + LABEL.keyBytes]!;
    const valueEnd = valueAt + buffer.readUInt16LE(at + LABEL.valueBytes);
    if (valueEnd > end) return;
    const kind = buffer[at + LABEL.kind]!;
    if (kind === LabelKind.GOROUTINE) yield [GOROUTINE_ID, `${buffer.readBigUInt64LE(valueAt)}`];
    if (kind === LabelKind.BEAM_PROCESS) yield [BEAM_PROCESS_ID, pidText(buffer.readBigUInt64LE(valueAt))];
    if (kind === LabelKind.BEAM_NAME) yield [BEAM_PROCESS_NAME, buffer.toString('utf8', valueAt, valueEnd)];
    if (kind === LabelKind.TEXT) {
      const value = buffer.toString('utf8', valueAt, valueEnd);
      const name = PROGRAM_LABEL + buffer.toString('utf8', keyAt, valueAt);
      yield [name, buffer[at + LABEL.isCut] ? `${value.replace(/\uFFFD$/, '')}…` : value];
    }
    at += Math.ceil((valueEnd - at) / ALIGNMENT) * ALIGNMENT;
  }
}

/** As Erlang writes it; erl_term.h: a tag of 4 bits, a number of 15, a serial number of 13. */
const pidText = (term: bigint): string => `<0.${(term >> 4n) & 0x7fffn}.${(term >> 19n) & 0x1fffn}>`;
