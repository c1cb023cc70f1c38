import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CHUNK_BYTES, type JitCode, type ReadAt } from './jit-code.ts';
import { PerfMap } from './perf-map.ts';

/** What the agent does: chunks from where it stopped, until nothing more comes. */
function readAll(code: JitCode, file: Uint8Array, from = 0): number {
  let offset = from;
  while (offset >= 0 && offset < file.length) {
    const next = code.push(file.subarray(offset, offset + CHUNK_BYTES), offset);
    if (next === offset) break;
    offset = next;
  }
  return offset;
}

async function nameAt(map: JitCode, file: Uint8Array, address: number): Promise<string> {
  const place = map.find(address);
  if (place === undefined) return 'undefined';
  const read: ReadAt = async (offset, length) => file.subarray(offset, offset + length);
  const name = await map.describe(place, address, read);
  return typeof name === 'object' ? name.function : name;
}

const names = (map: JitCode, file: Uint8Array, addresses: number[]): Promise<string[]> =>
  Promise.all(addresses.map((address) => nameAt(map, file, address)));

describe('a perf map', () => {
  it('names the addresses inside each size, and no other', async () => {
    const text = '7f0000001000 20 LazyCompile:~add /a b.js:1\n0x7f0000001040 0x10 Interpreter\n';
    const file = Buffer.from(text);
    const map = new PerfMap(100);
    expect(readAll(map, file)).toBe(file.length);
    const at = [0x7f0000000fff, 0x7f0000001000, 0x7f000000101f, 0x7f0000001020, 0x7f0000001048];
    const add = 'LazyCompile:~add /a b.js:1';
    expect(await names(map, file, at)).toEqual(['undefined', add, add, 'undefined', 'Interpreter']);
    expect(map.stats).toEqual({ functions: 2, malformed: 0, dropped: 0 });
  });

  it('waits for the end of a line that is being written', async () => {
    const whole = Buffer.from('1000 10 first\n2000 10 second\n');
    const map = new PerfMap(100);
    const offset = readAll(map, whole.subarray(0, 22));
    expect(offset).toBe(14);
    expect(await names(map, whole, [0x1000, 0x2000])).toEqual(['first', 'undefined']);
    readAll(map, whole, offset);
    expect(await names(map, whole, [0x1000, 0x2000])).toEqual(['first', 'second']);
  });

  it('is read without looking at a byte twice, whatever its lines', () => {
    const map = new PerfMap(100);
    // With a search for the next space from each line on this takes ten minutes.
    expect(readAll(map, new Uint8Array(8 << 20).fill(10))).toBe(8 << 20);
    expect(map.stats.malformed).toBe(8 << 20);
  });

  it('counts lines that are none and goes on', async () => {
    const lines = [
      '',
      'x',
      '10 20',
      '10 20 ',
      'zz 10 a',
      '10 0 a',
      '-1 10 a',
      'fffffffffffffffff0 10 a',
      '30 5 ok',
    ];
    const file = Buffer.from(`${lines.join('\n')}\n`);
    const map = new PerfMap(100);
    readAll(map, file);
    expect(map.stats).toEqual({ functions: 1, malformed: 8, dropped: 0 });
    expect(await names(map, file, [0x30])).toEqual(['ok']);
  });

  it('cuts names, and lines that are longer than it reads at a time', async () => {
    const file = Buffer.from(`1000 10 ${'a'.repeat(3 * CHUNK_BYTES)}\n2000 10 b\tc\x1b\n`);
    const map = new PerfMap(100);
    readAll(map, file);
    expect(await names(map, file, [0x1000, 0x2000])).toEqual(['a'.repeat(512), 'b c']);
    expect(map.stats.malformed).toBe(0);
  });

  it('sees that a file was written anew', async () => {
    const map = new PerfMap(100);
    readAll(map, Buffer.from('1000 10 before\n'));
    expect(await names(map, Buffer.from('5000 10 after!\n'), [0x1000])).toEqual(['replaced']);
    expect(await names(map, Buffer.alloc(0), [0x1000])).toEqual(['replaced']);
  });

  it('reads the same in any pieces', async () => {
    const line = fc.tuple(fc.nat(0xffff), fc.nat(64), fc.stringMatching(/^[ -~]{0,20}$/));
    const property = fc.asyncProperty(fc.array(line), fc.array(fc.nat(80)), async (lines, cuts) => {
      const text = lines.map(([start, size, name]) => `${start.toString(16)} ${size.toString(16)} ${name}\n`);
      const file = Buffer.from(text.join(''));
      const [whole, pieces] = [new PerfMap(1000), new PerfMap(1000)];
      readAll(whole, file);
      let offset = 0;
      let end = 0;
      for (const cut of cuts) {
        end = Math.min(file.length, end + cut);
        offset = readAll(pieces, file.subarray(0, end), offset);
      }
      readAll(pieces, file, offset);
      expect(pieces.stats).toEqual(whole.stats);
      const at = lines.map(([start]) => start);
      expect(await names(pieces, file, at)).toEqual(await names(whole, file, at));
    });
    await fc.assert(property, { numRuns: 200 });
  });

  it('survives any bytes', async () => {
    const bytes = fc.uint8Array({ maxLength: 300 });
    const property = fc.asyncProperty(bytes, async (file) => {
      const map = new PerfMap(100);
      readAll(map, file);
      await names(map, file, [0, 1, 0x10, 0xff]);
    });
    await fc.assert(property, { numRuns: 300 });
  });
});
