import { describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { ProtoWriter } from '../../common/protobuf/proto-writer.ts';
import { processContext } from '../../test/support/process-context.ts';
import type { ForeignFiles } from './foreign-files.ts';
import { BadContext, findContext, readContext } from './process-context.ts';

const PID = toPid(7);
const ADDRESS = 0x7f00_0000_1000;
const PAYLOAD = 0x5500_0000_2000;

function header({
  signature = 'OTEL_CTX',
  version = 2,
  size = 0,
  published = 5n,
  payload = PAYLOAD,
} = {}): Buffer {
  const bytes = Buffer.alloc(32);
  bytes.write(signature, 'latin1');
  bytes.writeUInt32LE(version, 8);
  bytes.writeUInt32LE(size, 12);
  bytes.writeBigUInt64LE(published, 16);
  bytes.writeBigUInt64LE(BigInt(payload), 24);
  return bytes;
}

function payloadOf(...values: [key: string, write: (any: ProtoWriter) => void][]): Buffer {
  const [context, resource] = [new ProtoWriter(256), new ProtoWriter(256)];
  for (const [key, write] of values) {
    const [pair, any] = [new ProtoWriter(64), new ProtoWriter(64)];
    write(any);
    pair.string(1, key);
    pair.message(2, any);
    resource.message(1, pair);
  }
  context.message(1, resource);
  return Buffer.from(context.finish());
}

const text = (value: string) => (any: ProtoWriter) => any.string(1, value);

/** Memory that answers with each of the headers in turn, then with the last one. */
function memory(headers: Buffer[], payload: Buffer | number): ForeignFiles {
  let reads = 0;
  return {
    newSession: () => 1,
    readMemory: async (_pid: number, address: number) =>
      address === ADDRESS ? headers[Math.min(reads++, headers.length - 1)]! : payload,
  } as unknown as ForeignFiles;
}

const maps = (...lines: string[]): ForeignFiles =>
  ({ readProcFile: async () => Buffer.from(`${lines.join('\n')}\n`) }) as unknown as ForeignFiles;

describe('a context is found', () => {
  it.each([
    ['of memfd_create()', '7f0000001000-7f0000002000 rw-p 00000000 00:01 1029 /memfd:OTEL_CTX (deleted)'],
    ['private', '7f0000001000-7f0000002000 r--p 00000000 00:00 0      [anon:OTEL_CTX]'],
    ['shared', '7f0000001000-7f0000002000 rw-s 00000000 00:01 17     [anon_shmem:OTEL_CTX]'],
  ])('%s', async (_, line) => {
    const before = '5500000000-5500001000 r-xp 00000000 08:01 99 /usr/bin/x';
    expect(await findContext(PID, maps(before, line))).toBe(ADDRESS);
  });

  it.each([
    '7f0000001000-7f0000002000 r-xp 00000000 00:00 0 [anon:OTEL_CTX]',
    '7f0000001000-7f0000002000 ---p 00000000 00:00 0 [anon:OTEL_CTX]',
    '7f0000001000-7f0000002000 rw-p 00000000 08:01 9 /tmp/OTEL_CTX',
    '7f0000001000-7f0000002000 rw-p 00000000 00:00 0 [anon:OTEL_CTX2]',
  ])('but not in %s', async (line) => {
    expect(await findContext(PID, maps(line))).toBeUndefined();
  });
});

describe('a context is read', () => {
  it('with texts, numbers and truth values', async () => {
    const payload = payloadOf(
      ['service.name', text('shop')],
      ['ok', (any) => any.uint(2, 1)],
      ['n', (any) => any.uint(3, 42)],
      ['list', (any) => any.message(5, new ProtoWriter(8))],
    );
    const context = await readContext(PID, ADDRESS, memory([header({ size: payload.length })], payload));
    expect(context).toEqual({
      address: ADDRESS,
      publishedNs: 5n,
      resource: new Map([
        ['service.name', 'shop'],
        ['ok', 'true'],
        ['n', '42'],
      ]),
      attributes: new Map(),
    });
  });

  it('with attributes of its own, of which some are lists', async () => {
    const attributes = { version: 'v1', keys: ['a', '', 'b'], offset: 24 };
    const payload = Buffer.from(processContext({ 'service.name': 'shop' }, attributes), 'hex');
    const context = await readContext(PID, ADDRESS, memory([header({ size: payload.length })], payload));
    expect(context?.resource).toEqual(new Map([['service.name', 'shop']]));
    expect(context?.attributes).toEqual(new Map(Object.entries({ ...attributes, offset: '24' })));
  });

  it('again where it changed meanwhile', async () => {
    const payload = payloadOf(['a', text('b')]);
    const size = payload.length;
    const headers = [header({ size }), header({ size, published: 0n }), header({ size, published: 9n })];
    expect((await readContext(PID, ADDRESS, memory(headers, payload)))?.publishedNs).toBe(9n);
  });

  it.each([
    ['is no later', [header({ size: 4, published: 5n })], Buffer.alloc(4)],
    ['changes for ever', [header({ size: 4, published: 0n })], Buffer.alloc(4)],
    ['is gone', [Buffer.alloc(0)], Buffer.alloc(4)],
    ['lies where nothing can be read', [header({ size: 4, published: 6n })], -14],
  ])('not where it %s', async (_, headers, payload) => {
    expect(await readContext(PID, ADDRESS, memory(headers, payload), 5n)).toBeUndefined();
  });

  it.each([
    ['signature', { signature: 'OTEL_CTY' }],
    ['version', { version: 1 }],
    ['place than memory has', { payload: 2 ** 62 }],
    ['size of 0', { size: 0 }],
    ['size beyond 64 KiB', { size: 65_537 }],
  ])('not with another %s', async (_, wrong) => {
    const files = memory([header({ size: 4, ...wrong })], Buffer.alloc(4));
    await expect(readContext(PID, ADDRESS, files)).rejects.toThrow(BadContext);
  });

  it.each([
    ['0aff', 'the end is missing'],
    ['0a0a0a', 'a length goes beyond it'],
    ['0a040a050a01', 'a length goes beyond what holds it'],
    ['0f', 'the wire type is none'],
    ['ffffffffffffffffffffff', 'a number never ends'],
  ])('not of %s: %s', async (hex) => {
    const payload = Buffer.from(hex, 'hex');
    const files = memory([header({ size: payload.length })], payload);
    await expect(readContext(PID, ADDRESS, files)).rejects.toThrow(BadContext);
  });
});
