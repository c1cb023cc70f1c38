import fc from 'fast-check';
import { expect, it } from 'vitest';
import { scanJson } from './otlp-json-scan.ts';
import { OtlpError } from './otlp-scan.ts';

it('takes what JSON.stringify writes, whatever is in its texts', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 8 }), (value) => scanJson(JSON.stringify(value))),
    { numRuns: 300 },
  );
  scanJson(JSON.stringify({ name: '['.repeat(500) + '\\"{['.repeat(500) }));
});

it.each([
  ['a million brackets', '['.repeat(1_000_000)],
  ['a million objects in each other', '{"a":'.repeat(400_000)],
  ['behind a text that ends in backslashes', `["\\\\",${'['.repeat(200)}`],
])('refuses %s before anything is made of them', (_, json) => {
  expect(() => scanJson(json)).toThrow(OtlpError);
});

it('refuses more objects and keys than a request has', () => {
  expect(() => scanJson(`[${'{},'.repeat(3_000_000)}`)).toThrow('more than 3000000 objects');
  expect(() => scanJson(`{${'"a":1,'.repeat(6_000_001)}`)).toThrow('6000000 keys');
});
