/** Code found from a program counter, in memory that is laid out as V8's. */
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { beforeAll, describe, expect, it } from 'vitest';
import { bufferSource } from '../../../common/base/byte-source.ts';
import { parseElf } from '../../../common/elf/elf.ts';
import { findCode } from './code.ts';
import { Heap } from './heap.ts';
import type { V8Layout } from './layout.ts';
import { v8 } from './plugin.ts';

const BASE = 0x10_0000;
const CODE_SIZE = 512;

/** Memory from BASE on. */
class Memory {
  readonly #bytes = Buffer.alloc(0x10_000);

  word(address: number, value: number): void {
    this.#bytes.writeBigUInt64LE(BigInt(value), address - BASE);
  }

  half(address: number, value: number): void {
    this.#bytes.writeUInt32LE(value, address - BASE);
  }

  read(address: number, length: number): Uint8Array | undefined {
    const at = address - BASE;
    return at < 0 || at >= this.#bytes.length ? undefined : this.#bytes.subarray(at, at + length);
  }
}

const tagged = (address: number): number => address + 1;

/** Map, code and its instructions, each with a map of its own as in another isolate; the first instruction. */
function putCode(memory: Memory, layout: V8Layout, at: number): number {
  const [streamMap, codeMap, code] = [at, at + 0x40, at + 0x80];
  const start = at + 0x200;
  memory.half(streamMap + 12, layout.types.instructionStream!);
  memory.half(codeMap + 12, layout.types.code);
  memory.word(code, tagged(codeMap));
  memory.word(code + layout.code.start, start);
  memory.half(code + layout.code.size, CODE_SIZE);
  const stream = start - layout.streamHeader;
  memory.word(stream, tagged(streamMap));
  memory.word(stream + 8, tagged(code));
  return start;
}

describe('code of a program counter', () => {
  let layout: V8Layout;

  beforeAll(() => {
    layout = v8.detect(parseElf(bufferSource(readFileSync(process.execPath))))!.facts as V8Layout;
  });

  it('is found in every isolate: each worker thread of Node 16 and 18 has maps of its own', () => {
    const memory = new Memory();
    const starts = [0x1000, 0x4000, 0x8000].map((at) => putCode(memory, layout, BASE + at));
    const heap = new Heap(memory, layout);
    for (const start of [...starts, ...starts]) expect(findCode(heap, start + 100)?.start).toBe(start);
  });

  it('is found again without searching for where it begins, and not where other code stands now', () => {
    const memory = new Memory();
    const start = putCode(memory, layout, BASE + 0x1000);
    const constant = BASE + 0x9000;
    memory.word(start + 64 - layout.streamHeader, tagged(constant));
    const reads: number[] = [];
    const turn = () => ({
      read: (address: number, length: number) => {
        reads.push(address);
        return memory.read(address, length);
      },
    });
    const heap = new Heap(turn(), layout);
    expect(findCode(heap, start + 100)?.start).toBe(start);
    expect(reads).toContain(constant);
    reads.length = 0;
    heap.memory = turn();
    expect(findCode(heap, start + 104)?.start).toBe(start);
    expect(reads).not.toContain(constant);

    const later = putCode(memory, layout, BASE + 0x1040);
    memory.word(start - layout.streamHeader, 0);
    heap.memory = turn();
    expect(findCode(heap, start + 104)?.start).toBe(later);
  });

  it('is none behind its end', () => {
    const memory = new Memory();
    const start = putCode(memory, layout, BASE + 0x1000);
    expect(findCode(new Heap(memory, layout), start + CODE_SIZE)).toBeUndefined();
  });
});
