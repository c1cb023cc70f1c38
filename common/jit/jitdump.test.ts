import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CHUNK_BYTES, type ReadAt } from './jit-code.ts';
import { JitDump } from './jitdump.ts';

const record = (id: number, body: Buffer): Buffer => {
  const prefix = Buffer.alloc(16);
  prefix.writeUInt32LE(id, 0);
  prefix.writeUInt32LE(16 + body.length, 4);
  return Buffer.concat([prefix, body]);
};
const u64s = (...values: number[]): Buffer => {
  const bytes = Buffer.alloc(values.length * 8);
  for (const [i, value] of values.entries()) bytes.writeBigUInt64LE(BigInt(value), i * 8);
  return bytes;
};
const header = (): Buffer => {
  const bytes = Buffer.alloc(40);
  bytes.writeUInt32LE(0x4a695444, 0);
  bytes.writeUInt32LE(1, 4);
  bytes.writeUInt32LE(40, 8);
  return bytes;
};
/** PID and TID are the first word. */
const load = (address: number, size: number, index: number, name: string): Buffer =>
  record(0, Buffer.concat([u64s(0, 0, address, size, index), Buffer.from(`${name}\0`), Buffer.alloc(size)]));
const move = (from: number, to: number, size: number, index: number): Buffer =>
  record(1, u64s(0, 0, from, to, size, index));
const debugInfo = (address: number, lines: [address: number, line: number, file: string][]): Buffer => {
  const entries = lines.map(([at, line, file]) => {
    const fixed = Buffer.alloc(16);
    fixed.writeBigUInt64LE(BigInt(at), 0);
    fixed.writeInt32LE(line, 8);
    return Buffer.concat([fixed, Buffer.from(`${file}\0`, 'latin1')]);
  });
  return record(2, Buffer.concat([u64s(address, lines.length), ...entries]));
};
const close = (): Buffer => record(3, Buffer.alloc(0));

function readAll(dump: JitDump, file: Uint8Array, from = 0): number {
  let offset = from;
  while (offset >= 0 && offset < file.length) {
    const next = dump.push(file.subarray(offset, offset + CHUNK_BYTES), offset);
    if (next === offset) break;
    offset = next;
  }
  return offset;
}

async function nameAt(dump: JitDump, file: Uint8Array, address: number): Promise<string> {
  const place = dump.find(address);
  if (place === undefined) return 'undefined';
  const read: ReadAt = async (offset, length) => file.subarray(offset, offset + length);
  const name = await dump.describe(place, address, read);
  if (typeof name !== 'object') return name;
  return name.line === 0 ? name.function : `${name.function} ${name.file}:${name.line}`;
}

async function namesIn(file: Buffer, ...addresses: number[]): Promise<string[]> {
  const dump = new JitDump(1000);
  readAll(dump, file);
  return Promise.all(addresses.map((address) => nameAt(dump, file, address)));
}

