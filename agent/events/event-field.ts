/** Numbers that events have, and where functions and probes have theirs: struct ef_event_field. Registers go by their DWARF numbers. */
import type { Machine } from '../../common/elf/elf.ts';

interface Numeric {
  /** 1, 2, 4 or 8 */
  bytes: number;
  isSigned: boolean;
}

/** Of a tracepoint: an argument, or a member of the kernel's struct that it points to. */
export type KernelField = Numeric &
  ({ kind: 'argument'; argument: number } | { kind: 'member'; argument: number; offset: number });

/** Of code in user space. Memory is at base + offset + scale * index. */
export type UserField = Numeric &
  (
    | { kind: 'register'; register: number; lowestBit: number }
    | { kind: 'memory'; base: number; offset: number; index: number; scale: number }
    | { kind: 'constant'; value: number }
  );

export type EventField = KernelField | UserField;

/** An argument that no program of ours can read, as the file has it. */
export interface UnreadableField {
  kind: 'unreadable';
  text: string;
}
export type ArgumentPlace = UserField | UnreadableField;

export const STACK_POINTER: Readonly<Record<Machine, number>> = { x86_64: 7, aarch64: 31 };
export const PROGRAM_COUNTER: Readonly<Record<Machine, number>> = { x86_64: 16, aarch64: 32 };

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
/** rdi rsi rdx rcx r8 r9: System V ABI, section 3.2.3; AAPCS64, section 6.8 */
const OF_C: Readonly<Record<Machine, readonly number[]>> = {
  x86_64: [5, 4, 1, 2, 8, 9],
  aarch64: upTo(8),
};
/** rax rbx rcx rdi rsi r8 r9 r10 r11: Go's ABIInternal, cmd/compile/abi-internal.md */
const OF_GO: Readonly<Record<Machine, readonly number[]>> = {
  x86_64: [0, 3, 2, 5, 4, 8, 9, 10, 11],
  aarch64: upTo(16),
};
const WORDS_ON_STACK = 16;

export type Convention = 'c' | 'go' | 'go-on-stack';

/** Words that a function is called with, at its entry. */
export function argumentsOf(convention: Convention, machine: Machine): UserField[] {
  const word = { bytes: 8, isSigned: true };
  if (convention === 'go-on-stack')
    return upTo(WORDS_ON_STACK).map((i) => ({
      ...{ ...word, kind: 'memory', base: STACK_POINTER[machine], offset: 8 + 8 * i, index: 0, scale: 0 },
    }));
  const registers = (convention === 'go' ? OF_GO : OF_C)[machine];
  return registers.map((register) => ({ ...word, kind: 'register', register, lowestBit: 0 }));
}
