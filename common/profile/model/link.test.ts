import { describe, expect, it } from 'vitest';
import { LinkTable, toSpanId, toTraceId } from './link.ts';

describe('toTraceId, toSpanId', () => {
  it('take hex digits of any case, and nothing that is not an ID', () => {
    expect(toTraceId('0AF7651916CD43DD8448EB211C80319C')).toBe('0af7651916cd43dd8448eb211c80319c');
    expect(toSpanId('b7ad6b7169203331')).toBe('b7ad6b7169203331');
    for (const bad of ['', '0'.repeat(32), '1'.repeat(31), '1'.repeat(33), 'g'.repeat(32)])
      expect(toTraceId(bad)).toBe('');
    for (const bad of ['', '0'.repeat(16), '1'.repeat(32), `${'1'.repeat(16)}\n`])
      expect(toSpanId(bad)).toBe('');
  });
});

describe('LinkTable', () => {
  it('has each link once, and the one without IDs first', () => {
    const table = new LinkTable();
    const link = { traceId: '1'.repeat(32), spanId: '2'.repeat(16) };
    const other = { ...link, spanId: '' };
    expect([link, other, { ...link }, { traceId: '', spanId: '' }].map((one) => table.indexOf(one))).toEqual([
      1, 2, 1, 0,
    ]);
    expect(table.links).toEqual([{ traceId: '', spanId: '' }, link, other]);
  });
});
