import { expect, test } from 'vitest';
import { findLabels, findThreadOffset, findThreadOffsetSlot, readLoadG } from './go-instructions.ts';

const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll(' ', ''), 'hex');
/** As a disassembler shows them: the most significant byte first. */
const words = (...all: number[]): Buffer => {
  const code = Buffer.alloc(all.length * 4);
  for (const [i, word] of all.entries()) code.writeUInt32LE(word, i * 4);
  return code;
};

test('where a thread has its goroutine, the code of morestack shows', () => {
  // mov %fs:-88,%rdi
  expect(findThreadOffset(bytes('64488b3c25a8ffffff'))).toBe(-88);
  // mov %fs:-8,%rbx; mov 48(%rbx),%rbx: Go 1.20
  expect(findThreadOffset(bytes('64488b1c25f8ffffff 488b5b30'))).toBe(-8);
  // mov $-8,%rcx; mov %fs:(%rcx),%rbx
  expect(findThreadOffset(bytes('48c7c1f8ffffff 64488b19'))).toBe(-8);
  // mov 0x123051(%rip),%rcx; mov %fs:(%rcx),%rdi: a library
  const library = bytes('488b0d51301200 64488b39 488b5f30');
  expect(findThreadOffset(library)).toBeUndefined();
  expect(findThreadOffsetSlot(library, 0xacf60)).toBe(0x1cffb8);
  expect(findThreadOffsetSlot(bytes('64488b3c25a8ffffff'), 0)).toBeUndefined();
});

test('where labels are, the code that sets them shows', () => {
  // mov (%rsp),%rcx; mov %rax,0x160(%rcx): Go 1.26
  expect(findLabels(bytes('488b0c24 48898160010000 4883c408'), 'x86_64')).toBe(352);
  // mov %rax,0x168(%r14): Go 1.20
  expect(findLabels(bytes('7509 49898668010000 eb0f'), 'x86_64')).toBe(360);
  // str x28,[sp,#16]; ldr x1,[sp,#16]; str x0,[x1,#352]
  expect(findLabels(words(0xf9000bfc, 0xf9400be1, 0xf900b020), 'aarch64')).toBe(352);
  // str x0,[x25]; str x1,[x25,#8]; ldr x1,[sp,#16]; str x0,[x1,#352]: Go 1.23
  expect(findLabels(words(0xf9000320, 0xf9000721, 0xf9400be1, 0xf900b020), 'aarch64')).toBe(352);
  // str x0,[sp,#8]
  expect(findLabels(words(0xf90007e0), 'aarch64')).toBeUndefined();
});

test('the code of load_g on arm64', () => {
  // adrp x27,1f1000; ldrsb x0,[x27,#2624]; cbz x0; mrs x0,tpidr_el0; mov x27,#0x10; ldr x28,[x0,x27]; ret
  const own = words(0x90000b3b, 0x39a90360, 0xb4000080, 0xd53bd040, 0xd280021b, 0xf87b681c, 0xd65f03c0);
  expect(readLoadG(own, 0x8d5d0)).toEqual({ hasC: 0x1f1a40, offset: 16, slot: undefined });
  // … movz x27,#0x1,lsl 16; movk x27,#0x10
  const far = words(0x90000b3b, 0x39a90360, 0xb4000080, 0xd53bd040, 0xd2a0003b, 0xf280021b, 0xf87b681c);
  expect(readLoadG(far, 0x8d5d0)).toMatchObject({ offset: 0x10010 });
  // … adrp x27,1f1000; ldr x27,[x27,#8]
  const library = words(0x90000b3b, 0x39a90360, 0xb4000080, 0xd53bd040, 0x90000b3b, 0xf940077b, 0xf87b681c);
  expect(readLoadG(library, 0x8d5d0)).toEqual({ hasC: 0x1f1a40, offset: undefined, slot: 0x1f1008 });
  expect(readLoadG(words(0xd65f03c0), 0)).toBeUndefined();
});
