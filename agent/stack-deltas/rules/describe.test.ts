import { expect, it } from 'vitest';
import { RuleKind, ValueKind } from '../../records/records.gen.ts';
import { describeRule } from './describe.ts';
import { framePointerRule, INVALID_RULE, type Rule, SIGNAL_RULE, STOP_RULE } from './rules.ts';

const rule = (fields: Partial<Rule>): Rule => ({
  ...INVALID_RULE,
  kind: RuleKind.CFA,
  cfaReg: 7,
  cfaOffset: 8,
  fpKind: ValueKind.SAME,
  raKind: ValueKind.CFA,
  raOffset: -8,
  ...fields,
});
const x86 = (fields: Partial<Rule>): object => describeRule(rule(fields), 'x86_64');

it('names what the rule does', () => {
  expect(x86({})).toEqual({ kind: 'rule', cfa: 'rsp+8', fp: 'same', ra: 'cfa-8' });
  expect(x86({ fpKind: ValueKind.CFA, fpOffset: -16 })).toMatchObject({ fp: 'cfa-16' });
  expect(x86({ fpKind: ValueKind.FRAME, fpOffset: -16 })).toMatchObject({ fp: '*(rbp-16)' });
  expect(x86({ fpKind: ValueKind.UNDEFINED })).toMatchObject({ fp: 'undefined' });
  expect(x86({ raKind: ValueKind.REGISTER, raOffset: 5 })).toMatchObject({ ra: 'rdi' });
  expect(x86({ kind: RuleKind.CFA_DEREF, cfaReg: 6, cfaOffset: -8 })).toMatchObject({
    kind: 'rule',
    cfa: '*(rbp-8)',
  });
  expect(x86({ kind: RuleKind.CFA_DEREF, cfaOffset: 16, cfaOffset2: 8 })).toMatchObject({
    cfa: '*(rsp+16)+8',
  });
  expect(x86({ kind: RuleKind.PLT, cfaOffset2: 11 })).toMatchObject({
    kind: 'plt',
    cfa: 'rsp+8+((rip&15)>=11?8:0)',
  });
});

it('names the registers of arm64', () => {
  const leaf = rule({ cfaReg: 31, cfaOffset: 0, raKind: ValueKind.REGISTER, raOffset: 30 });
  expect(describeRule(leaf, 'aarch64')).toEqual({ kind: 'rule', cfa: 'sp+0', fp: 'same', ra: 'x30' });
  expect(describeRule(rule({ cfaReg: 29, cfaOffset: 32 }), 'aarch64')).toMatchObject({ cfa: 'x29+32' });
});

it('has kinds without a CFA', () => {
  expect([INVALID_RULE, STOP_RULE, SIGNAL_RULE].map((r) => describeRule(r, 'x86_64'))).toEqual([
    { kind: 'invalid' },
    { kind: 'stop' },
    { kind: 'signal' },
  ]);
  expect(describeRule(framePointerRule(6), 'x86_64')).toEqual({
    kind: 'frame-pointer',
    cfa: 'rbp+16',
    fp: 'cfa-16',
    ra: 'cfa-8',
  });
  expect(describeRule(framePointerRule(29, 48), 'aarch64')).toEqual({
    kind: 'frame-pointer',
    cfa: 'x29+56',
    fp: 'cfa-56',
    ra: 'cfa-48',
  });
});
