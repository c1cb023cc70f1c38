import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LABELS, type Operator, parseFilter } from '../../../common/profile/filters/filter.ts';
import { ask, askOverview, askTypes, formatFilter } from './questions.ts';
import { parseHash } from './url-state.ts';

describe('questions', () => {
  it('ask for the brushed time, and for the whole timeline', () => {
    const state = parseHash('#over_from=1000&over_to=9000&from=2000&to=3000&where=process%3Dsh');
    expect(ask('tree', state)).toBe('api/v1/tree?from=2000&to=3000&where=process%3Dsh');
    expect(askOverview('timeline', state, { by: 'process' })).toBe(
      'api/v1/timeline?from=1000&to=9000&where=process%3Dsh&by=process',
    );
  });

  it('ask for the types of what the filter wants', () => {
    expect(askTypes(parseHash('#range=15m&where=process%3Dsh&type=off_cpu'))).toBe(
      'api/v1/types?range=15m&align=1&where=process%3Dsh',
    );
  });

  it('follow now without a brush', () => {
    expect(ask('top', parseHash('#range=15m'), { limit: 5, where: '' })).toBe(
      'api/v1/top?range=15m&align=1&limit=5',
    );
  });
});

describe('formatFilter', () => {
  it('writes what the API reads, whatever the values hold', () => {
    const value = fc.string({ minLength: 1, maxLength: 20, unit: 'grapheme' });
    const term = fc.record({
      // labels of programs have any name
      key: fc.oneof(
        fc.constantFrom(...LABELS),
        value.map((name) => `@process.context.label.${name}`),
      ),
      operator: fc.constantFrom<Operator>('=', '!='),
      values: fc.array(value, { minLength: 1, maxLength: 3 }),
    });
    fc.assert(
      fc.property(fc.array(term, { maxLength: 5 }), (terms) => {
        expect(parseFilter(formatFilter(terms))).toEqual(terms);
      }),
    );
  });
});

it('labels of programs have a short name in filters', () => {
  expect(parseFilter('label.route=/users @label.route!=x @"process.context.label.http route"~y')).toEqual([
    { key: '@process.context.label.route', operator: '=', values: ['/users'] },
    { key: '@label.route', operator: '!=', values: ['x'] },
    { key: '@process.context.label.http route', operator: '~', values: ['y'] },
  ]);
});
