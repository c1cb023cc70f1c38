import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Link } from '../../common/profile/model/profile.ts';
import { NO_LINKS, PartLinks } from './part-links.ts';

const digits = (length: number): fc.Arbitrary<string> =>
  fc.oneof(
    fc.constant(''),
    fc.nat(40).map((id) => (id + 1).toString(16).padStart(length, '0')),
    fc
      .array(fc.constantFrom(...'0123456789abcdef'), { minLength: length, maxLength: length })
      .map((list) => `${list.slice(1).join('')}1`),
  );
const LINK: fc.Arbitrary<Link> = fc.record({ traceId: digits(32), spanId: digits(16) });
const keyOf = ({ traceId, spanId }: Link): string => `${traceId}/${spanId}`;

it('has each link once, whatever its digits, and gives it back', () => {
  fc.assert(
    fc.property(fc.array(LINK, { maxLength: 1500 }), (all) => {
      const links = new PartLinks();
      const ids = all.map((link) => links.indexOf(link));
      expect(ids.map((id) => links.at(id))).toEqual(all);
      expect(links.length).toBe(new Set(['/', ...all.map(keyOf)]).size);
      expect(all.map((link) => links.indexOf(link))).toEqual(ids);
    }),
    { numRuns: 60 },
  );
});

it('is the same of its numbers, put in any order', () => {
  fc.assert(
    fc.property(fc.uniqueArray(LINK, { selector: keyOf, minLength: 1, maxLength: 400 }), (all) => {
      const links = new PartLinks();
      for (const link of all) links.append(link);
      const { tracesHigh, tracesLow, spans } = links.slice(1, links.length);
      const copy = new PartLinks();
      for (let i = all.length - 1; i >= 0; i--) copy.put(i + 1, tracesHigh[i]!, tracesLow[i]!, spans[i]!);
      expect(all.map((_, i) => copy.at(i + 1))).toEqual(all);
      expect([copy.length, copy.at(0)]).toEqual([all.length + 1, { traceId: '', spanId: '' }]);
    }),
    { numRuns: 30 },
  );
});

it('finds links by their IDs, as comparing texts does', () => {
  const values = fc.array(fc.oneof(digits(32), digits(16), fc.constant('x'.repeat(32))), { maxLength: 4 });
  fc.assert(
    fc.property(fc.array(LINK, { maxLength: 50 }), values, (all, wanted) => {
      const links = new PartLinks();
      for (const link of all) links.indexOf(link);
      for (const label of ['trace_id', 'span_id'] as const) {
        const expected = Array.from({ length: links.length }, (_, id) =>
          wanted.includes(links.value(id, label)) ? 1 : 0,
        );
        expect([...links.having(label, wanted)]).toEqual(expected);
      }
    }),
  );
});

it('takes no memory without links', () => {
  const links = new PartLinks();
  expect([links.indexOf({ traceId: '', spanId: '' }), links.bytes, NO_LINKS.bytes]).toEqual([0, 0, 0]);
});
