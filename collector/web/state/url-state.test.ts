import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  COLOURS,
  formatHash,
  GROUPINGS,
  parseHash,
  RANGES,
  rangeTitle,
  type UrlState,
  VIEWS,
} from './url-state.ts';

const span = fc
  .tuple(fc.integer({ min: 0, max: 4e12 }), fc.integer({ min: 1, max: 1e9 }))
  .map(([fromMs, length]) => ({ fromMs, toMs: fromMs + length }));

const times = fc.oneof(
  fc.constant({ overview: undefined, brush: undefined }),
  span.map((overview) => ({ overview, brush: undefined })),
  fc.tuple(span, span).map(([overview, brush]) => ({ overview, brush })),
);

const states: fc.Arbitrary<UrlState> = fc
  .record({
    range: fc.constantFrom(...RANGES.map(({ name }) => name as string), '2m', '7d'),
    by: fc.constantFrom(...GROUPINGS, 'trace_id' as const, '@process.context.label.route' as const),
    type: fc.string(),
    where: fc.string(),
    transform: fc.string(),
    function: fc.string(),
    file: fc.string(),
    sort: fc.string(),
    base: fc.option(span, { nil: undefined }),
    baseWhere: fc.option(fc.string(), { nil: undefined }),
    colour: fc.option(fc.constantFrom(...COLOURS), { nil: undefined }),
    search: fc.string({ unit: 'grapheme' }),
    zoom: fc.string(),
    view: fc.constantFrom(...VIEWS),
  })
  .chain((rest) => times.map((part) => ({ ...rest, ...part })));

describe('the state in the address', () => {
  it('is bare at the start', () => {
    expect(formatHash(parseHash(''))).toBe('');
  });

  it('comes back as it was', () => {
    fc.assert(
      fc.property(states, (state) => {
        expect(parseHash(formatHash(state))).toEqual(state);
      }),
    );
  });

  it('takes times as people write them', () => {
    const { overview, brush } = parseHash('#from=2026-01-31T12:00:00Z&to=2026-01-31T12:05:00Z');
    expect(overview).toEqual({ fromMs: 1769860800000, toMs: 1769861100000 });
    expect(brush).toBeUndefined();
  });

  it('takes any length that the API takes, and one name for each', () => {
    for (const range of ['2m', '90s', '10m', '7d', '1.5h'])
      expect(parseHash(`#range=${range}`).range).toBe(range);
    expect(parseHash('#range=1m').range).toBe('60s');
    expect(parseHash('#range=60m').range).toBe('1h');
    expect([rangeTitle('2m'), rangeTitle('5m')]).toEqual(['the last 2 min', 'the last 5 minutes']);
  });

  it('starts where a link says nothing that can be read', () => {
    expect(parseHash('#range=9y&from=5&to=4&by=frame&view=nothing')).toEqual(parseHash(''));
  });
});

it('stacks time by an attribute, written either way', () => {
  for (const by of ['label.route', '@process.context.label.route', 'process.context.label.route'])
    expect(parseHash(`#by=${by}`).by).toBe('@process.context.label.route');
  expect(parseHash('#by=nonsense').by).toBe('process');
  expect(parseHash('#by=thread.state').by).toBe('thread.state');
});
