import fc from 'fast-check';
import { expect, it } from 'vitest';
import { INVALID_RULE, MAX_RULES, type Rule, RuleTable } from './rules.ts';

const small = fc.integer({ min: -2, max: 2 });
const ruleArbitrary: fc.Arbitrary<Rule> = fc.record({
  kind: fc.integer({ min: 1, max: 6 }),
  cfaReg: fc.nat(31),
  fpKind: fc.nat(4),
  raKind: fc.nat(4),
  cfaOffset: fc.oneof(small, fc.integer()),
  cfaOffset2: fc.oneof(small, fc.integer()),
  fpOffset: fc.oneof(small, fc.integer({ min: -32768, max: 32767 })),
  raOffset: fc.oneof(small, fc.integer({ min: -32768, max: 32767 })),
});

it('gives equal rules one id, different ones different ids', () => {
  fc.assert(
    fc.property(fc.array(ruleArbitrary, { maxLength: 600 }), (rules) => {
      const table = new RuleTable();
      const ids = rules.map((rule) => table.intern(rule));
      const texts = new Map<string, number>();
      for (const [i, rule] of rules.entries()) {
        const text = JSON.stringify(Object.entries(rule).sort());
        expect(texts.get(text) ?? ids[i]).toBe(ids[i]);
        texts.set(text, ids[i]!);
        expect(table.rules[ids[i]!]).toEqual(rule);
        expect(table.intern(rule)).toBe(ids[i]);
      }
      expect(new Set(texts.values()).size).toBe(texts.size);
    }),
  );
});

it('does not change with the rule that was interned', () => {
  const table = new RuleTable();
  const rule = { ...INVALID_RULE, kind: 1, cfaOffset: 8 };
  const id = table.intern(rule);
  rule.cfaOffset = 16;
  expect(table.rules[id]!.cfaOffset).toBe(8);
});

it('counts rules beyond 65,535 and makes them invalid', () => {
  const table = new RuleTable();
  for (let i = 1; i < MAX_RULES + 10; i++) table.intern({ ...INVALID_RULE, kind: 1, cfaOffset: i * 8 });
  expect([table.rules.length, table.overflow]).toEqual([MAX_RULES, 10]);
  expect(table.intern({ ...INVALID_RULE, kind: 1, cfaOffset: 8 })).toBe(1);
  expect(table.intern({ ...INVALID_RULE, kind: 2 })).toBe(0);
});
