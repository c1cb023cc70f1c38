import { describe, expect, it } from 'vitest';
import { elideMiddle, formatCount, formatDuration, formatShare, plural } from './format.ts';

describe('formats', () => {
  it.each([
    [0, '0 %'],
    [0.00001, '< 0.01 %'],
    [0.00123, '0.12 %'],
    [0.1234, '12.3 %'],
    [0.9996, '100 %'],
    [Number.NaN, '0 %'],
  ])('writes the share %d as %s', (share, text) => {
    expect(formatShare(share)).toBe(text);
  });

  it.each([
    [0.25, '250 ms'],
    [1.25, '1.3 s'],
    [59.4, '59 s'],
    [60, '1 min'],
    [119.9, '1 min 59 s'],
    [3600, '1 h'],
    [5400, '1 h 30 min'],
  ])('writes %d s as %s', (seconds, text) => {
    expect(formatDuration(seconds)).toBe(text);
  });

  it('keeps both ends of a long name', () => {
    expect(elideMiddle('abcdefghij', 10)).toBe('abcdefghij');
    expect(elideMiddle('abcdefghij', 5)).toBe('ab…ij');
    expect(elideMiddle('abcdefghij', 6)).toBe('abc…ij');
    expect(elideMiddle('abcdefghij', 2)).toBe('ab');
  });

  it('counts', () => {
    expect(formatCount(1234567)).toBe('1,234,567');
    expect(plural(1, 'box', 'boxes')).toBe('1 box');
    expect(plural(2, 'sample')).toBe('2 samples');
  });
});
