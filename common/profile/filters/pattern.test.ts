import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseFilter } from './filter.ts';
import { compilePattern, PatternError } from './pattern.ts';

const EVIL_TEXT = `${'a'.repeat(60)}!`;

describe('compilePattern', () => {
  it.each(['(a+)+$', '(a|aa)+$', '^(([a-z])+.)+[A-Z]([a-z])+$', '(.*a){20}b', '(?:a|b)*a(?:a|b){900}$'])(
    'ends for %s, which JavaScript would try for years',
    (source) => {
      expect(compilePattern(source).test(EVIL_TEXT)).toBe(false);
    },
  );

  it('matches as JavaScript does', () => {
    const piece = fc.constantFrom(
      'a',
      'b',
      '.',
      '\\w',
      '[^a]',
      '(a|b)',
      '(?:ab)',
      '\\.',
      '\\b',
      'é',
      '😀',
      '\\u0061',
    );
    const part = fc
      .tuple(piece, fc.constantFrom('', '', '*', '+', '?', '{2}', '{1,3}', '+?'))
      .map(([one, times]) => (one === '\\b' ? one : one + times));
    const source = fc
      .tuple(
        fc.constantFrom('', '^'),
        fc.array(part, { minLength: 1, maxLength: 5 }),
        fc.constantFrom('', '$'),
      )
      .map(([begin, parts, end]) => begin + parts.join('') + end);
    const text = fc
      .array(fc.constantFrom('a', 'b', 'A', '.', ':', 'é', '😀', ' '))
      .map((all) => all.join(''));
    fc.assert(
      fc.property(source, text, fc.boolean(), (one, subject, ignoreCase) => {
        const expected = new RegExp(one, ignoreCase ? 'iu' : 'u').test(subject);
        expect(compilePattern(one, { ignoreCase }).test(subject)).toBe(expected);
      }),
      { numRuns: 500 },
    );
  });

  it('says what it does not read', () => {
    const reason = (source: string): string => {
      try {
        compilePattern(source);
        return 'read';
      } catch (error) {
        expect(error).toBeInstanceOf(PatternError);
        return (error as Error).message;
      }
    };
    expect(reason('(a')).toBe('"(a" is not a regular expression: missing closing ): (a');
    expect(reason('(?<!std::)move')).toContain('(?<!… (looking around and back-references) is not supported');
    expect(reason('(a)\\1')).toContain('\\1… (looking around and back-references) is not supported');
    expect(reason('a'.repeat(1001))).toContain('at most 1000 are read');
    expect(reason('a{9999}')).toContain('is not a regular expression');
    expect(() => parseFilter('frame~"(?=x)"')).toThrow('not supported');
  });

  it('answers or refuses whatever is written', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 40 }), fc.string({ maxLength: 200 }), (source, text) => {
        try {
          compilePattern(source).test(text);
        } catch (error) {
          expect(error).toBeInstanceOf(PatternError);
        }
      }),
    );
  });
});
