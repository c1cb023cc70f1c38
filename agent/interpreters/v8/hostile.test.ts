/** Memory that says anything: each frame has a bounded cost, and a name or a reason. */
import { readFileSync } from 'node:fs';
import process from 'node:process';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { bufferSource } from '../../../common/base/byte-source.ts';
import { parseElf } from '../../../common/elf/elf.ts';
import { V8Tier } from '../../records/records.gen.ts';
import { NameCache, type ProcessMemory } from '../contract.ts';
import type { V8Layout } from './layout.ts';
import { v8 } from './plugin.ts';

const TIERS = [V8Tier.INTERPRETED, V8Tier.JIT, V8Tier.FUNCTION, V8Tier.STUB];
const FAILURES = ['unreadable', 'replaced', 'malformed'];
const MAX_READS = 200_000;
const MAX_BYTES = 256 << 20;
const MAX_CHARS = 1100;
const BASE = 0x10_0000;

/** Repeats a pattern over all memory, and counts what is read of it. */
class Pattern implements ProcessMemory {
  reads = 0;
  bytes = 0;
  readonly #pattern: Buffer;

  constructor(pattern: Buffer) {
    this.#pattern = pattern;
  }

  read(address: number, length: number): Uint8Array {
    this.reads++;
    this.bytes += length;
    const bytes = Buffer.alloc(length);
    for (let at = 0; at < length; at += 1 << 16) {
      const from = (address + at) % this.#pattern.length;
      const part = Buffer.concat([this.#pattern.subarray(from), this.#pattern]);
      part.copy(bytes, at, 0, Math.min(part.length, length - at));
      if (part.length < 1 << 16) at += part.length - (1 << 16);
    }
    return bytes;
  }
}

/** Words of which most refer into the pattern itself, or are types and lengths that V8 has. */
const words = (layout: V8Layout) => {
  const { types } = layout;
  const known = [
    types.shared,
    types.scopeInfo,
    types.script,
    types.bytecodeArray,
    types.code,
    0,
    1,
    2,
    3,
    5,
    8,
  ];
  const pointer = fc.nat({ max: 511 }).map((index) => BigInt(BASE + index * 8 + 1));
  const type = fc.constantFrom(...known, ...types.byteArrays, ...types.fixedArrays);
  const typed = fc.tuple(type, fc.nat()).map(([t, length]) => (BigInt(length) << 32n) | BigInt(t << 16));
  const map = type.map((t) => BigInt(t) << 32n);
  return fc.array(fc.oneof(pointer, pointer, typed, map, fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })), {
    minLength: 1,
    maxLength: 64,
  });
};

describe('names of V8 out of memory that lies', () => {
  let layout: V8Layout;

  beforeAll(() => {
    const found = v8.detect(parseElf(bufferSource(readFileSync(process.execPath))));
    layout = found!.facts as V8Layout;
  });

  it('cost a bounded number of reads', () => {
    const run = fc.property(
      words(layout),
      fc.constantFrom(...TIERS),
      fc.nat({ max: 4096 }),
      fc.nat(),
      (list, tier, offset, low) => {
        const pattern = Buffer.alloc(list.length * 8);
        for (const [i, word] of list.entries()) pattern.writeBigUInt64LE(word, i * 8);
        const memory = new Pattern(pattern);
        const operand = tier * 2 ** 48 + BASE + offset * 8;
        const named = v8.nameFrame(
          { operand, low: tier === V8Tier.JIT ? BASE + low : 0, high: 64 },
          layout,
          memory,
          new NameCache(),
        );
        expect(memory.reads).toBeLessThan(MAX_READS);
        expect(memory.bytes).toBeLessThan(MAX_BYTES);
        if (typeof named === 'string') {
          expect(FAILURES).toContain(named);
          return;
        }
        const frames = Array.isArray(named) ? named : [named];
        for (const { name, file } of frames) {
          expect(name.length).toBeLessThan(MAX_CHARS);
          expect(file.length).toBeLessThan(4200);
        }
      },
    );
    fc.assert(run, { numRuns: 300 });
  });

  it('that refers to nothing but itself end', () => {
    // each object is its own map, name, script and source
    for (const word of [BASE + 1, BASE + 3, BASE]) {
      const pattern = Buffer.alloc(8);
      pattern.writeBigUInt64LE(BigInt(word));
      for (const tier of TIERS) {
        const memory = new Pattern(pattern);
        v8.nameFrame({ operand: tier * 2 ** 48 + BASE, low: BASE, high: 0 }, layout, memory, new NameCache());
        expect(memory.reads).toBeLessThan(MAX_READS);
        expect(memory.bytes).toBeLessThan(MAX_BYTES);
      }
    }
  });
});
