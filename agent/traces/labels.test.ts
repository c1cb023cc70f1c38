import { describe, expect, test } from 'vitest';
import { readAttributes } from '../../common/profile/model/attributes.ts';
import { LABEL, LabelKind, THREAD_CONTEXT_RECORD as RECORD, SAMPLE } from '../records/records.gen.ts';
import { LabelReader, NO_LABELS, type SampleLabels } from './labels.ts';

interface Label {
  kind?: number;
  key: string;
  value: string | Buffer;
  isCut?: boolean;
}

function encode({ kind = LabelKind.TEXT, key, value, isCut = false }: Label): Buffer {
  const [keyBytes, valueBytes] = [Buffer.from(key), Buffer.from(value)];
  const head = Buffer.alloc(LABEL.bytes);
  head.writeUInt8(kind, LABEL.kind);
  head.writeUInt8(Number(isCut), LABEL.isCut);
  head.writeUInt8(keyBytes.length, LABEL.keyBytes);
  head.writeUInt16LE(valueBytes.length, LABEL.valueBytes);
  const label = Buffer.concat([head, keyBytes, valueBytes]);
  return Buffer.concat([label, Buffer.alloc(-label.length & 3)]);
}

const KEYS = ['http.route', 'user', 'vendor.root_span_id'];
const reader = new LabelReader(() => ({ names: KEYS, id: 1 }));

function labelsOf(...labels: Buffer[]): SampleLabels {
  const texts = Buffer.concat(labels);
  const sample = Buffer.alloc(SAMPLE.bytes);
  sample.writeUInt32LE(texts.length, SAMPLE.labelBytes);
  const record = Buffer.concat([Buffer.alloc(8), sample, texts]);
  return reader.labelsOf(record, 8, record.length - 8);
}

const read = (...labels: Buffer[]): Record<string, string> =>
  Object.fromEntries(readAttributes(labelsOf(...labels).attributes));

const P = 'process.context.label.';

test('a sample without labels has no attributes', () => {
  expect(read()).toEqual({});
});

test('labels are attributes under a prefix, the ID of the goroutine has a name of its own', () => {
  const id = Buffer.alloc(8);
  id.writeBigUInt64LE(2n ** 40n + 7n);
  expect(
    read(
      encode({ kind: LabelKind.GOROUTINE, key: '', value: id }),
      encode({ key: 'route', value: '/users/:id' }),
      encode({ key: 'é', value: 'x' }),
    ),
  ).toEqual({ 'go.goroutine.id': '1099511627783', [`${P}route`]: '/users/:id', [`${P}é`]: 'x' });
});

test('a value that was cut says so, never in the middle of a character', () => {
  const value = Buffer.from('aé').subarray(0, 2);
  expect(read(encode({ key: 'k', value, isCut: true }))).toEqual({ [`${P}k`]: 'a…' });
});

test('what contradicts itself or is of another kind is left out', () => {
  const broken = encode({ key: 'k', value: 'v' });
  broken.writeUInt16LE(60_000, LABEL.valueBytes);
  expect(read(encode({ kind: 99, key: 'a', value: 'b' }), encode({ key: 'c', value: 'd' }), broken)).toEqual({
    [`${P}c`]: 'd',
  });
  const record = Buffer.alloc(SAMPLE.bytes);
  record.writeUInt32LE(4096, SAMPLE.labelBytes);
  expect(reader.labelsOf(record, 0, record.length)).toBe(NO_LABELS);
});

describe('the context of a thread', () => {
  const context = (trace: string, span: string, attributes: [key: number, value: string][]): Buffer => {
    const head = Buffer.alloc(RECORD.bytes);
    head.write(trace, RECORD.traceId, 'hex');
    head.write(span, RECORD.spanId, 'hex');
    const parts = attributes.map(([key, value]) =>
      Buffer.concat([Buffer.from([key, Buffer.byteLength(value)]), Buffer.from(value)]),
    );
    return Buffer.concat([head, ...parts]);
  };
  const [trace, span] = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'];
  const encoded = (value: Buffer): Buffer => encode({ kind: LabelKind.THREAD_CONTEXT, key: '', value });

  test('is its span, and attributes by the numbers of their keys', () => {
    const value = context(trace, span, [
      [0, '/users/:id'],
      [1, 'first'],
      [9, 'of no key'],
      [2, 'of one request'],
      [1, 'é'],
    ]);
    const labels = labelsOf(encode({ key: 'k', value: 'v' }), encoded(value));
    expect(labels.span).toBe(trace + span);
    expect(Object.fromEntries(readAttributes(labels.attributes))).toEqual({
      ...{ [`${P}k`]: 'v', [`${P}http.route`]: '/users/:id', [`${P}user`]: 'é' },
    });
  });

  test('has no span without a trace, and keeps its attributes', () => {
    const labels = labelsOf(encoded(context('00'.repeat(16), span, [[0, '/']])));
    expect(labels.span).toBe('');
    expect(readAttributes(labels.attributes).get(`${P}http.route`)).toBe('/');
  });

  test('ends where its attributes are cut', () => {
    const value = context(trace, span, [
      [0, '/'],
      [1, 'Anna'],
    ]);
    const labels = labelsOf(encoded(value.subarray(0, -1)));
    expect([...readAttributes(labels.attributes).keys()]).toEqual([`${P}http.route`]);
  });
});
