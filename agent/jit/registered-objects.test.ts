import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Pid, toPid } from '../../common/base/brand.ts';
import { bufferSource } from '../../common/base/byte-source.ts';
import { parseElf } from '../../common/elf/elf.ts';
import type { ForeignFiles } from '../processes/foreign-files.ts';
import { buildFrames } from '../stack-deltas/build-frames.ts';
import { textOf } from '../stack-deltas/fixture.ts';
import { extractStackDeltas } from '../stack-deltas/stack-deltas.ts';
import { frameImage } from './frame-image.ts';
import { describedCodeOf, findJitDescriptor } from './registered-objects.ts';

const CODE = { start: 0x7f00_0000_0000, end: 0x7f00_4000_0000 };

/** As QEMU registers it: all of its code in one section that is not in the file, and .debug_frame at no address. */
function linkedObject(type = 2): Buffer {
  const frames = buildFrames(0, [{}, { start: CODE.start, size: CODE.end - CODE.start }], 'debug');
  const names = '\0.text\0.debug_frame\0.shstrtab\0';
  const namesAt = 64 + 4 * 64;
  const framesAt = namesAt + names.length;
  const bytes = Buffer.alloc(framesAt + frames.length);
  bytes.write('\x7fELF\x02\x01\x01', 'latin1');
  for (const [at, value] of [type, 62, 1].entries()) bytes.writeUInt16LE(value, 16 + 2 * at);
  bytes.writeBigUInt64LE(64n, 40);
  for (const [at, value] of [64, 56, 0, 64, 4, 3].entries()) bytes.writeUInt16LE(value, 52 + 2 * at);
  const section = (index: number, name: string, kind: number, ...words: number[]): void => {
    bytes.writeUInt32LE(names.indexOf(name), 64 + index * 64);
    bytes.writeUInt32LE(kind, 64 + index * 64 + 4);
    for (const [i, word] of words.entries())
      bytes.writeBigUInt64LE(BigInt(word), 64 + index * 64 + 8 + 8 * i);
  };
  section(1, '.text', 8, 6, CODE.start, 0, CODE.end - CODE.start);
  section(2, '.debug_frame', 1, 0, 0, framesAt, frames.length);
  section(3, '.shstrtab', 3, 0, 0, namesAt, names.length);
  bytes.write(names, namesAt, 'latin1');
  bytes.set(frames, framesAt);
  return bytes;
}

const describedIn = (bytes: Buffer) => describedCodeOf(parseElf(bufferSource(bytes)));

describe('the list of what is registered', () => {
  // as programs on arm64 have them
  const [DATA, HEAP] = [0xaaaa_0000_0000, 0xffff_0000_0000];

  it('is found wherever user space may have it', async () => {
    const [data, heap] = [Buffer.alloc(4096), Buffer.alloc(4096)];
    data.writeUInt32LE(1, 0x100);
    data.writeBigUInt64LE(BigInt(HEAP), 0x110);
    heap.writeBigUInt64LE(BigInt(HEAP + 0x100), 16);
    linkedObject().copy(heap, 0x100);
    const maps = `${DATA.toString(16)}-${(DATA + 4096).toString(16)} rw-p 00000000 08:01 7 /usr/bin/a\n`;
    const files = {
      newSession: () => 1,
      readProcFile: async () => Buffer.from(maps),
      readMemory: async (_pid: Pid, at: number, length: number) =>
        at >= HEAP
          ? heap.subarray(at - HEAP, at - HEAP + length)
          : data.subarray(at - DATA, at - DATA + length),
    } as unknown as ForeignFiles;
    expect(await findJitDescriptor(files, toPid(7))).toBe(DATA + 0x100);
  });
});

describe('an object that describes its code for debuggers', () => {
  it('makes a table of any part of the code', () => {
    const [code] = describedIn(linkedObject());
    expect(code).toMatchObject(CODE);
    const part = { start: CODE.start + 0x1000_0000, end: CODE.start + 0x1010_0000, bytes: Buffer.alloc(0) };
    const image = frameImage(62, part, code!.frames);
    const rows = textOf(extractStackDeltas(parseElf(bufferSource(image.bytes))));
    expect(rows).toEqual([
      `0x${CODE.start.toString(16)} rsp+8 same cfa-8`,
      `0x${CODE.end.toString(16)} invalid`,
    ]);
  });

  it('is asked for nothing where it is not linked', () => {
    expect(describedIn(linkedObject(1))).toEqual([]);
  });

  it('of any bytes describes none, or a range', () => {
    const object = linkedObject();
    fc.assert(
      fc.property(fc.nat(object.length - 9), fc.bigInt(0n, 2n ** 64n - 1n), (at, word) => {
        const copy = Buffer.from(object);
        copy.writeBigUInt64LE(word, at);
        try {
          for (const { start, end } of describedIn(copy)) expect(end).toBeGreaterThanOrEqual(start);
        } catch (error) {
          expect(['ElfError', 'OutOfBounds']).toContain((error as Error).name);
        }
      }),
      { numRuns: 300 },
    );
  });
});
