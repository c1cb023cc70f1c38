import { expect, test } from 'vitest';
import { findInstructions } from '../../../common/elf/go-instructions.ts';
import { RuleKind } from '../../records/records.gen.ts';
import { readGoroutineRule, TAKES_SCHEDULER } from './go-goroutine.ts';

const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll(' ', ''), 'hex');
/** mov %fs:-8,%rdi; mov 48(%rdi),%rbx; …; mov %rbp,96(%rdi); …; mov 56(%rbx),%rsp; mov $0,%rbp: runtime.morestack of Go 1.26 */
const GO_1_26 = bytes(
  '64488b3c25f8ffffff 488b5f30 488b0424 48896f60 48895750 488b33 488b6338 48c7c500000000',
);

test.each([
  ['of Go 1.26', GO_1_26, { cfaOffset: -8, cfaOffset2: 184, fpOffset: 96 }],
  // mov $-8,%rcx; mov %fs:(%rcx),%rdi
  ['of a position-independent program', bytes('48c7c1f8ffffff 64488b39 48896f60'), { cfaOffset: -8 }],
  // mov %rbp,104(%rsi)
  ['of Go 1.20', bytes('64488b3c25b0ffffff 48896e68'), { cfaOffset: -80, cfaOffset2: 192, fpOffset: 104 }],
])('where the goroutine is, the code shows: %s', (_, code, expected) => {
  expect(readGoroutineRule(code)).toMatchObject({ kind: RuleKind.GOROUTINE, raOffset: 48, ...expected });
});

test('code that does not tell has no rule', () => {
  expect(readGoroutineRule(undefined)).toBeUndefined();
  expect(readGoroutineRule(bytes('4889 6f60 90'))).toBeUndefined();
  expect(readGoroutineRule(bytes('64488b3c25f8ffffff 48896f70'))).toBeUndefined();
});

test('instructions are found at whole bytes only', () => {
  expect(findInstructions(GO_1_26, TAKES_SCHEDULER.x86_64)?.end).toBe(GO_1_26.length - 7);
  expect(findInstructions(bytes('0488b230'), '488b23')).toBeUndefined();
});
