import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { attributesText, readAttributes } from './attributes.ts';

describe('attributes as text', () => {
  it('says the same whatever the order, and reads back', () => {
    const pairs = fc.uniqueArray(fc.tuple(fc.string({ minLength: 1 }), fc.string({ minLength: 1 })), {
      selector: ([key]) => key,
      maxLength: 20,
    });
    fc.assert(
      fc.property(pairs, (attributes) => {
        const text = attributesText(attributes);
        expect(attributesText([...attributes].reverse())).toBe(text);
        expect(new Map(readAttributes(text))).toEqual(new Map(attributes));
      }),
    );
  });

  it('is empty where nothing is said', () => {
    expect(attributesText([['a', '']])).toBe('');
    expect(readAttributes('').size).toBe(0);
  });

  it('keeps no more than a sender may make it keep', () => {
    const many = Array.from({ length: 1000 }, (_, i) => [`k${i}`, 'x'.repeat(10_000)] as const);
    const kept = readAttributes(attributesText([...many, ['k'.repeat(1000), 'long key']]));
    expect(kept.size).toBe(64);
    expect([...kept.values()].every((value) => value.length === 256 && value.endsWith('…'))).toBe(true);
    expect(readAttributes(attributesText([['a', `${'x'.repeat(254)}😀😀`]])).get('a')).toBe(
      `${'x'.repeat(254)}…`,
    );
  });
});
