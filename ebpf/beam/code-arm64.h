/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * arm64: the stack pointer is always that of the scheduler's thread, Erlang's is x20, and x21 the Erlang process. A call leaves
 * the return address in x30. A function pushes it first and pops it last, and so has no frame before or at its entry, nor behind
 *
 *   ldr x30,[x20],#8      ldp x,x30,[x20],#16      ldp x,x30,[x20,#n]; ...; add x20,x20,#n+16
 *
 * Code that all modules share has none on Erlang's stack: it keeps the return address in x30, or, where it calls C, in a frame
 * record on the scheduler's stack, which begins at the scheduler's registers. x29 is where those are, or points to that record.
 * C keeps x20; what may move the stack has put it aside in the process, and takes it from there again right behind the call.
 */
#ifndef EF_BEAM_CODE_ARM64_H
#define EF_BEAM_CODE_ARM64_H

#include "modules.h"

#define BEAM_HAS_LINK 1
#define BEAM_LOOSE_WORDS 0
#define BEAM_CALL_BYTES 4
#define BEAM_CODE_WORDS (BEAM_CODE_BYTES / 4)
#define BEAM_REG_STACK REG_CALLEE_SAVED

/* str x30,[x20,#-8]!: a function's first instruction */
#define BEAM_ENTRY 0xf81f8e9e
#define BEAM_NEXT_PROCESS 0xaa0003f5  /* mov x21,x0 */
#define BEAM_SHARED_BRANCH 0xd61f01c0 /* br x14 */
#define BEAM_BREAK 0xd4200000
/* ldr x20,[x21,#stop]; ldp x23,x20,[x21,#htop] */
#define BEAM_TAKES_STACK 0xf9402eb4
#define BEAM_TAKES_HEAP_AND_STACK 0xa94552b7
/* The same of str, stp */
#define BEAM_IS_LOAD 0x00400000

/* b, bl, br, blr, ret */
static __always_inline bool leaves_straight_code(u32 code)
{
	return (code & 0x7c000000) == 0x14000000 || (code & 0xfe000000) == 0xd6000000;
}

/* An instruction that changes x20: add and sub of a constant, a load or store that moves it, and with registers. */
static __always_inline bool moves_stack(u32 code)
{
	if ((code & 0xbf0003ff) == 0x91000294)
		return 1;
	if ((code & 0x3e0) == 20 << 5 && ((code & 0xffa00400) == 0xf8000400 || (code & 0xfe800000) == 0xa8800000))
		return 1;
	return (code & 0x0e00001f) == (0x0a000000 | 20);
}

/* Instructions that load what a function without a name has captured */
#define BEAM_CAPTURE_WORDS 8

/* Is there no frame yet? At a function's entry, or in code that loads what it has captured, and goes on there. */
static __always_inline bool is_before_frame(struct ef_scratch *s, const struct ef_beam_state *w)
{
	u32 entry = 0;

	if (w->instructions[0] == BEAM_ENTRY)
		return 1;
	for (u32 i = 0; i < BEAM_CAPTURE_WORDS; i++) {
		u32 each = w->instructions[i];
		if ((each & 0xfc000000) == 0x14000000) {
			s64 words = i + ((s64)((u64)each << 38) >> 38);
			return !BEAM_READ(&entry, 4, s->state.pc + words * 4) && entry == BEAM_ENTRY;
		}
		if (leaves_straight_code(each) || moves_stack(each))
			return 0;
	}
	return 0;
}

/* The way from a module to code that all modules share: mov x14,#address, in one to four pieces; br x14. Reads the code behind the
 * program counter for what comes after. */
static __always_inline bool is_on_way_to_shared(struct ef_scratch *s, struct ef_beam_state *w)
{
	u32 i = 0;

	if (BEAM_READ(w->code, BEAM_CODE_BYTES, s->state.pc))
		w->instructions[0] = BEAM_BREAK;
	w->is_before_frame = s->is_leaf && is_before_frame(s, w);
	if (!s->is_leaf)
		return 0;
	for (; i < 4; i++)
		if ((w->instructions[i] & 0xdf80001f) != (0xd2800000 | 14))
			break;
	return w->instructions[i] == BEAM_SHARED_BRANCH;
}

/* Where the Erlang stack is. Code that takes it from the process before anything else is called leaves no doubt; else it is in
 * its register, that of the process which has run before where the next one is just being taken up. */
static __always_inline u64 beam_stack(struct ef_scratch *s, struct ef_beam_state *w, u64 registers, u64 stop)
{
	const u32 *code = w->instructions;

	w->registers = registers;
	if (s->state.pc - s->is_return_address - w->vm.switch_start < w->vm.switch_bytes ||
	    (s->is_return_address && code[0] == BEAM_NEXT_PROCESS)) {
		w->is_waiting = 1;
		return stop;
	}
	for (u32 i = 0; i < BEAM_CODE_WORDS; i++) {
		if (code[i] == BEAM_TAKES_STACK || code[i] == BEAM_TAKES_HEAP_AND_STACK)
			return stop;
		if ((code[i] | BEAM_IS_LOAD) == BEAM_TAKES_STACK ||
		    (code[i] | BEAM_IS_LOAD) == BEAM_TAKES_HEAP_AND_STACK || leaves_straight_code(code[i]))
			break;
	}
	return s->is_leaf || s->knows_callee_saved ? s->state.leaf.by_dwarf_number[BEAM_REG_STACK] : 0;
}

/* Bytes that the code in w->code has made room for when it ends; 0: it is not known. Says also whether it has left its frame. */
static __always_inline u32 room_made(struct ef_beam_state *w)
{
	u32 size = 0, has_left = 0, has_read = 0;

	for (u32 i = 0; i < BEAM_CODE_WORDS; i++) {
		u32 each = w->instructions[i];
		/* sub x20,x20,#size */
		if ((each & 0xff8003ff) == 0xd1000294) {
			size = (each >> 10 & 0xfff) << (each & 1 << 22 ? 12 : 0);
			continue;
		}
		/* ldr x30,[x20],#8; ldp x,x30,[x20],#16; ldp x,x30,[x20,#n] */
		if (each == 0xf840869e || (each & 0xffffffe0) == 0xa8c17a80)
			has_left = 1;
		else if ((each & 0xffc07fe0) == 0xa9407a80)
			has_read = 1;
		else if (leaves_straight_code(each))
			size = has_left = has_read = 0;
		if (moves_stack(each)) {
			size = 0;
			has_left |= has_read;
		}
	}
	w->has_left_frame = has_left;
	return size;
}

#endif
