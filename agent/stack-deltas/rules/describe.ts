/** Rules as people read them: `rsp+8`, `*(rbp-8)`, `cfa-16`. */
import type { Machine } from '../../../common/elf/elf.ts';
import { EF_RULE_INTERRUPTED, RuleKind, ValueKind } from '../../records/records.gen.ts';
import { REGISTERS } from './cfi-state.ts';
import type { Rule } from './rules.ts';

const X86 = ['rax', 'rdx', 'rcx', 'rbx', 'rsi', 'rdi', 'rbp', 'rsp'];

export function registerName(machine: Machine, number: number): string {
  if (machine === 'aarch64') return number === 31 ? 'sp' : `x${number}`;
  return X86[number] ?? `r${number}`;
}

const signed = (offset: number): string => (offset < 0 ? `${offset}` : `+${offset}`);

export interface RuleText {
  kind: 'rule' | 'plt' | 'signal' | 'stop' | 'invalid' | 'frame-pointer' | 'goroutine' | 'unknown';
  cfa?: string;
  fp?: string;
  ra?: string;
  /** The caller's program counter is not a return address. */
  interrupted?: true;
}

const KINDS: Readonly<Record<number, RuleText['kind']>> = {
  [RuleKind.INVALID]: 'invalid',
  [RuleKind.PLT]: 'plt',
  [RuleKind.SIGNAL]: 'signal',
  [RuleKind.STOP]: 'stop',
  [RuleKind.FRAME_POINTER]: 'frame-pointer',
  [RuleKind.GOROUTINE]: 'goroutine',
  [RuleKind.UNKNOWN]: 'unknown',
};

export function describeRule(rule: Rule, machine: Machine): RuleText {
  const kind = KINDS[rule.kind] ?? 'rule';
  if (kind !== 'rule' && kind !== 'plt' && kind !== 'frame-pointer') return { kind };
  return {
    kind,
    cfa: describeCfa(rule, machine),
    fp: describeValue(rule.fpKind, rule.fpOffset, machine),
    ra: describeValue(rule.raKind, rule.raOffset, machine),
    ...(rule.cfaReg & EF_RULE_INTERRUPTED ? { interrupted: true } : {}),
  };
}

function describeCfa(rule: Rule, machine: Machine): string {
  const base = `${registerName(machine, rule.cfaReg & ~EF_RULE_INTERRUPTED)}${signed(rule.cfaOffset)}`;
  if (rule.kind === RuleKind.PLT) return `${base}+((rip&15)>=${rule.cfaOffset2}?8:0)`;
  if (rule.kind === RuleKind.CFA_VG) return `${base}${signed(rule.cfaOffset2)}*vg`;
  if (rule.kind === RuleKind.CFA_DEREF_TWICE)
    return `*(*(${base})${signed((rule.cfaOffset2 << 16) >> 16)})${signed(rule.cfaOffset2 >> 16)}`;
  if (rule.kind !== RuleKind.CFA_DEREF) return base;
  return rule.cfaOffset2 === 0 ? `*(${base})` : `*(${base})${signed(rule.cfaOffset2)}`;
}

function describeValue(kind: number, offset: number, machine: Machine): string {
  switch (kind) {
    case ValueKind.SAME:
      return 'same';
    case ValueKind.CFA:
      return `cfa${signed(offset)}`;
    case ValueKind.REGISTER:
      return registerName(machine, offset);
    case ValueKind.FRAME:
      return `*(${registerName(machine, REGISTERS[machine].fp)}${signed(offset)})`;
    case ValueKind.STACK:
      return `*(${registerName(machine, REGISTERS[machine].sp)}${signed(offset)})`;
    default:
      return 'undefined';
  }
}
