import { describe, expect, it } from 'vitest';
import { CannotRead, RuntimeMemory } from '../runtime-memory.ts';
import { placesOf } from './debug-info.ts';
import { FakeClr } from './fake-clr.ts';
import { layoutOf } from './layout.ts';
import { Nibbles } from './nibbles.ts';

/** Of three locals. */
const PATCHPOINT = `01200000000000000003000000480000${'00'}${'ff'.repeat(16)}a8ffffffa0ffffff98ffffff`;
/** Of two locals, in .NET 10. */
const PATCHPOINT_10 = `0120000000000000006018d554d97f00000200000068000000${'ff'.repeat(16)}a0ffffff98ffffff`;
const MAIN = `${PATCHPOINT_10}4b79596602027a06b22a423e1e462a4e425cce762204727e06a102001a04`;
const TEN = '005a1c295602023f830cc54b241673f119598dc846720700077b04b7a74f34c5';
const LAYOUT = layoutOf(8, 0, undefined);

function places(hex: string, offset: number, layout = LAYOUT) {
  const clr = new FakeClr();
  const debugInfo = clr.put(Buffer.from(hex, 'hex'));
  return placesOf(new RuntimeMemory(clr), layout, { methodDesc: 1, debugInfo, offset });
}

describe('the map from code to IL', () => {
  it.each([
    ['07', 7],
    ['09', 8],
    ['7f', 63],
    ['8900', 64],
    ['ff07', 511],
    ['8908', 512],
  ])('has numbers in nibbles: %s', (hex, value) => {
    expect(new Nibbles(Buffer.from(hex, 'hex')).number()).toBe(value);
  });

  // read from a live .NET 8, with slots of a method that is replaced while it runs, and without
  it.each([
    ['00340221000201417000', 0, 0],
    ['00a604032134e20202061904a7a042706c41709051600a2a05c6660506', 2, 0],
    [`${PATCHPOINT}6a4a2910a23562255b1992a22009224b4ab2b0`, 55, 2],
    [`${PATCHPOINT}6a4a2910a23562255b1992a22009224b4ab2b0`, 56, 6],
  ])('%s', (hex, offset, il) => {
    expect(places(hex, offset)).toEqual([{ methodDesc: 1, ilOffset: il }]);
  });

  // read from a live .NET 10
  it.each([
    ['0096004301826c5b0102590497a545', 12, 0],
    ['0096004301826c5b0102590497a545', 34, 0],
    [TEN, 42, 0],
    [TEN, 43, 7],
    [TEN, 100, 14],
    [TEN, 224, 54],
    [MAIN, 29, 0],
    [MAIN, 274, 60],
  ])('in bits: %s at %d', (hex, offset, il) => {
    expect(places(hex, offset, layoutOf(10, 0, undefined))).toEqual([{ methodDesc: 1, ilOffset: il }]);
  });

  it('ends with a reason whatever the memory holds', () => {
    let failures = 0;
    for (let i = 0; i < 3000; i++) {
      const bytes = Buffer.from(Array.from({ length: 64 }, (_, k) => (i * 2654435761 + k * 40503 * i) >>> 7));
      try {
        places(bytes.toString('hex'), i, i % 2 ? LAYOUT : layoutOf(10, 0, undefined));
      } catch (error) {
        expect(error).toBeInstanceOf(CannotRead);
        failures++;
      }
    }
    expect(failures).toBeGreaterThan(100);
  });
});
