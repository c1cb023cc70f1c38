import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ProcessMemory } from '../contract.ts';
import { Heap } from './heap.ts';
import type { V8Layout } from './layout.ts';
import { inlinedAt } from './wasm-inlining.ts';

const METADATA_AT = 0x1000;
const TRAPS = 12;
const RELOCATIONS = 7;
const WASM = { codeSize: 32, codeIndex: 56, hasInlinings: true };
const LAYOUT = { positionFlags: 0, wasm: WASM } as unknown as V8Layout;

interface Inlined {
  func: number;
  /** Of the call. */
  caller: number;
  isTailCall?: boolean;
}

/** As V8 writes them: in what is inlined as `id`, -1 for nothing. */
const positionIn = (id: number): bigint => (BigInt(id + 1) << 31n) | 2n;

function tableOf(inlinings: readonly Inlined[]): Buffer {
  const table = Buffer.alloc(inlinings.length * 13);
  for (const [id, { func, caller, isTailCall = false }] of inlinings.entries()) {
    table.writeInt32LE(func, id * 13);
    table.writeUInt8(isTailCall ? 1 : 0, id * 13 + 4);
    table.writeBigUInt64LE(positionIn(caller), id * 13 + 5);
  }
  return table;
}

function vlq(value: bigint): number[] {
  const zigzag = value < 0n ? -value * 2n - 1n : value * 2n;
  const bytes: number[] = [];
  for (let rest = zigzag; ; rest >>= 7n) {
    if (rest < 128n) return [...bytes, Number(rest)];
    bytes.push(Number(rest & 127n) | 128);
  }
}

/** Ten bytes of code for each id, from the code's start on. */
function positionsOf(ids: readonly number[]): Buffer {
  const deltas = ids.map((id, i) => [
    ...vlq(i === 0 ? 1n : 10n),
    ...vlq(positionIn(id) - (i === 0 ? 0n : positionIn(ids[i - 1]!))),
  ]);
  return Buffer.from(deltas.flat());
}

function find(positions: Buffer, inlinings: Buffer, offset: number, reads: number[] = []): number[] {
  const metadata = Buffer.concat([Buffer.alloc(TRAPS + RELOCATIONS, 0xff), positions, inlinings]);
  const memory: ProcessMemory = {
    read(address, length) {
      reads.push(length);
      return metadata.subarray(address - METADATA_AT, address - METADATA_AT + length);
    },
  };
  const code = new DataView(new ArrayBuffer(64));
  code.setBigUint64(24, BigInt(METADATA_AT), true);
  for (const [i, size] of [RELOCATIONS, positions.length, inlinings.length, 0, TRAPS].entries())
    code.setUint32(36 + i * 4, size, true);
  return inlinedAt(new Heap(memory, LAYOUT), code, offset);
}

describe('functions inlined into WebAssembly', () => {
  const inlinings = tableOf([
    { func: 4, caller: -1 },
    { func: 2, caller: 0 },
    { func: 9, caller: -1 },
  ]);

  it('are those of the last position, the innermost first', () => {
    const positions = positionsOf([-1, 1, 0, 2]);
    expect([0, 9, 10, 25, 35].map((at) => find(positions, inlinings, at))).toEqual([
      [],
      [],
      [2, 4],
      [4],
      [9],
    ]);
  });

  it('are none where the caller has none, without reading its tables', () => {
    const reads: number[] = [];
    expect(find(positionsOf([1]), Buffer.alloc(0), 5, reads)).toEqual([]);
    expect(reads).toEqual([]);
  });

  it('leave out what a tail call has left', () => {
    const tail = tableOf([
      { func: 4, caller: -1 },
      { func: 2, caller: 0, isTailCall: true },
    ]);
    expect(find(positionsOf([1]), tail, 5)).toEqual([2]);
  });

  it('are none where the tables contradict themselves', () => {
    const circle = tableOf([
      { func: 4, caller: 1 },
      { func: 2, caller: 0 },
    ]);
    expect(find(positionsOf([1]), circle, 5)).toEqual([]);
    expect(find(positionsOf([7]), inlinings, 5)).toEqual([]);
    const reads: number[] = [];
    expect(find(positionsOf([0]), Buffer.alloc(2 << 20), 5, reads)).toEqual([]);
    expect(reads).toEqual([]);
  });

  it('are of a bounded number, whatever the tables say', () => {
    const chain = tableOf(Array.from({ length: 1000 }, (_, i) => ({ func: i, caller: i - 1 })));
    expect(find(positionsOf([999]), chain, 5)).toHaveLength(64);
    const bytes = fc.uint8Array({ maxLength: 200 }).map((list) => Buffer.from(list));
    fc.assert(
      fc.property(bytes, bytes, fc.nat(), (positions, table, at) => find(positions, table, at).length <= 64),
    );
  });
});