describe('a jitdump', () => {
  it('looks for what was moved a limited number of times', () => {
    const dump = new JitDump(1000);
    const moves = Array.from({ length: 5000 }, () => move(0x1000, 0x2000, 8, 77));
    readAll(dump, Buffer.concat([header(), load(0x1000, 8, 1, 'f'), ...moves]));
    expect(dump.stats).toEqual({ functions: 1, malformed: 4096, dropped: 904 });
  });

  it('names the code of its loads, also of records larger than what is read at a time', async () => {
    const file = Buffer.concat([
      header(),
      load(0x1000, 3 * CHUNK_BYTES, 1, 'big'),
      load(0x90000, 8, 2, 'small'),
    ]);
    expect(await namesIn(file, 0xfff, 0x1000, 0x30fff, 0x31000, 0x90007)).toEqual([
      'undefined',
      'big',
      'big',
      'undefined',
      'small',
    ]);
  });

  it('has the line of the last entry at or before an address, of the record before the load', async () => {
    const lines = debugInfo(0x1000, [
      [0x1000, 10, '/src/a.js'],
      [0x1008, 12, '\xff'],
      [0x1010, 3, '/src/b.js'],
      [0x1018, 13, '\xff'],
    ]);
    const file = Buffer.concat([header(), lines, load(0x1000, 0x20, 1, 'f'), load(0x2000, 0x20, 2, 'g')]);
    expect(await namesIn(file, 0x1000, 0x1007, 0x1008, 0x1011, 0x101f, 0x2000)).toEqual([
      'f /src/a.js:10',
      'f /src/a.js:10',
      'f /src/a.js:12',
      'f /src/b.js:3',
      'f /src/b.js:13',
      'g',
    ]);
  });

  it('follows code that moves, more than once, lines and all', async () => {
    const lines = debugInfo(0x1000, [
      [0x1000, 10, 'a'],
      [0x1008, 20, 'a'],
    ]);
    const moves = [move(0x1000, 0x5000, 0x10, 7), move(0x5000, 0x3000, 0x10, 7)];
    const file = Buffer.concat([
      header(),
      lines,
      load(0x1000, 0x10, 7, 'f'),
      ...moves,
      load(0x1008, 8, 8, 'g'),
    ]);
    expect(await namesIn(file, 0x1000, 0x1008, 0x5000, 0x3000, 0x300f)).toEqual([
      'undefined',
      'g',
      'undefined',
      'f a:10',
      'f a:20',
    ]);
  });

  it('stops at its close record and at damage', () => {
    const after = load(0x1000, 8, 1, 'after');
    const closed = new JitDump(10);
    expect(readAll(closed, Buffer.concat([header(), close(), after]))).toBe(-1);
    expect(closed.stats).toEqual({ functions: 0, malformed: 0, dropped: 0 });
    for (const damaged of [Buffer.alloc(40), Buffer.concat([header(), Buffer.alloc(16), after])]) {
      const dump = new JitDump(10);
      expect(readAll(dump, damaged)).toBe(-1);
      expect(dump.stats).toEqual({ functions: 0, malformed: 1, dropped: 0 });
    }
  });

  it('reads the same while it grows, byte by byte', async () => {
    const parts = [
      debugInfo(0x1000, [[0x1000, 1, 'a']]),
      load(0x1000, 8, 1, 'f'),
      move(0x1000, 0x2000, 8, 1),
    ];
    const file = Buffer.concat([header(), ...parts, load(0x1000, 8, 2, 'g')]);
    const dump = new JitDump(10);
    let offset = 0;
    for (let end = 1; end <= file.length; end++) {
      offset = dump.push(file.subarray(Math.min(offset, end), end), offset);
    }
    expect(await nameAt(dump, file, 0x1000)).toBe('g');
    expect(await nameAt(dump, file, 0x2000)).toBe('f a:1');
    expect(dump.stats).toEqual({ functions: 2, malformed: 0, dropped: 0 });
  });

  it('keeps no more than its bound', () => {
    const loads = Array.from({ length: 20 }, (_, i) => load(0x1000 * i + 1, 8, i, `f${i}`));
    const dump = new JitDump(5);
    readAll(dump, Buffer.concat([header(), ...loads]));
    expect(dump.stats).toEqual({ functions: 5, malformed: 0, dropped: 15 });
  });

  it('survives damage anywhere', async () => {
    const parts = [
      debugInfo(0x1000, [[0x1000, 1, 'a']]),
      load(0x1000, 8, 1, 'f'),
      move(0x1000, 0x2000, 8, 1),
    ];
    const sound = Buffer.concat([header(), ...parts, load(0x3000, 8, 2, 'g')]);
    const change = fc.tuple(fc.nat(sound.length - 1), fc.nat(255));
    const property = fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 6 }), async (changes) => {
      const file = Buffer.from(sound);
      for (const [at, byte] of changes) file[at] = byte;
      for (const address of [0x1000, 0x2000, 0x3000]) {
        const dump = new JitDump(100);
        readAll(dump, file);
        await nameAt(dump, file, address);
      }
    });
    await fc.assert(property, { numRuns: 500 });
  });
});
