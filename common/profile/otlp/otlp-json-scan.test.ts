import fc from 'fast-check';
import { expect, it } from 'vitest';
import { FILE_LIMITS, REQUEST_LIMITS, scanJson } from './otlp-json-scan.ts';
import { OtlpError } from './otlp-scan.ts';

it('takes what JSON.stringify writes, whatever is in its texts', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 8 }), (value) => scanJson(JSON.stringify(value), REQUEST_LIMITS)),
    { numRuns: 300 },
  );
  scanJson(JSON.stringify({ name: '['.repeat(500) + '\\"{['.repeat(500) }), REQUEST_LIMITS);
});

it.each([
  ['a million brackets', '['.repeat(1_000_000)],
  ['a million objects in each other', '{"a":'.repeat(400_000)],
  ['behind a text that ends in backslashes', `["\\\\",${'['.repeat(200)}`],
])('refuses %s before anything is made of them', (_, json) => {
  expect(() => scanJson(json, FILE_LIMITS)).toThrow(OtlpError);
});

it('refuses more objects, keys and items than a request has', () => {
  const scan = (json: string) => () => scanJson(json, { objects: 10, keys: 20, items: 30 });
  expect(scan(`[${'{}'.repeat(10)}`)).toThrow('more than 10 objects, 20 keys or 30 items');
  expect(scan(`{${'"a":1 '.repeat(21)}`)).toThrow('more than 10 objects');
  expect(scan(`[${'1,'.repeat(31)}`)).toThrow('more than 10 objects');
  expect(scan(`[${'{"a":1},'.repeat(9)}`)).not.toThrow();
});
