import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CounterReport } from './counter-report.ts';
import { decodeCounters, encodeCounters } from './otlp-metrics.ts';

const SCOPE = { scopeName: 'everyframe', scopeVersion: '1.2.3' };

describe('counters as OTLP metrics', () => {
  it('come back as they were written', () => {
    const name = fc.string({ minLength: 1, maxLength: 30 }).filter((text) => text !== '__proto__');
    const value = fc.oneof(fc.integer(), fc.constantFrom(0, 2 ** 45, Number.MAX_SAFE_INTEGER, 0.5, -1.25));
    const report: fc.Arbitrary<CounterReport> = fc.record({
      resource: fc.dictionary(name, fc.string({ maxLength: 20, unit: 'grapheme' }), {
        noNullPrototype: true,
      }),
      startMs: fc.integer({ min: 1, max: 4e12 }),
      timeMs: fc.integer({ min: 1, max: 4e12 }),
      counters: fc.dictionary(name, value, { minKeys: 1, noNullPrototype: true }),
    });
    fc.assert(
      fc.property(report, fc.func(fc.boolean()), (written, isGauge) => {
        expect(decodeCounters(encodeCounters(written, SCOPE, isGauge))).toEqual([written]);
      }),
    );
  });

  it('that are not numbers are left out', () => {
    const bytes = encodeCounters(
      { resource: {}, startMs: 1, timeMs: 2, counters: { good: 0, bad: Number.NaN, worse: Infinity } },
      SCOPE,
      () => false,
    );
    expect(decodeCounters(bytes)[0]!.counters).toEqual({ good: 0 });
  });

  it('read from any bytes end in an answer or in an error', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        try {
          expect(Array.isArray(decodeCounters(bytes))).toBe(true);
        } catch (error) {
          expect(error).toBeInstanceOf(Error);
        }
      }),
    );
  });
});
