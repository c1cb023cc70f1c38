import { expect, test } from 'vitest';
import { readAttributes } from '../../common/profile/model/attributes.ts';
import { LABEL, LabelKind, SAMPLE } from '../records/records.gen.ts';
import { attributesOfLabels } from './labels.ts';

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

function read(...labels: Buffer[]): Record<string, string> {
  const texts = Buffer.concat(labels);
  const sample = Buffer.alloc(SAMPLE.bytes);
  sample.writeUInt32LE(texts.length, SAMPLE.labelBytes);
  const record = Buffer.concat([Buffer.alloc(8), sample, texts]);
  return Object.fromEntries(readAttributes(attributesOfLabels(record, 8, record.length - 8)));
}

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
  expect(attributesOfLabels(record, 0, record.length)).toBe('');
});
