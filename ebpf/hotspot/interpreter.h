/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Frames of HotSpot's interpreter: see unwind.h. */
#ifndef EF_HOTSPOT_INTERPRETER_H
#define EF_HOTSPOT_INTERPRETER_H

#include "blobs.h"

/* Pushes the method of an interpreted frame; 1 where it is none. bcp: candidates, the better one first; 0: before the
 * first bytecode. */
static __always_inline int push_interpreted(struct ef_scratch *s, struct ef_hotspot_state *w, u64 method, u64 bcp,
					    u64 bcp2)
{
	u64 constants = 0;
	u16 size = 0;

	if (USER_READ(&constants, 8, method + w->jvm.method_const) ||
	    USER_READ(&size, 2, constants + w->jvm.const_code_size))
		return 1;
	u64 codes = constants + w->jvm.const_bytes, bci = EF_HOTSPOT_NO_BCI;
	if (bcp - codes < size)
		bci = bcp - codes;
	else if (bcp2 - codes < size)
		bci = bcp2 - codes;
	else if (bcp2)
		return 1; /* a native method has none */
	push_hotspot(s, EF_HOTSPOT_INTERPRETED, method, bci, constants >> 3);
	return 0;
}

/*
 * A method is being called: its Method is in a register, and the caller's stack pointer where later the bytecode pointer
 * is. The return address is on top of the stack, or in a register where the parameters are turned into local variables.
 */
static __always_inline int step_called_interpreter(struct ef_scratch *s, struct ef_hotspot_state *w)
{
	u64 *r = s->state.leaf.by_dwarf_number;
	u64 pc = r[REG_HOTSPOT_CALLER], sender_sp = r[REG_HOTSPOT_BCP], fp = s->state.fp;
	u64 reach = s->state.fp - s->state.sp;

	if (reach < INTERPRETED_WORDS * 8) {
		/* the frame is being built below the pair */
		if (USER_READ(w->pair, 16, s->state.fp) ||
		    (reach >= 8 && USER_READ(&sender_sp, 8, s->state.fp - 8)))
			return 1;
		fp = w->pair[0];
		pc = w->pair[1];
	} else if (!USER_READ(w->pair, 8, s->state.sp) && is_code(s, w->pair[0])) {
		pc = w->pair[0];
	}
	if (sender_sp <= s->state.sp || sender_sp - s->state.sp > HOTSPOT_REACH || !is_code(s, pc))
		return 1;
	if (push_interpreted(s, w, r[REG_HOTSPOT_METHOD], 0, 0))
		return 1;
	s->state.fp = fp;
	s->state.sp = sender_sp;
	s->state.pc = pc;
	return 0;
}

/* The frame of the leaf has just been taken down: on top of the stack is the return address. */
static __always_inline int step_left_interpreter(struct ef_scratch *s, struct ef_hotspot_state *w)
{
	if (!s->is_leaf || USER_READ(w->pair, 8, s->state.sp) || !is_java_code(w, w->pair[0])) {
		count(EF_COUNTER_hotspot_bad_frame);
		return 1;
	}
	push_hotspot(s, EF_HOTSPOT_STUB, w->blob, s->state.pc - w->code_begin, w->name);
	s->state.sp += 8;
	s->state.pc = w->pair[0];
	return 0;
}

/* Global, so that it is verified once; 0, or 1 where the frame makes no sense. */
__noinline int step_hotspot_interpreter(void)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(HOTSPOT);
	if (!s)
		return 1;
	struct ef_hotspot_state *w = &s->runtimes.hotspot;
	u64 in_register = s->state.leaf.by_dwarf_number[REG_HOTSPOT_BCP];

	if (s->is_leaf &&
	    (s->state.fp - s->state.sp < INTERPRETED_WORDS * 8 || in_register - s->state.sp < HOTSPOT_REACH) &&
	    !step_called_interpreter(s, w))
		return 0;
	if (s->state.fp < s->state.sp || s->state.fp - s->state.sp > HOTSPOT_REACH || s->state.fp & 7 ||
	    USER_READ(w->slots, sizeof(w->slots), s->state.fp - INTERPRETED_WORDS * 8))
		return step_left_interpreter(s, w);
	u64 saved = w->slots[(INTERPRETED_WORDS - w->jvm.bcp_slot) & 7];
	u64 sender_sp = w->slots[SLOT_SENDER_SP];
	if (sender_sp <= s->state.fp || sender_sp - s->state.fp > HOTSPOT_REACH ||
	    push_interpreted(s, w, w->slots[SLOT_METHOD], s->is_leaf ? in_register : saved, saved))
		return step_left_interpreter(s, w);
	s->state.sp = sender_sp;
	s->state.fp = w->slots[SLOT_FP];
	s->state.pc = w->slots[SLOT_RETURN];
	return 0;
}

#endif
