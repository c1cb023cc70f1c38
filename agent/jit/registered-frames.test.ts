import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bufferSource } from '../../common/base/byte-source.ts';
import { parseElf } from '../../common/elf/elf.ts';
import { buildFrames } from '../stack-deltas/build-frames.ts';
import { textOf } from '../stack-deltas/fixture.ts';
import { extractStackDeltas } from '../stack-deltas/stack-deltas.ts';
import { frameImage } from './frame-image.ts';
import { findFrameLists, joinLists, type MemoryPart } from './registered-frames.ts';

const START = 0x7f00_0000_0000;
const CODE = { start: START - 0x10000, end: START - 0xf000 };

/** A list of one function at each place in memory, with code or data around it. */
function memoryWith(lists: Record<number, number>, size = 4096): MemoryPart {
  const bytes = Buffer.alloc(size, 0xa5);
  for (const [at, code] of Object.entries(lists)) {
    const frames = buildFrames(START + Number(at), [{}, { start: code, size: 16 }, 'zero']);
    Buffer.from(frames).copy(bytes, Number(at));
  }
  return { start: START, bytes };
}

function rowsOf(part: MemoryPart, bytes: Uint8Array = Buffer.alloc(0)): string[] {
  const image = frameImage(62, { ...CODE, bytes }, joinLists(findFrameLists(part)));
  return textOf(extractStackDeltas(parseElf(bufferSource(image.bytes))));
}

describe('unwind information in memory', () => {
  it('is found among other things, and makes one table', () => {
    const part = memoryWith({ 64: CODE.start, 1000: CODE.start + 0x40 });
    const row = (at: number): string[] => [
      `0x${(CODE.start + at).toString(16)} rsp+8 same cfa-8`,
      `0x${(CODE.start + at + 16).toString(16)} invalid`,
    ];
    expect(findFrameLists(part).map(({ start }) => start - START)).toEqual([64, 1000]);
    expect(rowsOf(part)).toEqual([...row(0), ...row(0x40)]);
  });

  it('is made of the code where nothing describes it', () => {
    // push %rbx; sub $32, %rsp; nop, 32 times; add $32, %rsp; pop %rbx; ret
    const code = Buffer.alloc(0x1000, 0xcc);
    Buffer.from(`534883ec20${'90'.repeat(32)}4883c4205bc3`, 'hex').copy(code, 0x100);
    // a function that is described, and ends where that one begins
    Buffer.from(`${'90'.repeat(15)}c3`, 'hex').copy(code, 0xf0);
    const rows = rowsOf(memoryWith({ 64: CODE.start + 0xf0 }), code);
    expect(rows).toContain(`0x${(CODE.start + 0x105).toString(16)} rsp+48 same cfa-8`);
  });

  it('is not made of what only looks like it', () => {
    const bytes = Buffer.alloc(4096);
    // a CIE whose length is none, and one that is cut short
    Buffer.from([7, 0, 0, 0, 0, 0, 0, 0, 1, 0x7a, 0x52, 0]).copy(bytes, 100);
    Buffer.from([60, 0, 0, 0, 0, 0, 0, 0, 1, 0x7a, 0x52, 0]).copy(bytes, 4080);
    expect(findFrameLists({ start: START, bytes }).every((list) => list.bytes.length === 0)).toBe(true);
    expect(findFrameLists({ start: START, bytes: Buffer.alloc(0) })).toEqual([]);
  });

  it('is searched for once, however many beginnings there are', () => {
    const bytes = Buffer.alloc(1 << 20, 0xff);
    for (let at = 0; at < bytes.length; at += 64) bytes.set([20, 0, 0, 0, 0, 0, 0, 0, 1, 0x7a, 0x52, 0], at);
    let searches = 0;
    bytes.indexOf = ((...args: Parameters<Buffer['indexOf']>) => {
      searches++;
      return Buffer.prototype.indexOf.apply(bytes, args);
    }) as Buffer['indexOf'];
    expect(findFrameLists({ start: START, bytes })).toHaveLength(4096);
    // those that are nowhere are not looked for again behind each
    expect(searches).toBeLessThan(2 * 4096);
  });

  it('of any bytes ends, with lists that lie in them, in order', () => {
    const cie = Buffer.from([20, 0, 0, 0, 0, 0, 0, 0, 1, 0x7a, 0x52, 0]);
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.constant(cie), fc.uint8Array({ maxLength: 40 })), { maxLength: 40 }),
        (parts) => {
          const bytes = Buffer.concat(parts);
          let end = START;
          for (const list of findFrameLists({ start: START, bytes })) {
            expect(list.start).toBeGreaterThanOrEqual(end);
            end = list.start + list.bytes.length;
            expect(end - START).toBeLessThanOrEqual(bytes.length);
          }
        },
      ),
    );
  });
});
