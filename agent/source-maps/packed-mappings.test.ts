import { type SourceMapSegment, TraceMap, traceSegment } from '@jridgewell/trace-mapping';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Mapped, NO_NAME, PackedMappings } from './packed-mappings.ts';

const small = fc.nat(40);
const segment: fc.Arbitrary<SourceMapSegment> = fc.oneof(
  fc.tuple(small),
  fc.tuple(small, fc.nat(3), small, small),
  fc.tuple(small, fc.nat(3), small, small, fc.nat(5)),
);
const line = fc
  .array(segment, { maxLength: 12 })
  .map((segments) => [...segments].sort((a, b) => a[0] - b[0]));

const mapped = (found: Readonly<SourceMapSegment> | null): Mapped | undefined =>
  found === null || found.length === 1
    ? undefined
    : {
        column: found[0],
        source: found[1],
        sourceLine: found[2],
        sourceColumn: found[3],
        name: found[4] ?? NO_NAME,
      };

describe('packed mappings', () => {
  it('lead where those of the decoded map lead', () => {
    fc.assert(
      fc.property(fc.array(line, { maxLength: 8 }), fc.nat(9), fc.nat(45), (mappings, at, column) => {
        const names = ['a', 'b', 'c', 'd', 'e', 'f'];
        const map = new TraceMap({ version: 3, sources: ['0', '1', '2', '3'], names, mappings });
        expect(new PackedMappings(mappings).find(at, column)).toEqual(mapped(traceSegment(map, at, column)));
      }),
      { numRuns: 2000 },
    );
  });

  it('say nothing of lines that there are not', () => {
    const mappings = new PackedMappings([[[0, 0, 0, 0]]]);
    expect(mappings.find(-1, 0)).toBeUndefined();
    expect(mappings.find(1, 0)).toBeUndefined();
    expect(new PackedMappings([]).find(0, 0)).toBeUndefined();
  });

  it('take twenty bytes a segment', () => {
    const lines = Array.from({ length: 100 }, (_, i): number[][] =>
      Array.from({ length: 50 }, (_, k) => [k, 0, i, k]),
    );
    expect(new PackedMappings(lines).byteLength).toBeLessThan(100 * 50 * 20 + 101 * 4 + 1);
  });
});
