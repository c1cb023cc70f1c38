/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Frames of HotSpot's interpreter: see unwind.h. */
#ifndef EF_HOTSPOT_INTERPRETER_H
#define EF_HOTSPOT_INTERPRETER_H

#include "frames.h"

#if RETURN_ADDRESS_ON_STACK
#include "code-x86.h"
#else
#include "code-arm64.h"
#endif

/* Global, so that it is verified once; 0, or 1 where the frame makes no sense. */
__noinline int step_hotspot_interpreter(void)
{
	struct ef_scratch *s = RUNTIME_SCRATCH(HOTSPOT);
	if (!s)
		return 1;
	struct ef_hotspot_state *w = &s->runtimes.hotspot;
	u64 in_register = s->state.leaf.by_dwarf_number[REG_HOTSPOT_BCP];

	if (s->is_leaf && !step_called_interpreter(s, w))
		return 0;
	if (s->state.fp < s->state.sp || s->state.fp - s->state.sp > HOTSPOT_REACH || s->state.fp & 7 ||
	    USER_READ(w->slots, sizeof(w->slots), s->state.fp - INTERPRETED_WORDS * 8))
		return step_left_interpreter(s, w);
	u64 saved = w->slots[(INTERPRETED_WORDS - w->jvm.bcp_slot) & 7];
	u64 sender_sp = caller_sp(w->slots[SLOT_SENDER_SP], s->state.fp);
	if (sender_sp <= s->state.fp || sender_sp - s->state.fp > HOTSPOT_REACH ||
	    push_interpreted(s, w, w->slots[SLOT_METHOD], s->is_leaf ? in_register : saved, saved))
		return step_left_interpreter(s, w);
	s->state.sp = sender_sp;
	s->state.fp = w->slots[SLOT_FP];
	s->state.pc = w->slots[SLOT_RETURN];
	return 0;
}

#endif
